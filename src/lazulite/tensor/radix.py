"""The order of keys: a radix sort from the lowest digit, as kernels.

`order_of(keys)` gives, for unsigned keys in rows, the int32 positions that sort each row; equal keys keep their
order.  For every digit the elements are counted by its value, and then each is stored where the counts say
that its value begins: time grows with the number of elements times that of the digits, memory with the
number of elements.  Short rows are ranked by comparing all pairs instead.
"""

from __future__ import annotations

from collections.abc import Callable
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
    """What stands in `order`, by 32-bit keys that beside it lie in one word, so that one store moves both."""
    words = (keys.cast(dtypes.uint64) << 32) | order.cast(dtypes.uint64)
    rows, size = words.shape
    width = _WIDE if size >= _LONG else _NARROW
    empty = expanded(UOp.const(dtypes.uint64, 0), words.shape)
    for shift in range(32, 32 + bits, width):
        nothing = expanded(UOp.const(dtypes.int32, 0), (rows, 1 << width))
        (counts,) = launch(_counting(rows, size, shift, width), nothing, words)
        _, words = launch(_placing(rows, size, shift, width), running_sum(counts) - counts, words, empty)
    return words.cast(dtypes.int32)


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


def _loop(extent: int, order: int) -> UOp:
    return index(0) if extent == 1 else UOp.range(extent, order)


def _digit(word: UOp, shift: int, width: int) -> UOp:
    """The value of a digit, as an index that shows its bounds."""
    return ((word >> shift) & ((1 << width) - 1)).cast(dtypes.index)


@cache
def _counting(rows: int, size: int, shift: int, width: int) -> UOp:
    """How many words of each row have each value of a digit."""
    counts, words = _memory(0, dtypes.int32, rows << width), _memory(1, dtypes.uint64, rows * size)
    row, i = _loop(rows, 0), UOp.range(size, 1)
    place = counts[row * (1 << width) + _digit(words[row * size + i], shift, width)]
    return UOp.sink(place.store(place + 1), arg=KernelInfo("count_digits"))


@cache
def _placing(rows: int, size: int, shift: int, width: int) -> UOp:
    """Each word to where the words of its digit have got to."""
    starts, words = _memory(0, dtypes.int32, rows << width), _memory(1, dtypes.uint64, rows * size)
    placed = _memory(2, dtypes.uint64, rows * size)
    row, i = _loop(rows, 0), UOp.range(size, 1)
    word = words[row * size + i]
    start = starts[row * (1 << width) + _digit(word, shift, width)]
    last = UOp.const(dtypes.int32, size - 1)
    nearest = UOp.apply(ops.MAX, UOp.apply(ops.MIN, start, last), UOp.const(dtypes.int32, 0))
    target = placed[row * size + nearest.cast(dtypes.index)]
    return UOp.sink(start.store(start + 1), target.store(word), arg=KernelInfo("place_by_digit"))
