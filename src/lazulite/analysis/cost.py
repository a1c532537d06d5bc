"""What a kernel does, in numbers: operations, bytes that its loads and stores move, bytes that it touches.

Takes a `KERNEL`.  Exact for what the kernel says, not for what a processor does: a fused multiply-add is
two operations, so an N x N matrix product is 2 N**3; work on indices and gates is free, as is
scratch memory; a load counts once for every turn of the statement or reduction that it stands in.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort

_FREE = frozenset({ops.CAST, ops.BITCAST, ops.WHERE})
_UNCOUNTED = frozenset({dtypes.index, dtypes.bool})


@dataclass(frozen=True, slots=True)
class Estimate:
    """The work of one run of a kernel."""

    operations: int
    bytes_loaded: int
    bytes_stored: int
    bytes_touched: int
    """What is read or written at least once: loads of one memory count at most its size."""


def estimate(sink: UOp) -> Estimate:
    """The work of a kernel.

    >>> from lazulite.ir.parse import parse
    >>> lines = ["kernel", "param p0 float32[4]", "param p1 float32[8]", "loop r0 in 0..4", "loop r1 in 0..2"]
    >>> estimate(parse(chr(10).join([*lines, "p0[r0] = sum(p1[r0*2 + r1] for r1)"])))
    Estimate(operations=8, bytes_loaded=32, bytes_stored=16, bytes_touched=48)
    """
    nodes = toposort(sink)
    operations = sum(_operations(node) for node in nodes)
    stores = [node for node in nodes if node.op is ops.STORE and node.src[0].op is ops.PARAM]
    stored = sum(_turns(node.ranges) * node.src[2].dtype.itemsize for node in stores)
    touched: dict[UOp, int] = {}
    for part in nodes:
        if part.op in (ops.REDUCE, ops.STORE):
            turns = _turns(part.ranges.union(*[source.ranges for source in part.src]))
            for load in _loads_of(part):
                touched[load.src[0]] = touched.get(load.src[0], 0) + turns * load.dtype.itemsize
    read = sum(min(moved, _size(memory)) for memory, moved in touched.items())
    return Estimate(operations, sum(touched.values()), stored, read + stored)


def _loads_of(part: UOp) -> list[UOp]:
    """The loads of memory in a statement or reduction, those of the reductions and statements below it apart."""
    inside = toposort(*part.src, enter=lambda node: node.op not in (ops.REDUCE, ops.AFTER))
    return [node for node in inside if node.op is ops.LOAD and node.src[0].op is ops.PARAM]


def _operations(node: UOp) -> int:
    if node.op is ops.REDUCE:
        return _turns(node.src[0].ranges | set(node.src[1:]))
    if node.op not in ops.ELEMENTWISE or node.op in _FREE or node.src[0].dtype in _UNCOUNTED:
        return 0
    return _turns(node.ranges) * (2 if node.op is ops.FMA else 1)


def _turns(ranges: Iterable[UOp]) -> int:
    return math.prod(int(r.src[0].bounds[1]) for r in ranges)


def _size(memory: UOp) -> int:
    shape: tuple[int, ...] = memory.arg[1]
    return math.prod(shape) * memory.dtype.itemsize
