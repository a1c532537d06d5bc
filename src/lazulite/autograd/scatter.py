"""The way back from positions: values combined at the places that positions name.

Takes and gives `TENSOR` nodes.  `scattered` is the adjoint of GATHER (with ADD), and what scattering
methods and item assignment are made of.  It is one pass over the values, in row-major order, so the last
of several values at one place is that which stays, and a float sum adds them one after another (half
precision in float32), or, of many values, in a fixed number of blocks, each with a sum of its own.  Axes whose
positions are 0, 1, 2, .. along an axis of their own lead: each of their elements is scattered by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count

from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo
from lazulite.ir.dtype import NARROW, DType, dtypes
from lazulite.ir.infer import Shape
from lazulite.ir.launches import launch
from lazulite.ir.ops import Op
from lazulite.ir.size import least, max_shape, most, room
from lazulite.ir.uop import UOp, index
from lazulite.ir.widest import cut, widest

_LONG, _BLOCKS, _LANES = 1 << 16, 64, 16
"""From so many values on sums are made in blocks, and in how many at most; many blocks fill vectors."""


def scattered(op: Op | None, into: UOp, positions: Sequence[UOp], values: UOp) -> UOp:
    """`into` with result[p(i).., j..] = values[i.., j..], combined by `op` with what is there; None replaces it.

    The int32 positions, of one shape, are for the first axes of `into`.  What goes outside is dropped.
    """
    if 0 in into.shape or 0 in values.shape:
        return into
    if op in (ops.ADD, ops.MUL) and into.dtype in NARROW:
        wide = scattered(op, into.cast(dtypes.float32), positions, values.cast(dtypes.float32))
        return wide.cast(into.dtype)
    aligned = _aligned(into.shape, positions)
    searched = [axis for axis in range(len(positions)) if axis not in aligned]
    rank, kept = len(positions[0].shape), list(aligned.values())
    order = kept + [axis for axis in range(rank) if axis not in kept]
    axes = [*aligned, *searched, *range(len(positions), len(into.shape))]
    held, places = _moved(into, axes), [_moved(positions[axis], order) for axis in searched]
    place = widest(_flat_place(places, [into.shape[axis] for axis in searched]), -1)
    values = widest(_moved(values, [*order, *range(rank, len(values.shape))]))
    form = _form(max_shape(into.shape), max_shape(positions[0].shape), aligned, searched)
    blocks = form.blocks if op is ops.ADD else 1
    result = _run(op, widest(held), place, values, form) if blocks < 2 else _in_blocks(
        widest(held), place, values, form, blocks
    )  # fmt: skip
    return _moved(cut(result, held.shape), sorted(range(len(axes)), key=axes.__getitem__))


def _run(op: Op | None, into: UOp, place: UOp, values: UOp, form: _Form) -> UOp:
    kernel = _kernel(op, into.dtype, place.dtype, form)
    return launch(kernel, into, place, values, gradient=_gradient(op, into.dtype, place.dtype, form))[0]


def _in_blocks(into: UOp, place: UOp, values: UOp, form: _Form, blocks: int) -> UOp:
    """Sums of blocks of positions, which threads make side by side, and their sum; the number of threads has no say."""
    length = -(-form.count // blocks)
    missing = blocks * length - form.count
    place = UOp(ops.RESHAPE, place.dtype, (place,), (form.count,))
    values = UOp(ops.RESHAPE, values.dtype, (values,), (form.count, form.rest))
    if missing:
        every = UOp(ops.PAD, dtypes.bool, (_filled(UOp.const(dtypes.bool, True), True, place.shape),), ((0, missing),))
        place = every.where(UOp(ops.PAD, place.dtype, (place,), ((0, missing),)), -1)
        values = UOp(ops.PAD, values.dtype, (values,), ((0, missing), (0, 0)))
    place = UOp(ops.RESHAPE, place.dtype, (place,), (blocks, length))
    own = _Form(((blocks, blocks),), length, form.places, form.rest)
    nothing = _filled(values, 0, (blocks, form.places, form.rest))
    sums = UOp(ops.REDUCE, into.dtype, (_run(ops.ADD, nothing, place, values, own),), (ops.ADD, (0,)))
    return into + UOp(ops.RESHAPE, into.dtype, (sums,), into.shape)


@dataclass(frozen=True, slots=True)
class _Form:
    """The loops of a scatter: for each leading axis how many elements there are, and how many places; then the
    positions under each of these, the places that they search, and the elements of a value."""

    lead: tuple[tuple[int, int], ...]
    count: int
    places: int
    rest: int

    @property
    def memory(self) -> int:
        """The elements of what is scattered into."""
        return math.prod(size for _, size in self.lead) * self.places * self.rest

    @property
    def positions(self) -> int:
        return math.prod(turns for turns, _ in self.lead) * self.count

    @property
    def blocks(self) -> int:
        """In how many blocks the positions of a sum are taken; all their places are at most two for a position."""
        if math.prod(turns for turns, _ in self.lead) > 1 or self.count * self.rest < _LONG:
            return 1
        blocks = min(_BLOCKS, 2 * self.count // self.places)
        return blocks - blocks % _LANES if blocks > _LANES else blocks


def _form(into: Shape, positions: Shape, aligned: Mapping[int, int], searched: Sequence[int]) -> _Form:
    """The loops for positions of one shape on the first axes of what they are scattered into."""
    rank = len(aligned) + len(searched)
    return _Form(
        tuple([(positions[along], into[axis]) for axis, along in aligned.items()]),
        math.prod(size for axis, size in enumerate(positions) if axis not in aligned.values()),
        math.prod(into[axis] for axis in searched),
        math.prod(into[rank:]),
    )


@cache
def _kernel(op: Op | None, dtype: DType, place_type: DType, form: _Form) -> UOp:
    """For each position in order: one value combined with what lies at its place."""
    sizes = (form.memory, form.positions, form.positions * form.rest)
    types = (dtype, place_type, dtype)
    into, places, values = [_param(t, slot, (size,)) for slot, (t, size) in enumerate(zip(types, sizes, strict=True))]
    orders = count()
    base, number = index(0), index(0)
    for turns, size in form.lead:
        turn = _turn(turns, orders)
        base, number = base * size + turn, number * turns + turn
    number = number * form.count + _turn(form.count, orders)
    element = _turn(form.rest, orders)
    place = places[number]
    inside = (place >= 0) & (place < form.places)
    if form.places > 1:  # shows that what lies under one leading element never meets the next
        place = _number(ops.MAX, _number(ops.MIN, place, form.places - 1), 0)
    target = (base * form.places + place.cast(dtypes.index)) * form.rest + element
    value = values[number * form.rest + element]
    if op is not None:
        value = UOp.apply(op, UOp(ops.LOAD, dtype, (into, target, inside)), value)
    return UOp.sink(UOp(ops.STORE, dtypes.void, (into, target, value, inside)), arg=KernelInfo("scatter"))


def _number(op: Op, x: UOp, value: int) -> UOp:
    return UOp.apply(op, x, UOp.const(x.dtype, value))


def _turn(turns: int, orders: count[int]) -> UOp:
    """The number of a turn of the next loop."""
    order = next(orders)
    return index(0) if turns == 1 else UOp.range(turns, order)


# --- the gradient ------------------------------------------------------------------------------


@cache
def _gradient(op: Op | None, dtype: DType, place_type: DType, form: _Form) -> tuple[UOp | None, ...]:
    """What reaches `into`, nothing for the positions, and what reaches the values."""
    if not dtype.is_float:
        return ()
    lead, turns = tuple([size for _, size in form.lead]), tuple([turns for turns, _ in form.lead])
    into_shape, value_shape = (*lead, form.places, form.rest), (*turns, form.count, form.rest)
    shapes = (into_shape, (*turns, form.count), value_shape)
    count, types = len(shapes), (dtype, place_type, dtype)
    into, place, values = [_param(t, slot, s) for slot, (t, s) in enumerate(zip(types, shapes, strict=True))]
    result, upstream = _param(dtype, count, into_shape), _param(dtype, 2 * count, into_shape)
    terms = _Terms(form, into, place, values, result, upstream)
    if op is ops.ADD:
        return upstream, None, terms.at_places(upstream)
    if op is None:
        return terms.of_replacement()
    return terms.of_product() if op is ops.MUL else terms.of_extremum()


def _param(dtype: DType, slot: int, shape: Shape) -> UOp:
    return UOp(ops.PARAM, dtype, (), (slot, shape, ""))


@dataclass(frozen=True, slots=True)
class _Terms:
    """What a gradient is made of: what the kernel took and gave, and what reaches its result."""

    form: _Form
    into: UOp
    place: UOp
    values: UOp
    result: UOp
    upstream: UOp

    def at_places(self, x: UOp) -> UOp:
        """For each value what `x` holds at its place; 0 where it was dropped."""
        shape = self.place.shape
        positions = [_counted(shape, axis) for axis in range(len(shape) - 1)]
        return UOp(ops.GATHER, x.dtype, (x, *positions, self.place.cast(dtypes.int32)))

    def combined(self, op: Op | None, into: UOp, values: UOp) -> UOp:
        """Other values scattered to the same places."""
        kernel = _kernel(op, into.dtype, self.place.dtype, self.form)
        return launch(kernel, into, self.place, values)[0]

    def of_replacement(self) -> tuple[UOp | None, ...]:
        """The last value at a place gets what reaches the place, and then what was there gets nothing."""
        shape = self.values.shape
        numbers = UOp(ops.IOTA, dtypes.int32, (), math.prod(shape))
        numbers = UOp(ops.RESHAPE, dtypes.int32, (numbers,), shape)
        last = self.combined(None, _filled(numbers, -1, self.into.shape), numbers)
        chosen = self.at_places(last).eq(numbers) & _beside(self.place >= 0, shape)
        return (last < 0).where(self.upstream, 0), None, chosen.where(self.at_places(self.upstream), 0)

    def of_product(self) -> tuple[UOp | None, ...]:
        """The product of the others: with one zero among the factors only that one gets something."""
        into_zero, zero = self.into.eq(0), self.values.eq(0)
        zeros = self.combined(ops.ADD, into_zero.cast(dtypes.int32), zero.cast(dtypes.int32))
        others = self.combined(ops.MUL, _without_zeros(self.into), _without_zeros(self.values))

        def share(own: UOp, is_zero: UOp, zeros: UOp, others: UOp) -> UOp:
            with_zero = zeros.eq(1).where(others, 0)
            return is_zero.where(with_zero, zeros.eq(0).where(others / _without_zeros(own), 0))

        picked = [self.at_places(x) for x in (zeros, others, self.upstream)]
        return (
            self.upstream * share(self.into, into_zero, zeros, others), None,
            picked[2] * share(self.values, zero, *picked[:2]),
        )  # fmt: skip

    def of_extremum(self) -> tuple[UOp | None, ...]:
        """Ties share equally."""
        into_chosen = self.into.eq(self.result)
        chosen = self.values.eq(self.at_places(self.result)) & _beside(self.place >= 0, self.values.shape)
        ties = self.combined(ops.ADD, into_chosen.cast(dtypes.int32), chosen.cast(dtypes.int32))
        share = self.upstream / _number(ops.MAX, ties, 1).cast(self.upstream.dtype)
        return into_chosen.where(share, 0), None, chosen.where(self.at_places(share), 0)


def _without_zeros(factors: UOp) -> UOp:
    return factors.eq(0).where(UOp.const(factors.dtype, 1), factors)


# --- positions and axes ----------------------------------------------------------------------------


def _aligned(shape: Shape, positions: Sequence[UOp]) -> dict[int, int]:
    """For each axis whose positions count along an axis of their own: that axis.  One axis is left to search."""
    found: dict[int, int] = {}
    for axis, position in enumerate(positions):
        along = _counted_axis(position)
        if along is not None and along not in found.values() and least(shape[axis] - position.shape[along]) >= 0:
            found[axis] = along
    if len(found) == len(positions):
        found.popitem()
    return found


def _counted_axis(position: UOp) -> int | None:
    """The axis along which positions are 0, 1, 2, .., if they are built to be."""
    inner = position.src[0] if position.op is ops.EXPAND else position
    base = inner.src[0] if inner.op is ops.RESHAPE else inner
    axes = [axis for axis, size in enumerate(inner.shape) if size != 1]
    if base.op is not ops.IOTA or len(axes) != 1:
        return None
    return axes[0] + len(position.shape) - len(inner.shape)


def _flat_place(places: Sequence[UOp], sizes: Sequence[int]) -> UOp:
    """Positions on several axes as one number, by the largest sizes, -1 where one lies outside."""
    dtype = dtypes.int32 if room(sizes) <= dtypes.int32.max else dtypes.int64
    flat, inside = places[0].cast(dtype), (places[0] >= 0) & (places[0] < sizes[0])
    for place, size in zip(places[1:], sizes[1:], strict=True):
        flat, inside = flat * most(size) + place.cast(dtype), inside & ((place >= 0) & (place < size))
    return inside.where(flat, -1)


def _moved(node: UOp, order: Sequence[int]) -> UOp:
    """The axes in another order."""
    return node if list(order) == list(range(len(order))) else UOp(ops.PERMUTE, node.dtype, (node,), tuple(order))


def _counted(shape: Shape, axis: int) -> UOp:
    """0, 1, 2, .. along an axis."""
    numbers = UOp(ops.IOTA, dtypes.int32, (), shape[axis])
    line = UOp(ops.RESHAPE, dtypes.int32, (numbers,), (shape[axis],) + (1,) * (len(shape) - axis - 1))
    return UOp(ops.EXPAND, dtypes.int32, (line,), shape)


def _beside(gate: UOp, shape: Shape) -> UOp:
    """A gate for each value, repeated for its elements."""
    column = UOp(ops.RESHAPE, gate.dtype, (gate,), (*gate.shape, 1))
    return UOp(ops.EXPAND, gate.dtype, (column,), shape)


def _filled(like: UOp, value: int, shape: Shape) -> UOp:
    return UOp(ops.EXPAND, like.dtype, (UOp.const(like.dtype, value),), shape)
