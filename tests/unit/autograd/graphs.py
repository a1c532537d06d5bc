"""Graphs for gradient tests: leaves with contents, and derivatives by central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lazulite.autograd.backward import gradient
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.uop import UOp

Values = list[float]


def leaf(number: int, shape: tuple[int, ...], dtype: DType = dtypes.float64, device: str = "CPU") -> UOp:
    return UOp(ops.BUFFER, dtype, (), (number, 0, shape, device))


def total(node: UOp) -> UOp:
    summed = UOp(ops.REDUCE, node.dtype, (node,), (ops.ADD, tuple(range(len(node.shape)))))
    return UOp(ops.RESHAPE, node.dtype, (summed,), ()) if node.shape else node


def weighted(node: UOp) -> UOp:
    """A sum in which no two elements weigh the same, so that a misplaced gradient shows."""
    size = 1
    for each in node.shape:
        size *= each
    weights = UOp(ops.IOTA, dtypes.int32, (), size).cast(node.dtype) * 0.37 + 1.1
    return total(node * UOp(ops.RESHAPE, node.dtype, (weights,), node.shape))


def values(nodes: Sequence[UOp], memory: dict[UOp, Values]) -> list[Values]:
    return evaluate_tensors(nodes, memory)


def gradients(root: UOp, memory: dict[UOp, Values]) -> list[Values]:
    """The gradient of a scalar for each leaf, evaluated; zeros where there is no path."""
    found = gradient(root, list(memory))
    return [
        [0.0] * len(held) if node is None else values([node], memory)[0]
        for node, held in zip(found, memory.values(), strict=True)
    ]


def differences(root: UOp, memory: dict[UOp, Values], step: float = 1e-6) -> list[Values]:
    """The same by central differences."""

    def at(target: UOp, position: int, change: float) -> float:
        moved = list(memory[target])
        moved[position] += change
        return float(values([root], memory | {target: moved})[0][0])

    return [[(at(t, i, step) - at(t, i, -step)) / (2 * step) for i in range(len(held))] for t, held in memory.items()]


def assert_gradient_is_the_slope(build: Callable[..., UOp], *operands: tuple[tuple[int, ...], Values]) -> None:
    """Compare both for `build(*leaves)`."""
    memory = {leaf(number, shape): held for number, (shape, held) in enumerate(operands)}
    root = weighted(build(*memory))
    for found, expected in zip(gradients(root, memory), differences(root, memory), strict=True):
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            assert abs(x - y) <= 1e-5 * max(1.0, abs(y)), (found, expected)
