"""Helpers that write kernels by hand whose statements run one after another in memory of the thread.

`Nests` knows the loop around the statements, numbers the ranges in the order in which they are asked for, and gives
scratch memory that begins anew in every turn of that loop.  The functions write elements, loops and memory after them.
"""

from __future__ import annotations

from itertools import count

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp, index

COUNT = dtypes.uint32
CHUNK = 16
"""How many counts are added up together: those of a vector."""
_ALIGNMENT = 64


class Nests:
    """The statements for a row, and the loop over the rows around them."""

    def __init__(self, rows: int) -> None:
        self._orders, self._memories = count(), count()
        self.row = UOp.range(rows, next(self._orders)) if rows > 1 else index(0)

    def turn(self, turns: int) -> UOp:
        """The range of the next loop."""
        return UOp.range(turns, next(self._orders))

    def scratch(self, dtype: DType, size: int) -> UOp:
        """Memory of a row."""
        memory = UOp(ops.SCRATCH, dtype, (), (next(self._memories), size, _ALIGNMENT))
        return memory if self.row.op is ops.CONST else memory.after(self.row)

    def added_up(self, counts: UOp, lines: int, size: int) -> UOp:
        """For each count of a line the sum of all before it: of whole chunks, and of those in its own."""
        chunks = size // CHUNK
        line, chunk, j = self.turn(lines), self.turn(chunks), self.turn(CHUNK)
        sums = self.scratch(COUNT, lines * chunks)
        total = added(at(counts, (line * chunks + chunk) * CHUNK + j), j)
        sums = filled(sums, line, loop(chunk, at(sums, line * chunks + chunk).store(total)))
        line, chunk, j, other, k = [self.turn(turns) for turns in (lines, chunks, CHUNK, chunks, CHUNK)]
        begin, zero = (line * chunks + chunk) * CHUNK, UOp.const(COUNT, 0)
        before = added((other < chunk).where(at(sums, line * chunks + other), zero), other)
        within = added((k < j).where(at(counts, begin + k), zero), k)
        starts = self.scratch(COUNT, lines * size)
        return filled(starts, line, loop(chunk, loop(j, at(starts, begin + j).store(before + within))))


def at(memory: UOp, place: UOp) -> UOp:
    """An element, or where to store one."""
    return UOp(ops.LOAD, memory.dtype, (memory, place))


def added(value: UOp, r: UOp) -> UOp:
    """The sum over a range."""
    return UOp(ops.REDUCE, value.dtype, (value, r), (ops.ADD, ()))


def loop(r: UOp, *effects: UOp) -> UOp:
    """The effects in each turn of a range."""
    return UOp(ops.FOR, dtypes.void, (r, *effects), 0)


def filled(memory: UOp, r: UOp, *effects: UOp) -> UOp:
    """The memory after effects in each turn of a range."""
    return memory.after(loop(r, *effects))


def clamped(place: UOp, size: int) -> UOp:
    """A place as an index that shows its bounds."""
    place = UOp.apply(ops.MIN, place, UOp.const(place.dtype, size - 1))
    return (place if place.dtype.min == 0 else UOp.apply(ops.MAX, place, UOp.const(place.dtype, 0))).cast(dtypes.index)
