"""torch.linalg's names: the Tensor methods as functions, and what takes several tensors.

`Tensor.vander` and `pinv` have NumPy's and torch's defaults respectively; see the methods for all else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.tensor.functions_of_matrices import product
from lazulite.tensor.guard import guard_module
from lazulite.tensor.linalg import LeastSquares
from lazulite.tensor.tensor import Tensor

cholesky, cond, det, slogdet = Tensor.cholesky, Tensor.cond, Tensor.det, Tensor.slogdet
eigh, eigvalsh, qr = Tensor.eigh, Tensor.eigvalsh, Tensor.qr
inv, solve_triangular = Tensor.inv, Tensor.solve_triangular
matrix_exp, matrix_norm, matrix_power = Tensor.matrix_exp, Tensor.matrix_norm, Tensor.matrix_power
tensorinv, tensorsolve, vector_norm = Tensor.tensorinv, Tensor.tensorsolve, Tensor.vector_norm
matmul = Tensor.matmul


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """`Tensor.solve`: X with A @ X = B, or without `left` X @ A = B.

    >>> solve(Tensor([[2.0]]), Tensor([[4.0]]), left=False).tolist()
    [[2.0]]
    """
    return A.solve(B) if left else A.transpose(-2, -1).solve(B.transpose(-2, -1)).transpose(-2, -1)


def lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """`Tensor.lu`, which always exchanges rows; ArgumentError without `pivot`."""
    _check_pivot("lu", pivot)
    return A.lu()


def lu_factor(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:
    """`Tensor.lu_factor`, which always exchanges rows; ArgumentError without `pivot`."""
    _check_pivot("lu_factor", pivot)
    return A.lu_factor()


def _check_pivot(function: str, pivot: bool) -> None:
    if not pivot:
        raise ArgumentError(function, "elimination without exchanges is not stable; it is not here")


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """`Tensor.svdvals`; torch's `driver` says which library computes, and changes nothing here."""
    return A.svdvals()


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:
    """`Tensor.lstsq`; torch's `driver` says which library computes, and changes nothing here."""
    return A.lstsq(B, rcond)


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """`Tensor.svd`; torch's `driver` says which library computes, and changes nothing here."""
    return A.svd(full_matrices)


def pinv(A: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """`Tensor.pinv`; with `atol` singular values up to it count as zero, too.

    >>> pinv(Tensor([[2.0, 0.0], [0.0, 0.5]]), atol=1.0).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    return A.pinv(_relative(A, atol, rtol), hermitian)


def matrix_rank(A: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Tensor:
    """`Tensor.matrix_rank` with torch's names of the limits."""
    return A.matrix_rank(atol, rtol, hermitian)


def _relative(A: Tensor, atol: Any, rtol: Any) -> Any:
    """One relative limit for both."""
    if atol is None:
        return rtol
    most = A.svdvals().max(-1, keepdim=True)
    limit = atol / (most > 0).where(most, 1)
    return limit if rtol is None else limit.maximum(rtol)


def norm(A: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """`Tensor.vector_norm`, or `Tensor.matrix_norm` over two axes if `ord` is given and there are two.

    >>> norm(Tensor([[3.0, 4.0]])).item(), norm(Tensor([[3.0, -4.0]]), 1).item()
    (5.0, 4.0)
    """
    axes = dim if dim is not None else tuple(range(A.ndim)) if ord is not None else None
    if ord is not None and isinstance(axes, tuple | list) and len(axes) == 2:
        return A.matrix_norm(ord, (axes[0], axes[1]), keepdim, dtype)
    return A.vector_norm(2 if ord is None else ord, dim, keepdim, dtype)


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """`Tensor.vander` with ascending powers.

    >>> vander(Tensor([2, 3]), 3).tolist()
    [[1, 2, 4], [1, 3, 9]]
    """
    return x.vander(N, increasing=True)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of a chain of matrices (its ends may be vectors), in the order that takes the fewest steps.

    >>> multi_dot([Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]]), Tensor([[2.0]])]).tolist()
    [[22.0]]
    """
    if len(tensors) < 2:
        raise ShapeError("multi_dot", f"two tensors or more are needed, got {len(tensors)}")
    first, *inner, last = tensors
    chain = [first if first.ndim == 2 else first.unsqueeze(0), *inner, last if last.ndim == 2 else last.unsqueeze(1)]
    result = product(chain)
    result = result if first.ndim == 2 else result.squeeze(0)
    return result if last.ndim == 2 else result.squeeze(-1)


guard_module(globals())
