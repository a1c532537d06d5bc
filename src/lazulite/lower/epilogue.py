"""What a kernel makes of a tile of results, in loops over the tile that run along memory.

Takes the kernel after its schedule steps, its sums in blocks made partial ones (`lower/accumulate.py`).  Carries out
`Epilogue`: the rows and lanes of a sum go to scratch memory as they are, and the rest of the statement becomes loops
over the tile.  The lanes of these are those of the sum or, where memory runs along rows of the tile, what were rows:
then a copy has the tile across, so that the result and all that is read beside it are contiguous, and what varies
with the old lanes alone, and is dear, is still computed in those, once for a tile.  A choice that is the same for the
whole tile, as between a partial sum and the finished result, becomes two statements of which one has no turns.  The
values are the same; only one vector of the tile is written out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lazulite.analysis.kinds import own_cost
from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, nodes_of, replace_ranges, substitute, toposort
from lazulite.kernel.flatten import flatten
from lazulite.kernel.nest import by_order, count, extent
from lazulite.kernel.steps import Epilogue, Name, Step
from lazulite.lower.copy_nest import ALIGNMENT, INNERMOST, flat, flat_over, gated, in_vectors

_DEAR = 4
"""From which cost on a value of the columns is not computed again for each of them."""


@dataclass(frozen=True, slots=True)
class _Tile:
    """The registers of a sum, and what is left of them when it is in memory."""

    node: UOp
    along: UOp
    """The rows or lanes that become the lanes of the loops."""
    others: tuple[UOp, ...]
    """The rest of the registers, outermost first."""
    rows: frozenset[UOp]
    """Those of them that stay rows."""

    @property
    def lies_across(self) -> bool:
        """Whether the loops have other lanes than the sum."""
        return bool(self.along.arg[1] == "row")


def loop_epilogues(sink: UOp, steps: Iterable[Step]) -> UOp:
    """The kernel with every `Epilogue` carried out."""
    named = {step.range: step.rows for step in steps if isinstance(step, Epilogue)}
    if not named:
        return sink
    nodes = nodes_of(sink)
    numbers = itertools.count(1 + max((n.arg[0] for n in nodes if n.op is ops.SCRATCH), default=-1))
    lanes = max((extent(n) for n in nodes if n.op is ops.RANGE and n.arg[1] == "lane"), default=1)
    stores: list[UOp] = []
    held: dict[_Tile, UOp] = {}
    for store in sink.src:
        tile = _tile(store, named)
        if tile is None:
            stores.append(store)
            continue
        if tile not in held:
            held[tile] = _held(tile, lanes, numbers)
        stores += _looped(store, tile, held[tile], lanes, numbers)
    return sink.replace(src=tuple(stores))


def _tile(store: UOp, named: Mapping[Name, Sequence[Name]]) -> _Tile | None:
    """The tile of a statement; None where none of its registers are named, or where a remainder has no lanes.

    Of several sums it is the one of the most work: the others are part of what is made of it.
    """
    registers = sorted((r for r in store.src[1].ranges if r.arg[1] in ("row", "lane")), key=_lanes_last)
    along = next((r for r in registers if r.arg[0][1:] in named), None)
    if along is None or registers[-1].arg[1] != "lane":
        return None
    inside = toposort(store.src[2], enter=lambda n: n.op is not ops.REDUCE)
    sums = [n for n in inside if n.op is ops.REDUCE and along in n.ranges]
    if not sums:  # it had one turn
        return None
    whole = [n for n in sums if n.ranges.issuperset(registers)]
    if not whole:
        raise StageError("kernel.steps", "an epilogue is made of a sum that fills all registers of its statement")
    node = max(whole, key=lambda n: count(n.src[0].ranges))
    others = tuple([r for r in registers if r is not along])
    rows = frozenset([r for r in others if r.arg[0][1:] in named[along.arg[0][1:]]])
    return _Tile(node, along, others, rows)


def _lanes_last(r: UOp) -> tuple[bool, tuple[int, ...]]:
    return r.arg[1] == "lane", r.arg[0]


# --- memory -------------------------------------------------------------------------------------


def _looped(store: UOp, tile: _Tile, held: UOp, lanes: int, numbers: Iterator[int]) -> list[UOp]:
    """The statement as one or two over the tile in memory."""
    columns = _columns(store, tile, numbers) if tile.lies_across else {}
    found: list[UOp] = []
    for each, gate in _alternatives(store, tile):
        new = _loops(tile, lanes, next(numbers))
        axes = [new[r] for r in tile.others]
        loops = [new[r] for r in tile.others if r not in tile.rows]
        sizes = [extent(r) for r in (*tile.others, tile.along)]
        total = UOp(ops.LOAD, tile.node.dtype, (held, flat_over([*axes, new[tile.along]], sizes)))
        table = {node: _read(memory, node, tile, new) for node, memory in columns.items()}
        (each,) = substitute([each], {tile.node: total, **table, **new})
        if new[tile.along].vmax >= extent(tile.along):
            each = gated(each, new[tile.along] < extent(tile.along))
        found.append(_with_turns(each, loops, gate))
    return found


def _held(tile: _Tile, lanes: int, numbers: Iterator[int]) -> UOp:
    """Scratch memory with the tile, innermost what becomes the lanes."""
    axes = (*tile.others, tile.along)
    if not tile.lies_across:
        return _filled(tile, axes, next(numbers))
    axes = (*tile.others[:-1], tile.along, tile.others[-1])
    written, number = _filled(tile, axes, next(numbers)), next(numbers)
    places = {r: _range(extent(r), (INNERMOST, number, place), "loop") for place, r in enumerate(axes)}
    value = UOp(ops.LOAD, tile.node.dtype, (written, flat(list(places.values()))))
    memory = _memory(tile, axes, number)
    copy = _store(memory, [places[r] for r in (*tile.others, tile.along)], value)
    return UOp(ops.AFTER, tile.node.dtype, (memory, in_vectors(copy, list(places.values()), number, lanes)))


def _filled(tile: _Tile, axes: Sequence[UOp], number: int) -> UOp:
    """Scratch memory with the registers as they are."""
    memory = _memory(tile, axes, number)
    return UOp(ops.AFTER, tile.node.dtype, (memory, _store(memory, axes, tile.node)))


def _memory(tile: _Tile, axes: Sequence[UOp], number: int) -> UOp:
    return UOp(ops.SCRATCH, tile.node.dtype, (), (number, count(axes), ALIGNMENT))


def _store(memory: UOp, axes: Sequence[UOp], value: UOp) -> UOp:
    return UOp(ops.STORE, dtypes.void, (memory, flat(axes), value))


def _range(turns: int, order: tuple[int, ...], kind: str) -> UOp:
    return UOp(ops.RANGE, dtypes.index, (index(turns),), (order, kind))


def _loops(tile: _Tile, lanes: int, number: int) -> dict[UOp, UOp]:
    """What the registers become: loops, and lanes (with a loop around them, where what become lanes are too many).

    The loops are outside of those that the sum does not vary with: another sum over the registers stands still there.
    """
    around = max((r.arg[0] for r in tile.node.ranges if r not in {*tile.others, tile.along}), default=(-1,))
    places = ((*around, number, place) for place in itertools.count())
    new = {r: r if r in tile.rows else _range(extent(r), next(places), "loop") for r in tile.others}
    if not tile.lies_across:
        return new | {tile.along: tile.along}
    width = min(lanes, 1 << (extent(tile.along) - 1).bit_length())
    blocks, lane = _range(-(-extent(tile.along) // width), next(places), "loop"), _range(width, next(places), "lane")
    return new | {tile.along: blocks * width + lane if extent(tile.along) > width else lane}


def _columns(store: UOp, tile: _Tile, numbers: Iterator[int]) -> dict[UOp, UOp]:
    """Scratch memory with dear values that do not vary along the new lanes, to which vectors of them are written."""
    registers = {*tile.others, tile.along}
    table: dict[UOp, UOp] = {}
    above = toposort(store.src[2], enter=lambda n: n.op is not ops.REDUCE)
    alone = {n for n in above if tile.along not in n.ranges and registers & n.ranges}
    used = {source for node in above if node not in alone for source in node.src}
    for node in above:
        if node in alone & used and node.op in ops.ELEMENTWISE and _cost(node) >= _DEAR:
            axes = [r for r in tile.others if r in node.ranges]
            memory = UOp(ops.SCRATCH, node.dtype, (), (next(numbers), count(axes), ALIGNMENT))
            table[node] = UOp(ops.AFTER, node.dtype, (memory, _store(memory, axes, node)))
    return table


def _read(filled: UOp, node: UOp, tile: _Tile, new: dict[UOp, UOp]) -> UOp:
    return UOp(ops.LOAD, node.dtype, (filled, flat([new[r] for r in tile.others if r in node.ranges])))


def _cost(node: UOp) -> int:
    return sum(own_cost(n) for n in toposort(node) if n.op in ops.ELEMENTWISE and n.dtype.is_float)


# --- statements ---------------------------------------------------------------------------------


def _alternatives(store: UOp, tile: _Tile) -> list[tuple[UOp, UOp | None]]:
    """The statement for either outcome of a choice that the whole tile shares, and where it is to run."""
    value, shared = store.src[2], tile.node.ranges.difference([*tile.others, tile.along])
    if value.op is not ops.WHERE or not value.src[0].ranges <= shared or tile.rows.issuperset(tile.others):
        return [(store, None)]
    gate, yes, no = value.src
    outcomes = (yes, gate), (no, ~gate)
    return [(store.replace(src=(*store.src[:2], value, *store.src[3:])), where) for value, where in outcomes]


def _with_turns(store: UOp, loops: Sequence[UOp], gate: UOp | None) -> UOp:
    """The statement with its loops merged where memory goes on, and no turns of them where there is a false gate."""
    (store,) = flatten(UOp(ops.SINK, dtypes.void, (store,)), frozenset(loops)).src
    if gate is None:
        return store
    first = by_order(r for r in store.ranges if r.arg[0] in {loop.arg[0] for loop in loops})[0]
    return replace_ranges([store], {first: first.replace(src=(gate.where(first.src[0], index(0)),))})[0]
