"""Choose which tiles wait in scratch memory while what is made of them is computed in a loop.

What follows the sum of a register tile is written out for each of its registers.  Where that is little, it is the
fastest: nothing leaves the registers.  Where it is long, it would be most of the kernel's text, and a trip through the
nearest cache costs a small part of the sum.  Takes `KernelFacts` and a tile, gives the `Epilogue` steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from lazulite.analysis.kinds import own_cost
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.nest import count
from lazulite.kernel.plan import Part
from lazulite.kernel.steps import Epilogue

_LONG = 128
"""From how many instructions on, over all registers of a tile, a loop is better."""
_APART = 6
"""Instructions for lanes that lie apart in memory."""
_TOGETHER = 48
"""So many instructions for the vectors side by side are not yet too long: each of them alone waits for itself."""
_FEW_TURNS = 32
"""A sum of fewer products than this takes no longer than the trip through memory."""
_LONG_SUM = 256
"""A sum, beside the tile's, of so many turns takes its time."""


def choose_epilogue(facts: KernelFacts, node: UOp, lane: UOp, parts: Mapping[UOp, Sequence[Part]]) -> list[Epilogue]:
    """Steps that compute what is made of a sum in vectors along its own lanes, where it is worth a loop.

    `parts` are those of the ranges that give the tile rows, and of the lanes.  Rows that are neighbours in memory where
    lanes are not stay together, as they are written together.  So do the vectors where there is another sum, for which
    one of them alone would wait for itself.
    """
    tall = {r: max(part.rows for part in own) for r, own in parts.items()}
    each = sum(_instructions(facts, store, node, lane, tall) for store in facts.sink.src)
    text = math.prod(tall.values()) * each
    if count(node.src[1:]) < _FEW_TURNS or text < _LONG or _is_beside_long_sum(facts, node, tall):
        return []
    kept = [r for r in parts if r is not lane and _are_written_together(facts, r, lane)]
    in_order = all(facts.stride(store, lane) == 1 for store in facts.sink.src)
    if len(facts.reductions) > 1 or (in_order and tall.get(lane, 1) * each <= _TOGETHER):
        kept.append(lane)
    rows = tuple([part.row for r in kept for part in parts[r] if part.row is not None])
    return [Epilogue(part.lane, rows) for part in parts[lane] if part.lane is not None]


def _is_beside_long_sum(facts: KernelFacts, node: UOp, rows: Mapping[UOp, int]) -> bool:
    """Whether rows have another long sum each: all rows at once hide how long an addition takes, one row does not."""
    others = [other for other in facts.reductions if other is not node and not other.ranges.isdisjoint(rows)]
    return any(count(other.src[1:]) >= _LONG_SUM for other in others)


def _are_written_together(facts: KernelFacts, r: UOp, lane: UOp) -> bool:
    return all(facts.stride(store, r) == 1 != facts.stride(store, lane) for store in facts.sink.src)


def _instructions(facts: KernelFacts, store: UOp, node: UOp, lane: UOp, rows: Iterable[UOp]) -> int:
    """About how many are written for one register of the tile."""
    registers = {lane, *rows}
    above = [n for value in store.src[2:] for n in toposort(value, enter=lambda n: n is not node) if n is not node]
    varied = [n for n in dict.fromkeys(above) if registers & n.ranges]
    computed = sum(max(own_cost(n), 1) for n in varied if n.op in ops.ELEMENTWISE and n.dtype is not dtypes.index)
    accesses = [store, *[n for n in varied if n.op is ops.LOAD]]
    return computed + sum(1 if facts.stride(each, lane) in (0, 1, -1) else _APART for each in accesses)
