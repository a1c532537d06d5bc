"""The order of keys: a radix sort from the lowest digit, as kernels.

`order_of(keys)` gives, for unsigned keys in rows, the int32 positions that sort each row; equal keys keep their
order.  For every digit the elements are counted by its value, and then each is stored where the counts say
that its value begins: time grows with the number of elements times that of the digits, memory with the
number of elements.  Long rows are counted and placed in blocks side by side; short ones are ranked by comparing
all pairs instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from lazulite.autograd.rules import reduced
from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.launches import launch
from lazulite.ir.uop import UOp, index
from lazulite.tensor.base import counted, expanded
from lazulite.tensor.nests import COUNT, Nests, added, at, clamped, filled
from lazulite.tensor.row_sort import order_of_rows

FEW = 128
"""Rows of up to so many elements are compared pair by pair."""
_WIDE = 11
"""The bits of a digit: its counts just fit the nearest cache."""
_BLOCK, _BLOCKS = 8192, 16
"""The least size of the blocks in which a row is counted and placed, by all threads, and how many there are of all
rows at most."""


@dataclass(frozen=True, slots=True)
class _Form:
    """Rows of words in blocks of one size, which are counted and placed side by side."""

    rows: int
    blocks: int
    size: int
    word: DType

    @property
    def parts(self) -> int:
        return self.rows * self.blocks

    def loop(self) -> UOp:
        """The number of a block; no two blocks write to one place."""
        if self.parts == 1:
            return index(0)
        return UOp(ops.RANGE, dtypes.index, (index(self.parts),), ((0,), "parallel"))


def order_of(keys: UOp) -> UOp:
    """For each row of unsigned keys the positions of its elements in ascending order."""
    if keys.shape[1] <= FEW:
        empty = expanded(UOp.const(dtypes.int32, 0), keys.shape)
        return launch(_by_rank(*keys.shape), empty, ranks(keys), fresh=(0,))[0]
    if keys.dtype.itemsize <= 4:
        return _ordered(keys, None)
    order = _ordered(keys.cast(dtypes.uint32), None)
    high = (keys >> 32).cast(dtypes.uint32)
    high = UOp(ops.GATHER, high.dtype, (high, counted(keys.shape, 0), order))
    return _ordered(high, order)


def _ordered(keys: UOp, order: UOp | None) -> UOp:
    """What stands in `order`, or the positions, by keys of up to 32 bits."""
    rows, size = keys.shape
    blocks = min(_BLOCKS // rows, size // _BLOCK)
    if blocks < 2:
        return order_of_rows(keys, order)
    return _in_blocks(keys, counted(keys.shape, 1) if order is None else order, blocks)


def _in_blocks(keys: UOp, order: UOp, blocks: int) -> UOp:
    """The order by keys that lie in one word beside it, so that one store moves both."""
    (rows, size), bits = keys.shape, keys.dtype.bits
    passes = -(-bits // _WIDE)
    width = -(-bits // passes)
    word = dtypes.uint32 if bits + (size - 1).bit_length() <= 32 else dtypes.uint64
    below = 8 * word.itemsize - bits
    words = (keys.cast(word) << below) | order.cast(word)
    long = -(-size // blocks)
    missing = blocks * long - size
    if missing:  # what fills the last block goes last
        above = UOp(ops.PAD, words.dtype, (expanded(UOp.const(words.dtype, 0), words.shape),), ((0, 0), (0, missing)))
        inside = counted(above.shape, 1) < size
        words = inside.where(UOp(ops.PAD, words.dtype, (words,), ((0, 0), (0, missing))), UOp.const(word, word.max))
    form = _Form(rows, blocks, long, word)
    empty = expanded(UOp.const(word, 0), words.shape)
    for shift in range(below, below + bits, width):
        nothing = expanded(UOp.const(COUNT, 0), (rows * blocks, 1 << width))
        (counts,) = launch(_counting(form, shift, width), nothing, words)
        (starts,) = launch(_starting(form, width), nothing, counts, fresh=(0,))
        _, words = launch(_placing(form, shift, width), starts, words, empty, fresh=(2,))
    ordered = (words & ((1 << below) - 1)).cast(dtypes.int32)
    return UOp(ops.SHRINK, ordered.dtype, (ordered,), ((0, rows), (0, size))) if missing else ordered


def ranks(keys: UOp) -> UOp:
    """How many keys along the last axis are smaller than each, or equal and earlier, as int32."""
    size, full = keys.shape[-1], (*keys.shape, keys.shape[-1])
    own = expanded(UOp(ops.RESHAPE, keys.dtype, (keys,), (*keys.shape, 1)), full)
    other = expanded(UOp(ops.RESHAPE, keys.dtype, (keys,), (*keys.shape[:-1], 1, size)), full)
    earlier = counted(full, len(full) - 1) < counted(full, len(full) - 2)
    before = (other < own) | (other.eq(own) & earlier)
    found = reduced(ops.ADD, before.cast(dtypes.int32), (len(full) - 1,))
    return UOp(ops.RESHAPE, dtypes.int32, (found,), keys.shape)


# --- kernels -------------------------------------------------------------------------------------


def _memory(slot: int, dtype: DType, size: int) -> UOp:
    return UOp(ops.PARAM, dtype, (), (slot, (size,), ""))


def _digit(word: UOp, shift: int, width: int) -> UOp:
    """The value of a digit, as an index that shows its bounds."""
    return ((word >> shift) & ((1 << width) - 1)).cast(dtypes.index)


@cache
def _by_rank(rows: int, size: int) -> UOp:
    """The position of each element to where its rank in the row says."""
    order, rank = (_memory(slot, dtypes.int32, rows * size) for slot in range(2))
    row, i = UOp.range(rows, 0) if rows > 1 else index(0), UOp.range(size, 1) if size > 1 else index(0)
    target = order[row * size + clamped(rank[row * size + i], size)]
    return UOp.sink(target.store(i.cast(dtypes.int32)), arg=KernelInfo("place_by_rank"))


@cache
def _counting(form: _Form, shift: int, width: int) -> UOp:
    """How many words of each block have each value of a digit."""
    counts = _memory(0, COUNT, form.parts << width)
    words = _memory(1, form.word, form.parts * form.size)
    part, i = form.loop(), UOp.range(form.size, 1)
    place = counts[part * (1 << width) + _digit(words[part * form.size + i], shift, width)]
    return UOp.sink(place.store(place + 1), arg=KernelInfo("count_digits"))


@cache
def _starting(form: _Form, width: int) -> UOp:
    """Where the words of each block with each digit begin in their row: behind lower digits, and earlier blocks."""
    nests, digits = Nests(form.rows), 1 << width
    starts, counts = (_memory(slot, COUNT, form.parts * digits) for slot in range(2))
    first = nests.row * form.blocks
    totals, d, block = nests.scratch(COUNT, digits), nests.turn(digits), nests.turn(form.blocks)
    totals = filled(totals, d, at(totals, d).store(added(at(counts, (first + block) * digits + d), block)))
    before = nests.added_up(totals, 1, digits)
    block, d, other = nests.turn(form.blocks), nests.turn(digits), nests.turn(form.blocks)
    earlier = added((other < block).where(at(counts, (first + other) * digits + d), UOp.const(COUNT, 0)), other)
    target = at(starts, (first + block) * digits + d)
    return UOp.sink(target.store(at(before, d) + earlier), arg=KernelInfo("add_up_counts"))


@cache
def _placing(form: _Form, shift: int, width: int) -> UOp:
    """Each word to where the words of its block and digit have got to in its row."""
    starts = _memory(0, COUNT, form.parts << width)
    words = _memory(1, form.word, form.parts * form.size)
    placed = _memory(2, form.word, form.parts * form.size)
    part, i = form.loop(), UOp.range(form.size, 1)
    word = words[part * form.size + i]
    start = starts[part * (1 << width) + _digit(word, shift, width)]
    row = form.size * form.blocks
    target = placed[part // form.blocks * row + clamped(start, row)]
    return UOp.sink(start.store(start + 1), target.store(word), arg=KernelInfo("place_by_digit"))
