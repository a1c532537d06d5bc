"""The linear algebra of the standard that is products and diagonals; decompositions are not here yet."""

from __future__ import annotations

from lazulite.interop.array_api.array import Array, array_of, wrapped
from lazulite.interop.array_api.kinds import promote, require_kind
from lazulite.interop.array_api.searching import matmul, matrix_transpose, tensordot, vecdot
from lazulite.ir.dtype import DType

__all__ = [
    "cross", "diagonal", "matmul", "matrix_transpose", "outer", "tensordot", "trace", "vecdot",
]  # fmt: skip


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Cross products of vectors of three elements."""
    require_kind("cross", "iuf", promote("cross", array_of("cross", x1).dtype, array_of("cross", x2).dtype))
    return wrapped(x1.cross(x2, dim=axis))


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """A diagonal of the last two axes."""
    return wrapped(array_of("diagonal", x).diagonal(offset, -2, -1))


def outer(x1: Array, x2: Array, /) -> Array:
    """The products of all pairs."""
    promote("outer", array_of("outer", x1).dtype, array_of("outer", x2).dtype)
    return wrapped(x1.outer(x2))


def trace(x: Array, /, *, offset: int = 0, dtype: DType | None = None) -> Array:
    """The sum of a diagonal of the last two axes."""
    require_kind("trace", "iuf", array_of("trace", x).dtype)
    return wrapped(x.diagonal(offset, -2, -1).sum(-1, dtype=dtype))
