"""Elimination and substitution, as kernels: what solving is made of.

Takes and gives `TENSOR` nodes of matrices (batch, rows, columns) of float32 or float64.  The kernels follow tables of
rows, so their turns see what earlier ones left (`ir/launches.py`).  Nothing here has a gradient: `tensor/solving.py`
states those of the functions.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.launches import launch
from lazulite.ir.uop import UOp, index
from lazulite.tensor.base import counted, expanded


class Factors(NamedTuple):
    """PA = LU: both triangles in one matrix, whose rows still stand where those of A did."""

    packed: UOp
    rows: UOp
    """The rows of A in the order of PA."""
    exchanges: UOp
    """For each step the place of the row that was exchanged with the step's own."""


def factored(a: UOp, pivoting: bool) -> Factors:
    """Gaussian elimination; with partial pivoting the largest element of a column is its pivot.

    A pivot of zero leaves its column alone.
    """
    batch, m, n = a.shape
    nothing = expanded(UOp.const(dtypes.int32, 0), (batch, min(m, n)))
    rows = counted((batch, m), 1)
    if m == 1:
        return Factors(a, rows, nothing)
    results = launch(_elimination(batch, m, n, a.dtype, pivoting), a, rows, nothing)
    return Factors(*results) if pivoting else Factors(results[0], rows, counted((batch, min(m, n)), 1))


def substituted(triangle: UOp, right: UOp, lower: bool) -> UOp:
    """X with T X = B, for columns as rows: B and X are (batch, columns, rows).

    T has ones on its diagonal; only its other elements on one side of it are read.
    """
    batch, columns, n = right.shape
    if n == 1:
        return right
    rows = counted((n,), 0)
    rows = rows if lower else UOp.const(dtypes.int32, n - 1) - rows
    return launch(_substitution(batch, n, columns, right.dtype, lower), right, triangle, rows)[0]


# --- kernels -------------------------------------------------------------------------------------


def memory(slot: int, dtype: DType, size: int) -> UOp:
    """An argument of a kernel."""
    return UOp(ops.PARAM, dtype, (), (slot, (size,), ""))


def loop(extent: int, order: int) -> UOp:
    return index(0) if extent == 1 else UOp.range(extent, order)


def named(place: UOp, size: int) -> UOp:
    """A number read from memory, as an index that shows its bounds."""
    low, high = [UOp.const(place.dtype, end) for end in (0, size - 1)]
    return UOp.apply(ops.MAX, UOp.apply(ops.MIN, place, high), low).cast(dtypes.index)


def reduced_over(op: ops.Op, value: UOp, over: UOp) -> UOp:
    return UOp(ops.REDUCE, value.dtype, (value, over), (op, ())) if over.op is ops.RANGE else value


def size_of(x: UOp) -> UOp:
    return (x < 0).where(-x, x)


@cache
def _elimination(batch: int, m: int, n: int, dtype: DType, pivoting: bool) -> UOp:
    """For each step: find the pivot, exchange the rows in the table, take multiples of one row from those below."""
    steps = min(m, n)
    matrix, rows = memory(0, dtype, batch * m * n), memory(1, dtypes.int32, batch * m)
    exchanges = memory(2, dtypes.int32, batch * steps)
    lot, k, i, j, p, q = [loop(extent, order) for order, extent in enumerate((batch, steps, m, n, m, m))]

    def row(place: UOp) -> UOp:
        return (lot * m + named(rows[lot * m + place], m)) * n

    step = k.cast(dtypes.int32)
    exchange: list[UOp] = []
    pivot_row = row(k)
    if pivoting:
        nothing, far = UOp.const(dtype, -1), UOp.const(dtypes.int32, m)
        best = reduced_over(ops.MAX, (p >= k).where(size_of(matrix[row(p) + k]), nothing), p)
        is_best = (q >= k) & size_of(matrix[row(q) + k]).eq(best)
        at = reduced_over(ops.MIN, is_best.where(q.cast(dtypes.int32), far), q)
        at = at.eq(far).where(step, at)  # NaN is nobody's equal
        place = lot * m + named(at, m)
        own, other = rows[lot * m + k], rows[place]
        pivot_row = (lot * m + named(other, m)) * n
        # What is stored first is made of all that the next store needs, so that both are read before.
        first = rows[lot * m + k].store(at.eq(step).where(own, other))
        exchange = [exchanges[lot * steps + k].store(at), first, rows[place].store(own)]
    pivot, element = matrix[pivot_row + k], matrix[row(i) + k]
    factor = pivot.eq(0).where(UOp.const(dtype, 0), element / pivot)
    below, left = i > k, matrix[row(i) + j] - factor * matrix[pivot_row + j]
    return UOp.sink(
        *exchange,
        UOp(ops.STORE, dtypes.void, (matrix, row(i) + k, factor, below)),
        UOp(ops.STORE, dtypes.void, (matrix, row(i) + j, left, below & (j > k))),
        arg=KernelInfo("eliminate"),
    )


@cache
def _substitution(batch: int, n: int, columns: int, dtype: DType, lower: bool) -> UOp:
    """For each row in the order of the table: take away what the rows before it contribute."""
    solved, triangle = memory(0, dtype, batch * columns * n), memory(1, dtype, batch * n * n)
    rows = memory(2, dtypes.int32, n)
    lot, c, i, p = [loop(extent, order) for order, extent in enumerate((batch, columns, n, n))]
    row, column = named(rows[i], n), (lot * columns + c) * n
    terms = triangle[(lot * n + row) * n + p] * solved[column + p]
    known = p < row if lower else row < p
    taken = reduced_over(ops.ADD, known.where(terms, UOp.const(dtype, 0)), p)
    return UOp.sink(solved[column + row].store(solved[column + row] - taken), arg=KernelInfo("substitute"))
