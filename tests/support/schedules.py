"""Small `TENSOR` graphs and a way to schedule them, for the tests beside this file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.schedule.build import Options, Schedule, build
from lazulite.schedule.canonical import canonical_graph, fingerprint

F32 = dtypes.float32


def buffer(number: int, *shape: int, dtype: DType = F32) -> UOp:
    return UOp(ops.BUFFER, dtype, (), (number, 0, shape, "CPU"))


def reduced(x: UOp, *axes: int, op: ops.Op = ops.ADD) -> UOp:
    return UOp(ops.REDUCE, x.dtype, (x,), (op, axes))


def moved(op: ops.Op, x: UOp, arg: object) -> UOp:
    return UOp(op, x.dtype, (x,), arg)


def expanded(x: UOp, *shape: int) -> UOp:
    return moved(ops.EXPAND, x, shape)


def reshaped(x: UOp, *shape: int) -> UOp:
    return moved(ops.RESHAPE, x, shape)


def matmul(a: UOp, b: UOp) -> UOp:
    (m, k), n = a.shape, b.shape[1]
    left = expanded(reshaped(a, m, 1, k), m, n, k)
    right = expanded(reshaped(moved(ops.PERMUTE, b, (1, 0)), 1, n, k), m, n, k)
    return reshaped(reduced(left * right, 2), m, n)


def softmax(x: UOp) -> UOp:
    powers = UOp.apply(ops.EXP, x - expanded(reduced(x, 1, op=ops.MAX), *x.shape))
    return powers / expanded(reduced(powers, 1), *x.shape)


@dataclass
class Scheduled:
    """A schedule with its kernels in launch order."""

    schedule: Schedule
    kernels: list[UOp]

    @property
    def reasons(self) -> list[str]:
        return [decision.reason for decision in self.schedule.fusion.decisions]


def nothing(node: UOp) -> None:
    return None


def scheduled(outputs: Sequence[UOp], targets: Sequence[UOp | None] | None = None, **options: bool) -> Scheduled:
    """Schedule a graph of BUFFERs; no storage is a constant, no value is known."""
    aims = list(targets or [None] * len(outputs))
    graph = canonical_graph(outputs, aims, nothing, nothing)
    kernels: dict[str, UOp] = {}

    def key_of(sink: UOp, device: str) -> str:
        key = str(len(kernels))
        kernels[key] = sink
        return key

    result = build(graph.outputs, graph.targets, graph.scalars, graph.positions, key_of, Options(**options))
    return Scheduled(result, [kernels[launch.kernel] for launch in result.plan.launches if launch.kernel])


def key(outputs: Sequence[UOp], targets: Sequence[UOp | None] | None = None) -> object:
    return fingerprint(outputs, list(targets or [None] * len(outputs)), nothing, nothing).key
