"""The linear algebra of the standard; what would be complex (`eig`, `eigvals`) it does not have."""

from __future__ import annotations

from typing import Any, NamedTuple

from lazulite.interop.array_api.array import Array, array_of, wrapped
from lazulite.interop.array_api.kinds import promote, require_kind
from lazulite.interop.array_api.searching import matmul, matrix_transpose, tensordot, vecdot
from lazulite.ir.dtype import DType

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm",
]  # fmt: skip


class Eigh(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


class QR(NamedTuple):
    """An orthogonal and an upper triangular matrix."""

    Q: Array
    R: Array


class Slogdet(NamedTuple):
    """The sign of a determinant and the logarithm of its magnitude."""

    sign: Array
    logabsdet: Array


class SVD(NamedTuple):
    """Singular vectors on the left, singular values, and singular vectors on the right in rows."""

    U: Array
    S: Array
    Vh: Array


def _matrix(name: str, x: Array) -> Array:
    require_kind(name, "f", array_of(name, x).dtype)
    return array_of(name, x)


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """The triangular root of a positive definite matrix."""
    return wrapped(_matrix("cholesky", x).cholesky(upper))


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Cross products of vectors of three elements."""
    require_kind("cross", "iuf", promote("cross", array_of("cross", x1).dtype, array_of("cross", x2).dtype))
    return wrapped(x1.cross(x2, dim=axis))


def det(x: Array, /) -> Array:
    """The determinant."""
    return wrapped(_matrix("det", x).det())


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """A diagonal of the last two axes."""
    return wrapped(array_of("diagonal", x).diagonal(offset, -2, -1))


def eigh(x: Array, /) -> Eigh:
    """The eigenvalues, ascending, and eigenvectors of a symmetric matrix."""
    return Eigh(*map(wrapped, _matrix("eigh", x).eigh()))


def eigvalsh(x: Array, /) -> Array:
    """The eigenvalues of a symmetric matrix, ascending."""
    return eigh(x).eigenvalues


def inv(x: Array, /) -> Array:
    """The inverse."""
    return wrapped(_matrix("inv", x).inv())


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """A norm of matrices."""
    return wrapped(_matrix("matrix_norm", x).matrix_norm(ord, keepdim=keepdims))


def matrix_power(x: Array, n: int, /) -> Array:
    """A matrix multiplied with itself."""
    return wrapped(_matrix("matrix_power", x).matrix_power(n))


def matrix_rank(x: Array, /, *, rtol: Any = None) -> Array:
    """How many singular values are not negligible."""
    return wrapped(_matrix("matrix_rank", x).matrix_rank(rtol=rtol))


def outer(x1: Array, x2: Array, /) -> Array:
    """The products of all pairs."""
    promote("outer", array_of("outer", x1).dtype, array_of("outer", x2).dtype)
    return wrapped(x1.outer(x2))


def pinv(x: Array, /, *, rtol: Any = None) -> Array:
    """The pseudo-inverse."""
    return wrapped(_matrix("pinv", x).pinv(rtol=rtol))


def qr(x: Array, /, *, mode: str = "reduced") -> QR:
    """The factors Q and R."""
    return QR(*map(wrapped, _matrix("qr", x).qr(mode)))


def slogdet(x: Array, /) -> Slogdet:
    """The sign and the logarithm of the magnitude of the determinant."""
    return Slogdet(*map(wrapped, _matrix("slogdet", x).slogdet()))


def solve(x1: Array, x2: Array, /) -> Array:
    """What times the first gives the second."""
    promote("solve", _matrix("solve", x1).dtype, _matrix("solve", x2).dtype)
    return wrapped(x1.solve(x2))


def svd(x: Array, /, *, full_matrices: bool = True) -> SVD:
    """Singular values and vectors."""
    return SVD(*map(wrapped, _matrix("svd", x).svd(full_matrices)))


def svdvals(x: Array, /) -> Array:
    """The singular values, descending."""
    return wrapped(_matrix("svdvals", x).svdvals())


def trace(x: Array, /, *, offset: int = 0, dtype: DType | None = None) -> Array:
    """The sum of a diagonal of the last two axes."""
    require_kind("trace", "iuf", array_of("trace", x).dtype)
    return wrapped(x.diagonal(offset, -2, -1).sum(-1, dtype=dtype))


def vector_norm(
    x: Array, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: Any = 2
) -> Array:
    """A norm of vectors."""
    return wrapped(_matrix("vector_norm", x).vector_norm(ord, axis, keepdim=keepdims))
