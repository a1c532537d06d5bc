"""Mark loads and stores with what the memory system may know about them.

Carries out `Prefetch` and `Stream`: `KERNEL` in, after all other steps, and `KERNEL` out.  Only the `arg` of loads
and stores changes, which has no meaning but for the time that they take.
"""

from __future__ import annotations

from collections.abc import Iterable

from lazulite.analysis.access import coefficient
from lazulite.ir import ops
from lazulite.ir.uop import UOp, nodes_of, substitute
from lazulite.kernel.nest import by_order
from lazulite.kernel.steps import Name, Prefetch, Step, Stream


def mark(sink: UOp, steps: Iterable[Step]) -> UOp:
    """The kernel with every `Prefetch` and `Stream` carried out."""
    for step in steps:
        if isinstance(step, Prefetch):
            sink = _prefetch(sink, step)
        elif isinstance(step, Stream):
            stores = [s.replace(arg="stream") if _slot(s) == step.slot else s for s in sink.src]
            sink = sink.replace(src=tuple(stores))
    return sink


def _prefetch(sink: UOp, step: Prefetch) -> UOp:
    table = {}
    for node in nodes_of(sink):
        if node.op is ops.LOAD and _slot(node) == step.slot and _part_of(step.range, node) is not None:
            ahead = _part_of(step.ahead, node)
            distance = coefficient(node.src[1], ahead) if ahead is not None else None
            if distance:
                table[node] = node.replace(arg=distance)
    return substitute([sink], table)[0]


def _slot(access: UOp) -> int:
    """The memory slot of a load or store; -1 for scratch memory."""
    return access.src[0].arg[0] if access.src[0].op is ops.PARAM else -1


def _part_of(name: Name, node: UOp) -> UOp | None:
    """The outermost range of a node that is the named one or a part of it."""
    return next((r for r in by_order(node.ranges) if r.arg[0][1 : 1 + len(name)] == name), None)
