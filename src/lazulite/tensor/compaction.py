"""Positions of true elements, put together without gaps.

`positions_of` takes a vector of bools, and for each element how many true ones there are up to it, and gives the
int32 positions of the first true ones.  How many there are need not be known: what is false is stored as well, to
places that nobody reads, so no branch depends on the values, and blocks of the vector are taken side by side.
"""

from __future__ import annotations

from functools import cache

from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo
from lazulite.ir.dtype import dtypes
from lazulite.ir.launches import launch
from lazulite.ir.uop import UOp, index
from lazulite.tensor.base import expanded

_BLOCK, _BLOCKS = 8192, 16
"""The least size of a block, and how many there are at most."""
_APART = 16
"""Blocks store what is false this far apart, so that no two write to one line of the caches."""


def positions_of(flags: UOp, numbers: UOp, size: int) -> UOp:
    """The positions of the first `size` true flags, then -1; `numbers` counts the true ones up to each."""
    (room,) = flags.shape
    blocks = max(1, min(_BLOCKS, room // _BLOCK))
    nothing = expanded(UOp.const(dtypes.int32, -1), (size + blocks * _APART,))
    (found,) = launch(_kernel(room, blocks, size), nothing, flags, numbers)
    return UOp(ops.SHRINK, found.dtype, (found,), ((0, size),))


@cache
def _kernel(room: int, blocks: int, size: int) -> UOp:
    """Each position to its place, or, where its flag is false, to the place of its block behind all others."""
    types = (dtypes.int32, dtypes.bool, dtypes.int32)
    sizes = (size + blocks * _APART, room, room)
    found, flags, numbers = [UOp(ops.PARAM, dtype, (), (slot, (count,), ""))
                             for slot, (dtype, count) in enumerate(zip(types, sizes, strict=True))]  # fmt: skip
    length = -(-room // blocks)
    block = index(0) if blocks == 1 else UOp(ops.RANGE, dtypes.index, (index(blocks),), ((0,), "parallel"))
    i = UOp.range(length, 1) if length > 1 else index(0)
    position = block * length + i
    is_one = position < room
    flag = UOp(ops.LOAD, dtypes.bool, (flags, position, is_one))
    number = UOp(ops.LOAD, dtypes.int32, (numbers, position, is_one))
    aside = (block * _APART + size).cast(dtypes.int32)
    place = (flag & (number <= size)).where(number - 1, aside)
    last = UOp.const(dtypes.int32, size + blocks * _APART - 1)
    shown = UOp.apply(ops.MAX, UOp.apply(ops.MIN, place, last), UOp.const(dtypes.int32, 0))
    return UOp.sink(found[shown.cast(dtypes.index)].store(position.cast(dtypes.int32)), arg=KernelInfo("compact"))
