"""What a kernel makes of a tile of results, in loops over the tile that run along memory.

Takes the kernel after its schedule steps, its sums in blocks made partial ones (`lower/accumulate.py`).  Carries out
`Epilogue`: the rows and lanes of a sum go to scratch memory as they are, a copy has the tile across, and the rest of
the statement becomes loops over the tile whose lanes are what were rows, so that the result and all that is read
beside it are contiguous.  What varies with the old lanes alone, and is dear, is still computed in those, once for a
tile.  A choice that is the same for the whole tile, as between a partial sum and the finished result, becomes two
statements of which one has no turns.  The values are the same; only one vector of the tile is written out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lazulite.analysis.kinds import own_cost
from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, replace_ranges, substitute, toposort
from lazulite.kernel.flatten import flatten
from lazulite.kernel.nest import by_order, count, extent
from lazulite.kernel.steps import Epilogue, Name, Step
from lazulite.lower.copy_nest import ALIGNMENT, INNERMOST, flat, flat_over, gated, in_vectors

_DEAR = 4
"""From which cost on a value of the columns is not computed again for each of them."""


@dataclass(frozen=True, slots=True)
class _Tile:
    """The registers of a sum, and the memory that holds them."""

    node: UOp
    row: UOp
    """The rows along memory."""
    columns: tuple[UOp, ...]
    """The other ones and the lanes, outermost first."""
    numbers: Iterator[int]


def loop_epilogues(sink: UOp, steps: Iterable[Step]) -> UOp:
    """The kernel with every `Epilogue` carried out."""
    named = {step.range for step in steps if isinstance(step, Epilogue)}
    if not named:
        return sink
    nodes = toposort(sink)
    numbers = itertools.count(1 + max((n.arg[0] for n in nodes if n.op is ops.SCRATCH), default=-1))
    lanes = max((extent(n) for n in nodes if n.op is ops.RANGE and n.arg[1] == "lane"), default=1)
    stores: list[UOp] = []
    for store in sink.src:
        tile = _tile(store, named, numbers)
        stores += [store] if tile is None else _looped(store, tile, lanes)
    return sink.replace(src=tuple(stores))


def _tile(store: UOp, named: set[Name], numbers: Iterator[int]) -> _Tile | None:
    """The tile of a statement; None where none of its rows are named, or where a remainder has no lanes."""
    registers = sorted((r for r in store.src[1].ranges if r.arg[1] in ("row", "lane")), key=_lanes_last)
    row = next((r for r in registers if r.arg[0][1:] in named and r.arg[1] == "row"), None)
    if row is None or registers[-1].arg[1] != "lane":
        return None
    inside = toposort(store.src[2], enter=lambda n: n.op is not ops.REDUCE)
    sums = [n for n in inside if n.op is ops.REDUCE and row in n.ranges]
    if not sums:  # it had one turn
        return None
    if len(sums) > 1 or not sums[0].ranges.issuperset(registers):
        raise StageError("kernel.steps", "an epilogue is made of one sum, which fills all registers of its statement")
    return _Tile(sums[0], row, tuple([r for r in registers if r is not row]), numbers)


def _lanes_last(r: UOp) -> tuple[bool, tuple[int, ...]]:
    return r.arg[1] == "lane", r.arg[0]


# --- memory -------------------------------------------------------------------------------------


def _looped(store: UOp, tile: _Tile, lanes: int) -> list[UOp]:
    """The statement as one or two over the tile in memory."""
    across = _across(tile, lanes)
    columns = _columns(store, tile)
    found: list[UOp] = []
    for each, gate in _alternatives(store):
        new = _loops(tile, lanes)
        axes = [new[r] for r in tile.columns]
        sizes = [extent(r) for r in (*tile.columns, tile.row)]
        total = UOp(ops.LOAD, tile.node.dtype, (across, flat_over([*axes, new[tile.row]], sizes)))
        table = {node: _read(memory, node, tile, new) for node, memory in columns.items()}
        (each,) = substitute([each], {tile.node: total, **table, **new})
        if new[tile.row].vmax >= extent(tile.row):
            each = gated(each, new[tile.row] < extent(tile.row))
        found.append(_with_turns(each, axes, gate))
    return found


def _across(tile: _Tile, lanes: int) -> UOp:
    """Scratch memory with the tile, its rows innermost."""
    axes = (*tile.columns[:-1], tile.row, tile.columns[-1])
    number = next(tile.numbers)
    memory = [
        UOp(ops.SCRATCH, tile.node.dtype, (), (each, count(axes), ALIGNMENT)) for each in (number, next(tile.numbers))
    ]
    written = UOp(ops.AFTER, tile.node.dtype, (memory[0], _store(memory[0], axes, tile.node)))
    places = {r: _range(extent(r), number, place, "loop") for place, r in enumerate(axes)}
    value = UOp(ops.LOAD, tile.node.dtype, (written, flat(list(places.values()))))
    copy = _store(memory[1], [places[r] for r in (*tile.columns, tile.row)], value)
    return UOp(ops.AFTER, tile.node.dtype, (memory[1], in_vectors(copy, list(places.values()), number, lanes)))


def _store(memory: UOp, axes: Sequence[UOp], value: UOp) -> UOp:
    return UOp(ops.STORE, dtypes.void, (memory, flat(axes), value))


def _range(turns: int, number: int, place: int, kind: str) -> UOp:
    return UOp(ops.RANGE, dtypes.index, (index(turns),), ((INNERMOST, number, place), kind))


def _loops(tile: _Tile, lanes: int) -> dict[UOp, UOp]:
    """What the registers become: the columns loops, the rows lanes (a loop around them, where there are too many)."""
    number = next(tile.numbers)
    new = {r: _range(extent(r), number, place, "loop") for place, r in enumerate(tile.columns)}
    width = min(lanes, 1 << (extent(tile.row) - 1).bit_length())
    lane = _range(width, number, len(new) + 1, "lane")
    if extent(tile.row) > width:
        new[tile.row] = _range(-(-extent(tile.row) // width), number, len(new), "loop") * width + lane
    else:
        new[tile.row] = lane
    return new


def _columns(store: UOp, tile: _Tile) -> dict[UOp, UOp]:
    """Scratch memory with the dear values that vary with the columns alone, to which vectors of them are written."""
    registers = {*tile.columns, tile.row}
    table: dict[UOp, UOp] = {}
    above = toposort(store.src[2], enter=lambda n: n is not tile.node)
    alone = {n for n in above if n is not tile.node and tile.row not in n.ranges and registers & n.ranges}
    used = {source for node in above if node not in alone for source in node.src}
    for node in above:
        if node in alone & used and node.op in ops.ELEMENTWISE and _cost(node) >= _DEAR:
            axes = [r for r in tile.columns if r in node.ranges]
            memory = UOp(ops.SCRATCH, node.dtype, (), (next(tile.numbers), count(axes), ALIGNMENT))
            table[node] = UOp(ops.AFTER, node.dtype, (memory, _store(memory, axes, node)))
    return table


def _read(filled: UOp, node: UOp, tile: _Tile, new: dict[UOp, UOp]) -> UOp:
    return UOp(ops.LOAD, node.dtype, (filled, flat([new[r] for r in tile.columns if r in node.ranges])))


def _cost(node: UOp) -> int:
    return sum(own_cost(n) for n in toposort(node) if n.op in ops.ELEMENTWISE and n.dtype.is_float)


# --- statements ---------------------------------------------------------------------------------


def _alternatives(store: UOp) -> list[tuple[UOp, UOp | None]]:
    """The statement for either outcome of a choice that the whole tile shares, and where it is to run."""
    value = store.src[2]
    if value.op is not ops.WHERE or any(r.arg[1] in ("row", "lane") for r in value.src[0].ranges):
        return [(store, None)]
    gate, yes, no = value.src
    outcomes = (yes, gate), (no, ~gate)
    return [(store.replace(src=(*store.src[:2], value, *store.src[3:])), where) for value, where in outcomes]


def _with_turns(store: UOp, axes: Sequence[UOp], gate: UOp | None) -> UOp:
    """The statement with its loops merged where memory goes on, and no turns of them where there is a false gate."""
    (store,) = flatten(UOp(ops.SINK, dtypes.void, (store,)), frozenset(axes)).src
    if gate is None:
        return store
    first = by_order(r for r in store.ranges if r.arg[0] in {axis.arg[0] for axis in axes})[0]
    return replace_ranges([store], {first: first.replace(src=(gate.where(first.src[0], index(0)),))})[0]
