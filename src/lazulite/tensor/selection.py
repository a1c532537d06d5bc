"""The first elements in order, without an order of the others.

A row is cut into chunks.  Those whose least elements come first hold all that is wanted: so the chunks are ordered by
their least keys, and the elements of as many chunks as elements are wanted are ordered after that, both in the
same way.  With chunks of the square root of how many times the wanted ones fit into the row, either is about as long:
one pass over the row, and memory for a part of it.  Equal keys keep their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lazulite.autograd.rules import reduced
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import counted, expanded
from lazulite.tensor.radix import FEW, order_of

_SHORTEST = 4
"""Shorter chunks leave too much to order."""
_SMALL = 1 << 13
"""So many elements are ordered in less time than it takes to build a graph that leaves some out."""
Keys = Callable[[UOp], UOp]
"""Unsigned integers in the order of some elements."""


def first_of(x: UOp, keys: Keys, size: int, count: int) -> UOp:
    """For each row the int32 positions of its `count` first elements by their keys, in order.

    Only the first `size` elements of a row count, which is a size that may vary, and at least `count`.
    """
    rows, room = x.shape
    length = math.isqrt(room // max(count, 1))
    if room <= FEW or length < _SHORTEST or rows * room <= _SMALL:
        order = order_of(_inside(keys(x), counted(x.shape, 1), size))
        return UOp(ops.SHRINK, order.dtype, (order,), ((0, rows), (0, count)))
    least = _least(_inside(keys(x), counted(x.shape, 1), size), length)
    chunks = first_of(least, _themselves, least.shape[1], count)
    if count > 1:  # in the order in which they lie, as equal keys are to come
        chunks = _picked(chunks, order_of(chunks.cast(_holding(least.shape[1]))))
    column = UOp(ops.RESHAPE, chunks.dtype, (chunks,), (rows, count, 1))
    shape = (rows, count, length)
    places = expanded(column, shape) * length + counted(shape, 2)
    places = UOp(ops.RESHAPE, places.dtype, (places,), (rows, count * length))
    order = first_of(_inside(keys(_picked(x, places)), places, size), _themselves, count * length, count)
    return _picked(places, order)


def _themselves(keys: UOp) -> UOp:
    return keys


def _inside(keys: UOp, places: UOp, size: int) -> UOp:
    """The keys of elements at these places of their rows; what lies behind the last element comes last."""
    return (places < size).where(keys, UOp.const(keys.dtype, keys.dtype.max))


def _least(keys: UOp, length: int) -> UOp:
    """The least key of each chunk."""
    rows, room = keys.shape
    chunks = -(-room // length)
    missing = ((0, 0), (0, chunks * length - room))
    if missing[1][1]:
        whole = expanded(UOp.const(dtypes.bool, True), keys.shape)
        last = UOp.const(keys.dtype, keys.dtype.max)
        keys = UOp(ops.PAD, dtypes.bool, (whole,), missing).where(UOp(ops.PAD, keys.dtype, (keys,), missing), last)
    cut = UOp(ops.RESHAPE, keys.dtype, (keys,), (rows, chunks, length))
    return UOp(ops.RESHAPE, keys.dtype, (reduced(ops.MIN, cut, (2,)),), (rows, chunks))


def _picked(x: UOp, places: UOp) -> UOp:
    """The elements of each row at positions."""
    return UOp(ops.GATHER, x.dtype, (x, counted(places.shape, 0), places))


def _holding(count: int) -> DType:
    """The narrowest unsigned type for so many numbers."""
    return next(t for t in (dtypes.uint8, dtypes.uint16, dtypes.uint32) if count - 1 <= t.max)
