"""The order of keys: a radix sort from the lowest digit, as kernels.

`order_of(keys)` gives, for unsigned keys in rows, the int32 positions that sort each row; equal keys keep their
order.  For every digit the elements are counted by its value, and then each is stored where the counts say
that its value begins: time grows with the number of elements times that of the digits, memory with the
number of elements.  Long rows are counted and placed in blocks side by side; short ones are ranked by comparing
all pairs instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from lazulite.autograd.rules import reduced
from lazulite.autograd.scatter import scattered
from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.launches import launch
from lazulite.ir.uop import UOp, index
from lazulite.tensor.base import counted, expanded

_FEW = 64
"""Rows of up to so many elements are compared pair by pair."""
_LONG, _WIDE, _NARROW = 8192, 11, 8
"""From this length on digits have 11 bits, whose counts just fit the nearest cache; in shorter rows, where the
counts weigh more, they have 8."""
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


def order_of(keys: UOp, running_sum: Callable[[UOp], UOp]) -> UOp:
    """For each row of unsigned keys the positions of its elements in ascending order.

    `running_sum` adds up along the last axis.
    """
    order = counted(keys.shape, 1)
    if keys.shape[1] <= _FEW:
        nothing = expanded(UOp.const(dtypes.int32, 0), keys.shape)
        return scattered(None, nothing, [counted(keys.shape, 0), ranks(keys)], order)
    low = keys.cast(dtypes.uint32)
    order = _ordered(low, order, min(32, 8 * keys.dtype.itemsize), running_sum)
    if keys.dtype.itemsize <= 4:
        return order
    high = (keys >> 32).cast(dtypes.uint32)
    high = UOp(ops.GATHER, high.dtype, (high, counted(keys.shape, 0), order))
    return _ordered(high, order, 32, running_sum)


def _ordered(keys: UOp, order: UOp, bits: int, running_sum: Callable[[UOp], UOp]) -> UOp:
    """What stands in `order`, by keys of so many bits that lie in one word beside it, so that one store moves both."""
    rows, size = keys.shape
    passes = -(-bits // (_WIDE if size >= _LONG else _NARROW))
    width = -(-bits // passes)
    word = dtypes.uint32 if bits + (size - 1).bit_length() <= 32 else dtypes.uint64
    below = 8 * word.itemsize - bits
    words = (keys.cast(word) << below) | order.cast(word)
    blocks = max(1, min(_BLOCKS // rows, size // _BLOCK))
    long = -(-size // blocks)
    missing = blocks * long - size
    if missing:  # what fills the last block goes last
        above = UOp(ops.PAD, words.dtype, (expanded(UOp.const(words.dtype, 0), words.shape),), ((0, 0), (0, missing)))
        inside = counted(above.shape, 1) < size
        words = inside.where(UOp(ops.PAD, words.dtype, (words,), ((0, 0), (0, missing))), UOp.const(word, word.max))
    form = _Form(rows, blocks, long, word)
    empty = expanded(UOp.const(word, 0), words.shape)
    for shift in range(below, below + bits, width):
        nothing = expanded(UOp.const(dtypes.int32, 0), (rows * blocks, 1 << width))
        (counts,) = launch(_counting(form, shift, width), nothing, words)
        _, words = launch(_placing(form, shift, width), _starts(counts, form, running_sum), words, empty, fresh=(2,))
    ordered = (words & ((1 << below) - 1)).cast(dtypes.int32)
    return UOp(ops.SHRINK, ordered.dtype, (ordered,), ((0, rows), (0, size))) if missing else ordered


def _starts(counts: UOp, form: _Form, running_sum: Callable[[UOp], UOp]) -> UOp:
    """Where the words of each block with each digit begin in their row: behind lower digits, and earlier blocks."""
    digits = counts.shape[1]
    if form.blocks == 1:
        return running_sum(counts) - counts
    split = UOp(ops.RESHAPE, counts.dtype, (counts,), (form.rows, form.blocks, digits))
    turned = UOp(ops.PERMUTE, counts.dtype, (split,), (0, 2, 1))
    flat = UOp(ops.RESHAPE, counts.dtype, (turned,), (form.rows, digits * form.blocks))
    before = UOp(ops.RESHAPE, counts.dtype, (running_sum(flat) - flat,), (form.rows, digits, form.blocks))
    back = UOp(ops.PERMUTE, counts.dtype, (before,), (0, 2, 1))
    return UOp(ops.RESHAPE, counts.dtype, (back,), counts.shape)


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
def _counting(form: _Form, shift: int, width: int) -> UOp:
    """How many words of each block have each value of a digit."""
    counts = _memory(0, dtypes.int32, form.parts << width)
    words = _memory(1, form.word, form.parts * form.size)
    part, i = form.loop(), UOp.range(form.size, 1)
    place = counts[part * (1 << width) + _digit(words[part * form.size + i], shift, width)]
    return UOp.sink(place.store(place + 1), arg=KernelInfo("count_digits"))


@cache
def _placing(form: _Form, shift: int, width: int) -> UOp:
    """Each word to where the words of its block and digit have got to in its row."""
    starts = _memory(0, dtypes.int32, form.parts << width)
    words = _memory(1, form.word, form.parts * form.size)
    placed = _memory(2, form.word, form.parts * form.size)
    part, i = form.loop(), UOp.range(form.size, 1)
    word = words[part * form.size + i]
    start = starts[part * (1 << width) + _digit(word, shift, width)]
    row = form.size * form.blocks
    nearest = UOp.apply(
        ops.MAX, UOp.apply(ops.MIN, start, UOp.const(dtypes.int32, row - 1)), UOp.const(dtypes.int32, 0)
    )
    target = placed[part // form.blocks * row + nearest.cast(dtypes.index)]
    return UOp.sink(start.store(start + 1), target.store(word), arg=KernelInfo("place_by_digit"))
