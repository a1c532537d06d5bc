"""Values of INDEX and bool expressions at all values of their ranges at once, by NumPy."""

from __future__ import annotations

import operator
from collections.abc import Mapping

import numpy as np

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, toposort


def loop(extent: int, order: int, kind: str = "loop") -> UOp:
    """A RANGE at a nesting depth."""
    return UOp(ops.RANGE, dtypes.index, (index(extent),), ((order,), kind))


def loops(shape: tuple[int, ...]) -> tuple[UOp, ...]:
    """One RANGE for each axis, the first outermost."""
    return tuple([loop(size, order) for order, size in enumerate(shape)])


def grid(ranges: tuple[UOp, ...]) -> dict[UOp, np.ndarray]:
    """Every range along an axis of its own."""
    axes = np.ix_(*[np.arange(r.src[0].arg) for r in ranges])
    return dict(zip(ranges, axes, strict=True))


def _floordiv(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(y == 0, 0, x // np.where(y == 0, 1, y))


def _mod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(y == 0, 0, x % np.where(y == 0, 1, y))


_NUMPY = {
    ops.ADD: operator.add, ops.SUB: operator.sub, ops.MUL: operator.mul, ops.FLOORDIV: _floordiv, ops.MOD: _mod,
    ops.LT: operator.lt, ops.LE: operator.le, ops.EQ: operator.eq, ops.NE: operator.ne, ops.MAX: np.maximum,
    ops.MIN: np.minimum, ops.AND: np.logical_and, ops.OR: np.logical_or, ops.NOT: np.logical_not, ops.WHERE: np.where,
}  # fmt: skip


def values(root: UOp, known: Mapping[UOp, np.ndarray]) -> np.ndarray:
    """The value of an expression where the values of its leaves are known (INDEX in 64 bits)."""
    result: dict[UOp, np.ndarray] = dict(known)
    for node in toposort(root, enter=lambda n: n not in known):
        if node in result:
            continue
        if node.op is ops.CONST:
            result[node] = np.asarray(node.value)
        else:
            result[node] = _NUMPY[node.op](*[result[s] for s in node.src])
    return result[root]


def divisions(*roots: UOp | None) -> list[UOp]:
    """The divisions and remainders in the expressions."""
    found = toposort(*[root for root in roots if root is not None])
    return [node for node in found if node.op in (ops.FLOORDIV, ops.MOD)]
