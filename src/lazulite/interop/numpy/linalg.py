"""`numpy.linalg` without the functions whose results are complex."""

from __future__ import annotations

from typing import Any

from lazulite.base.errors import ArgumentError
from lazulite.interop.elementwise import as_tensor
from lazulite.interop.numpy.products import cross as _cross
from lazulite.interop.numpy.products import matmul, multi_dot, outer, tensordot, vecdot
from lazulite.interop.numpy.shapes import matrix_transpose
from lazulite.tensor.base import float_dtype
from lazulite.tensor.linalg import LeastSquares
from lazulite.tensor.tensor import Tensor

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve",
    "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def _matrix(a: Any) -> Tensor:
    tensor = as_tensor(a)
    return tensor.cast(float_dtype(tensor.dtype))


# --- factors -----------------------------------------------------------------------------------------


def cholesky(a: Any, /, *, upper: bool = False) -> Tensor:
    """The triangular root of a positive definite matrix; NaN for another one."""
    return _matrix(a).cholesky(upper)


def qr(a: Any, mode: str = "reduced") -> Any:
    """The factors Q and R; R alone in mode "r"."""
    q, r = _matrix(a).qr(mode)
    return r if mode == "r" else (q, r)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Singular vectors on the left, values, and vectors on the right in rows; the values alone without `compute_uv`."""
    return _matrix(a).svd(full_matrices) if compute_uv else svdvals(a)


def svdvals(x: Any, /) -> Tensor:
    """The singular values, descending."""
    return _matrix(x).svdvals()


def eigh(a: Any, UPLO: str = "L") -> tuple[Tensor, Tensor]:
    """The eigenvalues, ascending, and eigenvectors of a symmetric matrix."""
    return _matrix(a).eigh(UPLO)


def eigvalsh(a: Any, UPLO: str = "L") -> Tensor:
    """The eigenvalues of a symmetric matrix, ascending."""
    return _matrix(a).eigvalsh(UPLO)


# --- equations ---------------------------------------------------------------------------------------


def inv(a: Any) -> Tensor:
    """The inverse."""
    return _matrix(a).inv()


def pinv(a: Any, rcond: float | None = None, hermitian: bool = False, *, rtol: float | None = None) -> Tensor:
    """The pseudo-inverse; singular values up to a share of the largest count as zero, by NumPy's default 1e-15."""
    limit = rtol if rcond is None else rcond
    return _matrix(a).pinv(1e-15 if limit is None else limit, hermitian)


def solve(a: Any, b: Any) -> Tensor:
    """What times the first gives the second; of a vector, or of matrices."""
    return _matrix(a).solve(_matrix(b))


def lstsq(a: Any, b: Any, rcond: float | None = None) -> LeastSquares:
    """The solution with the least squares, residuals, the rank, and the singular values."""
    return _matrix(a).lstsq(_matrix(b), rcond)


def tensorinv(a: Any, ind: int = 2) -> Tensor:
    """The inverse of a tensor for `tensordot` over `ind` axes."""
    return _matrix(a).tensorinv(ind)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tensor:
    """What the tensor takes to the other one."""
    return _matrix(a).tensorsolve(_matrix(b), axes)


# --- numbers -----------------------------------------------------------------------------------------


def det(a: Any) -> Tensor:
    """The determinant."""
    return _matrix(a).det()


def slogdet(a: Any) -> tuple[Tensor, Tensor]:
    """The sign of the determinant and the logarithm of its magnitude."""
    return _matrix(a).slogdet()


def matrix_rank(A: Any, tol: float | None = None, hermitian: bool = False, *, rtol: float | None = None) -> Tensor:
    """How many singular values are not negligible."""
    tensor = _matrix(A)
    if len(tensor.shape) < 2:
        return tensor.ne(0).any().cast("int32")
    return tensor.matrix_rank(tol, rtol, hermitian)


def cond(x: Any, p: Any = None) -> Tensor:
    """How much the solution of an equation may differ for a small change."""
    return _matrix(x).cond(p)


def norm(x: Any, ord: Any = None, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Tensor:
    """A norm of a vector or a matrix; of all elements without `ord` and `axis`."""
    tensor = _matrix(x)
    rank = len(tensor.shape)
    axes = (axis,) if isinstance(axis, int) else axis
    if axes is None and ord is not None:
        axes = tuple(range(rank))
    if axes is not None and len(axes) == 2 and ord is not None:
        return tensor.matrix_norm(ord, (axes[0], axes[1]), keepdims)
    if axes is not None and len(axes) > 2:
        raise ArgumentError("norm", f"a norm is over one axis or two, got {axes}")
    return tensor.vector_norm(2 if ord is None else ord, axes, keepdims)


def vector_norm(
    x: Any, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: Any = 2
) -> Tensor:
    """A norm of vectors, of all elements by default."""
    return _matrix(x).vector_norm(ord, axis, keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """A norm of the matrices of the last two axes."""
    return _matrix(x).matrix_norm("fro" if ord is None else ord, keepdim=keepdims)


# --- products and diagonals --------------------------------------------------------------------------


def matrix_power(a: Any, n: int) -> Tensor:
    """A matrix multiplied with itself, or with its inverse."""
    return as_tensor(a).matrix_power(n)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Cross products of vectors of three elements."""
    return _cross(x1, x2, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """A diagonal of the last two axes."""
    return as_tensor(x).diagonal(offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal of the last two axes."""
    return diagonal(x, offset=offset).sum(-1, dtype=dtype)
