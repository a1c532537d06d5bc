"""The loops that copy an operand into scratch memory, with vectors along whichever side is contiguous.

Takes a value that one load and what is done to it alone make up, and the axes of its copy.  Several ranges that walk
along one axis of the operand, as a window and its places do, share an axis of the copy: it holds every element
once, and the zeros around the operand.  Where the operand is contiguous along another axis than the copy, blocks are
loaded along the one and stored along the other.  The last block of an axis that does not fill up begins earlier and
copies some elements again, so that nothing has a gate for a remainder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from lazulite.analysis.access import coefficient
from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.blocks import memory_of
from lazulite.ir.bounds import Linear, difference, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, replace_ranges, substitute, toposort
from lazulite.kernel.flatten import flatten
from lazulite.kernel.nest import by_order, extent
from lazulite.simplify.terms import ZERO, multiple, plus

ALIGNMENT = 64
INNERMOST = 1 << 16
"""Copies come after all ranges that they may depend on."""
_COMPARISONS = (ops.LT, ops.LE, ops.EQ, ops.NE)
_SHORT = 4
"""Fewer neighbours than these are not worth a vector."""
_LINE_BYTES = 64
_SQUARE_BYTES = 16
"""How much of a row a block that is transposed takes: shuffles within these parts of a register are the fastest."""
_WIDE = 4
"""From which size of elements on a block that fills whole registers is no faster, and three times the text."""


class _Axis(NamedTuple):
    """An axis of a copy: its ranges, how far each moves along it, and the position where the first element lies."""

    ranges: tuple[UOp, ...]
    steps: tuple[int, ...]
    low: int
    size: int

    @property
    def position(self) -> UOp:
        """Where on the axis the ranges are."""
        place = index(-self.low)
        for r, step in zip(self.ranges, self.steps, strict=True):
            place = plus(multiple(r, step), place)
        return place


def copied(value: UOp, load: UOp, axes: Sequence[Sequence[UOp]], number: int, lanes: int) -> UOp:
    """A load from scratch memory in place of the value."""
    table = [_axis(load, ranges) for ranges in axes]
    size = math.prod(axis.size for axis in table)
    scratch = UOp(ops.SCRATCH, value.dtype, (), (number, size, ALIGNMENT))
    held, copies = _moved(value, table, number)
    store = UOp(ops.STORE, dtypes.void, (scratch, flat(copies), held))
    filled = UOp(ops.AFTER, value.dtype, (scratch, in_vectors(store, copies, number, lanes)))
    return UOp(ops.LOAD, value.dtype, (filled, flat_over([axis.position for axis in table], [a.size for a in table])))


def _axis(load: UOp, ranges: Sequence[UOp]) -> _Axis:
    if len(ranges) == 1:
        return _Axis(tuple(ranges), (1,), 0, extent(ranges[0]))
    moves = [coefficient(load.src[1], r) for r in ranges]
    if not all(moves) or any(r.src[0].op is not ops.CONST for r in ranges):
        raise StageError("kernel.steps", "ranges that share an axis of a copy must move along it by fixed steps")
    common = math.gcd(*[m for m in moves if m])
    steps = tuple([m // common for m in moves if m])
    reach = [step * (extent(r) - 1) for step, r in zip(steps, ranges, strict=True)]
    low, high = sum(min(d, 0) for d in reach), sum(max(d, 0) for d in reach)
    return _Axis(tuple(ranges), steps, low, high - low + 1)


def _moved(value: UOp, axes: Sequence[_Axis], number: int) -> tuple[UOp, list[UOp]]:
    """The value over loops of its own, one for each axis."""
    firsts = [min(axis.ranges, key=lambda r: r.arg[0]) for axis in axes]
    joint = {first: index(axis.size) for first, axis in zip(firsts, axes, strict=True) if len(axis.ranges) > 1}
    copies = own_ranges(value, firsts, number, dict.fromkeys(firsts, "loop"), joint)
    pairs = list(zip(axes, copies, strict=True))
    (value,) = substitute([value], {axis.ranges[0]: copy for axis, copy in pairs if len(axis.ranges) == 1})
    shared = [(axis, plus(copy, index(axis.low))) for axis, copy in pairs if len(axis.ranges) > 1]
    return _along(value, shared) if shared else value, copies


def own_ranges(
    value: UOp, axes: Sequence[UOp], number: int, kinds: Mapping[UOp, str], sizes: Mapping[UOp, UOp] | None = None
) -> list[UOp]:
    """The same ranges for a nest of its own, of these kinds and, where given, sizes; a loop may end where one further
    out says."""
    turns = {a: a.src[0] for a in axes} | dict(sizes or {})
    if any(size.op is not ops.CONST for size in turns.values()):
        known = set(toposort(value, enter=lambda n: n.op is not ops.RANGE))
        most = _ranges(axes, {a: _size_of(size, known) for a, size in turns.items()}, number, kinds)
        if _stays_inside(value, most):
            return [most[a] for a in axes]
    table = _ranges(axes, turns, number, kinds)
    return [table[a] for a in axes]


def _ranges(
    axes: Sequence[UOp], turns: Mapping[UOp, UOp], number: int, kinds: Mapping[UOp, str]
) -> dict[UOp, UOp]:  # fmt: skip
    table: dict[UOp, UOp] = {}
    for place, a in enumerate(by_order(axes)):
        size = turns[a] if turns[a].op is ops.CONST else substitute([turns[a]], table)[0]
        table[a] = UOp(ops.RANGE, dtypes.index, (size,), ((INNERMOST, number, place), kinds[a]))
    return table


def _stays_inside(value: UOp, table: Mapping[UOp, UOp]) -> bool:
    """Whether loads over these ranges read nothing beyond their memory: at turns that nobody wants they might."""
    for load in toposort(value, enter=lambda n: n.op is not ops.AFTER):
        if load.op is ops.LOAD:
            place = linear(load.src[1])
            terms = replace_ranges(list(place.terms), table)
            low, high = Linear(place.constant, dict(zip(terms, place.terms.values(), strict=True))).bounds
            if low < 0 or high >= _size(load.src[0]):
                return False
    return True


def _size(memory: UOp) -> int:
    memory = memory_of(memory)
    return int(memory.arg[1] if memory.op is ops.SCRATCH else memory.arg[1][0])


def _size_of(turns: UOp, known: set[UOp]) -> UOp:
    """The turns of a copy's range: the most there are where they vary with what the value does not vary with, so
    that the copy need not be redone."""
    varies = [node for node in toposort(turns) if not node.src and node.op is not ops.CONST]
    return turns if known.issuperset(varies) else index(max(int(turns.vmax), 0))


def _along(value: UOp, places: Sequence[tuple[_Axis, UOp]]) -> UOp:
    """The value with every index that moves along these axes at places of the copy's loops."""
    own, done = frozenset([r for axis, _ in places for r in axis.ranges]), dict[UOp, UOp]()
    for node in toposort(value, enter=lambda n: n.dtype is not dtypes.index and not _compares(n)):
        if own.isdisjoint(node.ranges):
            done[node] = node
        elif node.dtype is dtypes.index:
            done[node] = _replaced(linear(node), own, places)
        elif _compares(node):
            left, right = node.src  # each may move otherwise, only their distance counts
            done[node] = UOp(node.op, node.dtype, (ZERO, _replaced(difference(right, left), own, places)))
        else:
            src = tuple([done[s] for s in node.src])
            done[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return done[value]


def _compares(node: UOp) -> bool:
    return node.op in _COMPARISONS and node.src[0].dtype is dtypes.index


def _replaced(form: Linear, own: Set[UOp], places: Sequence[tuple[_Axis, UOp]]) -> UOp:
    terms = {term: factor for term, factor in form.terms.items() if term not in own}
    along = all(own.isdisjoint(term.ranges) for term in terms)
    for axis, place in places:
        factors = {form.terms.get(r, 0) / step for r, step in zip(axis.ranges, axis.steps, strict=True)}
        factor = factors.pop()
        along = along and not factors and factor == int(factor)
        if factor:
            terms[place] = int(factor)
    if not along:
        raise StageError("kernel.steps", "an index moves with the ranges of a shared axis otherwise than along it")
    total = index(form.constant)
    for term, times in terms.items():
        total = plus(multiple(term, times), total)
    return total


# --- loops --------------------------------------------------------------------------------------


def in_vectors(store: UOp, copies: Sequence[UOp], number: int, lanes: int) -> UOp:
    """The nest of loops of a copy."""
    sink = UOp(ops.SINK, dtypes.void, (store,))
    (store,) = flatten(sink, frozenset(copies)).src
    loops = by_order(r for r in store.ranges if r.arg[0][:2] == (INNERMOST, number))
    inside = toposort(store.src[2], enter=lambda n: n.op is not ops.AFTER)
    load = next(node for node in inside if node.op is ops.LOAD)
    within = [r for r in loops if r.src[0].op is ops.CONST and extent(r) > 1]
    read = max((r for r in within if coefficient(load.src[1], r) == 1), key=extent, default=None)
    written = next((r for r in within if coefficient(store.src[1], r) == 1), None)
    lane = read if read is not None and extent(read) >= _SHORT else written
    if lane is None or lanes == 1:
        return in_loops(store, loops)
    across = written is not None and written is not lane
    width = store.src[2].dtype.itemsize
    together = across and width < _WIDE and written is not None and coefficient(store.src[1], lane) == extent(written)
    most = min(lanes, max(2, _SQUARE_BYTES // width)) if across and not together else lanes
    beside = None if across else _beside(store, within, lane, lanes)
    registers = {lane: (min(most, 1 << (extent(lane) - 1).bit_length()), "lane")}
    if beside is not None:
        registers[beside] = min(_LINE_BYTES // (width * extent(lane)), extent(beside)), "row"
    if written is not None and across:
        registers[written] = min(lanes, extent(written)), "row"
    return _in_registers(store, loops, registers, lane if across else None)


def _beside(store: UOp, loops: Sequence[UOp], lane: UOp, lanes: int) -> UOp | None:
    """The range whose turns are written side by side with few lanes, so that together they fill a vector."""
    few = extent(lane)
    if few & (few - 1) or few * store.src[2].dtype.itemsize * 2 > _LINE_BYTES or few > lanes:
        return None
    return next((r for r in loops if coefficient(store.src[1], r) == few), None)


def _in_registers(
    store: UOp, loops: Sequence[UOp], registers: Mapping[UOp, tuple[int, str]], last: UOp | None
) -> UOp:  # fmt: skip
    """The nest with so many turns of some loops in registers of a kind; a gate where there are fewer.

    The loop over blocks of `last` is inside of all others: what is left of a line that was read is wanted next.
    """
    orders = {r: (*r.arg[0], 0) if r in registers else r.arg[0]
              for r in loops if r not in registers or extent(r) > registers[r][0]}  # fmt: skip
    if last is not None and last in orders:
        orders[last] = (*max(orders.values()), 1)
    outside, table, gates = [r for r in loops if r not in registers], dict[UOp, UOp](), list[UOp]()
    for r, (size, kind) in registers.items():
        turns, inner = extent(r), UOp(ops.RANGE, dtypes.index, (index(size),), ((*r.arg[0], 1), kind))
        table[r] = inner
        if turns > size:
            outer = r.replace(src=(index(-(-turns // size)),), arg=(orders[r], "loop"))
            outside.append(outer)
            table[r] = plus(outer * size if turns % size == 0 else (outer * size).minimum(turns - size), inner)
        elif turns < size:
            gates.append(inner < turns)
    (store,) = replace_ranges([store], table)
    for gate in gates:
        store = gated(store, gate)
    return in_loops(store, outside)


def gated(store: UOp, gate: UOp) -> UOp:
    """The store, and the loads that vary with the gate, only where it allows; also those that say where others load."""
    done: dict[UOp, UOp] = {}
    for node in toposort(store.src[2], enter=lambda n: n.op is not ops.AFTER):
        src = tuple([done.get(s, s) for s in node.src])
        if node.op is ops.LOAD and not node.ranges.isdisjoint(gate.ranges):
            src = (*src[:2], src[2] & gate if len(src) > 2 else gate)
        done[node] = node if src == node.src else node.replace(src=src)
    own = store.src[3] & gate if len(store.src) > 3 else gate
    return store.replace(src=(*store.src[:2], done[store.src[2]], own))


def in_loops(store: UOp, loops: Sequence[UOp]) -> UOp:
    """The statement in loops, those with a small order outside."""
    nest = store
    for r in reversed(by_order(r for r in loops if r.arg[1] == "loop")):
        nest = UOp(ops.FOR, dtypes.void, (r, nest), 0)
    return nest


def flat(ranges: Sequence[UOp]) -> UOp:
    """The row-major position over the ranges."""
    return flat_over(ranges, [extent(r) for r in ranges])


def flat_over(positions: Sequence[UOp], sizes: Sequence[int]) -> UOp:
    """The row-major position, given that on each axis and how long the axes are."""
    place, stride = ZERO, 1
    for position, size in reversed(list(zip(positions, sizes, strict=True))):
        place = plus(multiple(position, stride), place)
        stride *= size
    return place
