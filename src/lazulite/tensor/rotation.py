"""Reflections and rotations, as kernels: what orthogonal factors are made of.

Takes and gives `TENSOR` nodes of matrices as their columns, (batch, columns, rows), of float32 or float64.  The
kernels follow tables of columns, so their turns see what earlier ones left (`ir/launches.py`).  Elements should be
about 1 at most, as squares are summed.  Nothing here has a gradient: `tensor/decomposition.py` states those.
"""

from __future__ import annotations

from functools import cache

from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.launches import launch
from lazulite.ir.uop import UOp
from lazulite.tensor.base import counted, expanded
from lazulite.tensor.elimination import loop, memory, named, reduced_over, size_of

_SWEEPS = {dtypes.float32: 12, dtypes.float64: 15}
"""How often all pairs of columns are rotated; convergence is quadratic, and six to ten do in practice."""
_SMALL = {dtypes.float32: 2.0**-24, dtypes.float64: 2.0**-53}
"""The cosine from which on columns count as orthogonal."""


def reflected(columns: UOp) -> tuple[UOp, UOp]:
    """Householder's triangularisation: columns, and the diagonal of R.

    Behind its diagonal a column holds the rest of its reflection's vector, which has the element there minus R's on
    the diagonal; before it a column of R.
    """
    batch, n, m = columns.shape
    if n == 1:  # one more column, as a table of one is none
        columns = UOp(ops.PAD, columns.dtype, (columns,), ((0, 0), (0, 1), (0, 0)))
    count = columns.shape[1]
    diagonal = expanded(UOp.const(columns.dtype, 0), (batch, min(m, count)))
    left, diagonal = launch(_reflection(batch, count, m, columns.dtype), columns, counted((count,), 0), diagonal)
    steps = min(m, n)
    return _first(left, n), _first(diagonal, steps)


def rotated(columns: UOp, rows: int, firsts: UOp, seconds: UOp) -> UOp:
    """One-sided Jacobi: columns rotated in pairs until those of the first `rows` rows are orthogonal (Hestenes)."""
    batch, n, length = columns.shape
    if n == 1:
        return columns
    return launch(_rotation(batch, n, length, rows, firsts.shape[0], columns.dtype), columns, firsts, seconds)[0]


def _first(node: UOp, count: int) -> UOp:
    """The first places of axis 1."""
    box = ((0, node.shape[0]), (0, count), *[(0, size) for size in node.shape[2:]])
    return node if node.shape[1] == count else UOp(ops.SHRINK, node.dtype, (node,), box)


@cache
def _reflection(batch: int, n: int, m: int, dtype: DType) -> UOp:
    """For each step: the reflection that takes a column to its multiple of a unit vector, on all later columns."""
    steps = min(m, n)
    matrix, table = memory(0, dtype, batch * n * m), memory(1, dtypes.int32, n)
    diagonal = memory(2, dtype, batch * steps)
    lot, k, j, i, p, q = [loop(extent, order) for order, extent in enumerate((batch, steps, n, m, m, m))]
    own, other = [(lot * n + named(table[each], n)) * m for each in (k, j)]
    zero = UOp.const(dtype, 0)
    head, each = matrix[own + k], matrix[own + p]
    rest = reduced_over(ops.ADD, (p > k).where(each * each, zero), p)
    norm = UOp.apply(ops.SQRT, head * head + rest)
    nothing = rest.eq(0)
    corner = nothing.where(head, (head < 0).where(norm, -norm))
    share = nothing.where(zero, 1 / (norm * norm - head * corner))  # 2 / |v|^2

    def vector(place: UOp) -> UOp:
        element = matrix[own + place]
        return (place < k).where(zero, place.eq(k).where(element - corner, element))

    along = reduced_over(ops.ADD, vector(q) * matrix[other + q], q) * share
    changed = matrix[other + i] - along * vector(i)
    return UOp.sink(
        diagonal[lot * steps + k].store(corner),
        UOp(ops.STORE, dtypes.void, (matrix, other + i, changed, j > k)),
        arg=KernelInfo("reflect"),
    )


@cache
def _rotation(batch: int, n: int, length: int, rows: int, pairs: int, dtype: DType) -> UOp:
    """For each pair of columns, again and again: the rotation that makes them orthogonal."""
    matrix, firsts, seconds = memory(0, dtype, batch * n * length), *[memory(s, dtypes.int32, pairs) for s in (1, 2)]
    extents = (batch, _SWEEPS[dtype] * pairs, length, rows)
    lot, turn, i, p = [loop(extent, order) for order, extent in enumerate(extents)]
    one, two = [(lot * n + named(table[turn % pairs], n)) * length for table in (firsts, seconds)]
    x, y = matrix[one + p], matrix[two + p]
    alpha, beta, gamma = [reduced_over(ops.ADD, a * b, p) for a, b in ((x, x), (y, y), (x, y))]
    zero, unit = UOp.const(dtype, 0), UOp.const(dtype, 1)
    apart = size_of(gamma) <= UOp.apply(ops.SQRT, alpha * beta) * _SMALL[dtype]
    zeta = (beta - alpha) / (apart.where(unit, gamma) * 2)
    tangent = (zeta < 0).where(-unit, unit) / (size_of(zeta) + UOp.apply(ops.SQRT, zeta * zeta + 1))
    cosine = apart.where(unit, 1 / UOp.apply(ops.SQRT, tangent * tangent + 1))
    sine = apart.where(zero, cosine * tangent)
    left, right = matrix[one + i], matrix[two + i]
    return UOp.sink(
        matrix[one + i].store(left * cosine - right * sine),
        matrix[two + i].store(left * sine + right * cosine),
        arg=KernelInfo("rotate"),
    )
