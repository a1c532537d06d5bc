"""Choose how many rows of a register tile each range gives.

In a reduction whose operands do not all vary with the same ranges, a tile reuses what it has loaded: m
rows times v vectors need m + v loads for m * v multiply-adds.  The tile fills the vector registers.
Where nothing can be reused, a few rows still keep several independent accumulators in flight.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lazulite.ir import ops
from lazulite.ir.uop import UOp
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.nest import by_order, count, extent, is_fixed
from lazulite.kernel.plan import even_rows

_IN_FLIGHT = 4
"""Independent accumulators that hide the latency of an addition while memory is the limit."""
_ENOUGH = 16
"""Accumulators of a product that keep two units busy while they wait for each other and for operands."""
_CHEAP = 8
"""The cost of a turn below which that latency shows at all."""


@dataclass
class Tiles:
    """Rows by range; for a lane range, the vectors that are worked on at a time."""

    rows: dict[UOp, int] = field(default_factory=dict)
    streamed: UOp | None = None
    """The range whose rows reuse the vectors of the other operand; None where there is no such reuse."""
    vectors: list[UOp] = field(default_factory=list)
    """The loads that are vectors in a blocked reduction: the operand that may be staged."""
    reduction: UOp | None = None


def choose_tiles(facts: KernelFacts, lanes: frozenset[UOp]) -> Tiles:
    """The register tile of the reduction that works most, and accumulators for the others."""
    tiles = Tiles()
    if not facts.reductions:
        _unroll(facts, lanes, tiles)
        return tiles
    hottest = max(facts.reductions, key=lambda node: count(node.src[0].ranges))
    if not any(r in lanes for r in hottest.src[1:]):
        _block(facts, hottest, lanes, tiles)
    else:
        _dot(facts, hottest, lanes, tiles)
    for node in facts.reductions:
        _accumulate(facts, node, lanes, tiles)
    return tiles


def _unroll(facts: KernelFacts, lanes: frozenset[UOp], tiles: Tiles) -> None:
    """Two vectors at a time where an element is so little work that the loop itself counts."""
    if sum(node.op in ops.ELEMENTWISE for node in facts.nodes) <= 12:
        tiles.rows.update(dict.fromkeys(lanes, 2))


def _loads(facts: KernelFacts, reduction: UOp) -> list[UOp]:
    return [n for n in facts.inside[reduction] if n.op is ops.LOAD]


def _block(facts: KernelFacts, node: UOp, lanes: frozenset[UOp], tiles: Tiles) -> None:
    """Lanes over an output range: rows that reuse the vectors, vectors that reuse the scalars."""
    loads = _loads(facts, node)
    vectors = [load for load in loads if load.ranges & lanes]
    lane = next((r for r in node.ranges if r in lanes), None)
    if lane is None or not vectors:
        return
    free = sorted(by_order(node.ranges - {lane}), key=extent)
    streamed = next((r for r in reversed(free) if extent(r) > 1 and not any(r in v.ranges for v in vectors)), None)
    wide = lane
    if extent(lane) <= facts.lanes:
        scalars = [load for load in loads if load not in vectors]
        also = [r for r in free if r is not streamed and extent(r) > 1 and not any(r in s.ranges for s in scalars)]
        wide = also[-1] if also and streamed is not None else lane
    available = extent(wide) if wide is not lane else -(-extent(lane) // facts.lanes)
    if streamed is None:
        tiles.rows[wide] = max(1, min(available, _IN_FLIGHT))
        return
    spare = 1 if facts.target.has(ops.FMA, node.dtype) else 2
    registers, turns = facts.target.registers, extent(streamed)
    few, all_columns = turns < 8, 2 < available <= 4 and wide is lane
    most = max(2, (registers - 2) // (turns + 1)) if few else 4 if all_columns else 2
    at_once = tiles.rows[wide] = max(1, min(available, most, 6))
    rows = min(turns, (registers - spare - at_once) // at_once, 28)
    as_they_are = all(load.dtype is node.dtype for load in vectors)  # rows share what it takes to convert them
    if all_columns and as_they_are and is_fixed(streamed):  # a rest would be a tile of its own
        rows = even_rows(turns, rows, -(-_ENOUGH // at_once)) or rows
    tiles.rows[streamed] = rows
    tiles.streamed, tiles.vectors, tiles.reduction = streamed, vectors, node


def _dot(facts: KernelFacts, node: UOp, lanes: frozenset[UOp], tiles: Tiles) -> None:
    """Lanes over the reduction: a tile of outputs that reuse each other's vectors.

    For each operand the tile gets rows that it does not vary with, first those that only shift another
    operand by an element: these find their lines in the nearest cache.
    """
    loads = _loads(facts, node)
    if len(loads) < 2:
        return
    large = facts.target.registers > 16
    taken: set[UOp] = set(lanes)
    for load in loads:
        room = 4 if large else 2
        free = [r for r in by_order(node.ranges) if r not in load.ranges and r not in taken and extent(r) > 1]
        shifts = [r for r in free if extent(r) <= 4 and any(_shifts(facts, other, r, lanes) for other in loads)]
        if shifts:
            tiles.rows[shifts[0]] = extent(shifts[0])
            taken.add(shifts[0])
            room = (6 if large else 3) // extent(shifts[0])
        free = [r for r in free if r not in taken]
        if free and room > 1:
            widest = max(free, key=lambda r: (extent(r) % room == 0, extent(r)))
            tiles.rows[widest] = min(extent(widest), room)
            taken.add(widest)


def _shifts(facts: KernelFacts, load: UOp, r: UOp, lanes: frozenset[UOp]) -> bool:
    return facts.stride(load, r) == 1 and any(facts.stride(load, lane) == 1 for lane in lanes)


def _accumulate(facts: KernelFacts, node: UOp, lanes: frozenset[UOp], tiles: Tiles) -> None:
    """Rows over the reduction itself where the tile has too few accumulators."""
    inner = node.src[0].ranges
    have = 1
    for r in inner.difference(node.src[1:]):
        have *= tiles.rows.get(r, 1)
    own = [r for r in node.src[1:] if r in lanes] or [max(node.src[1:], key=extent)]
    if (
        facts.turn_costs[node] <= _CHEAP
        and have < _IN_FLIGHT
        and own[0] not in tiles.rows
        and (own[0] in lanes or inner & lanes)
    ):
        tiles.rows[own[0]] = _IN_FLIGHT // have
