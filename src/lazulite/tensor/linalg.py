"""Linear algebra: matrices in the last two axes, anything before them a batch.

Results of floats keep their type (half precision is computed in float32), integers count as floats of the default
type.  The bodies are `tensor/solving.py` and `tensor/decomposition.py`, brought along when a method is first called.
A singular matrix gives inf and NaN where PyTorch and NumPy raise: nothing is computed before somebody looks.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir.dtype import dtypes
from lazulite.tensor.base import float_dtype, one_axis, wide_dtype
from lazulite.tensor.norms import NormMethods
from lazulite.tensor.sorting import SortMethods

_MOST_STEPS = 1000
"""Newton and Schulz's iteration has long converged, or never will."""
_MOST_POWERS = 1 << 12
"""Each power is a product more in the graph."""
_STEP = {dtypes.float64: 2.0**-52}
_HALF_STEP = 2.0**-23


class LeastSquares(NamedTuple):
    """What `lstsq` gives."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


class LinearAlgebraMethods(NormMethods, SortMethods):
    """Factors, solutions, determinants, and functions of matrices."""

    __slots__ = ()

    # --- solving ------------------------------------------------------------------------------------

    def solve(self, b: Any) -> Self:
        """X with self @ X = b, by elimination with partial pivoting; b holds vectors or matrices, batches broadcast.

        >>> Tensor([[2.0, 0.0], [0.0, 4.0]]).solve(Tensor([2.0, 2.0])).tolist()
        [1.0, 0.5]
        """
        from lazulite.tensor.solving import columns_of, like, matrices, solve

        a = matrices("solve", self, square=True)
        right, vectors = columns_of(a, self._tensor("solve", b).cast(a.dtype))
        found = like(self, solve(a, right))
        return found.squeeze(-1) if vectors else found

    def inv(self) -> Self:
        """The inverse.

        >>> Tensor([[2.0, 0.0], [0.0, 4.0]]).inv().tolist()
        [[0.5, 0.0], [0.0, 0.25]]
        """
        from lazulite.tensor.solving import inverse, like, matrices

        return like(self, inverse(matrices("inv", self, square=True)))

    def inverse(self) -> Self:
        """`inv` by its other name.

        >>> Tensor([[2.0]]).inverse().tolist()
        [[0.5]]
        """
        return self.inv()

    def solve_triangular(self, b: Self, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Self:
        """X with self @ X = b (or X @ self = b) for triangles; what lies on their other side is not read.

        With `unitriangular` the diagonal counts as ones.

        >>> Tensor([[2.0, 0.0], [1.0, 1.0]]).solve_triangular(Tensor([[2.0], [3.0]]), upper=False).tolist()
        [[1.0], [2.0]]
        """
        from lazulite.tensor.solving import like, matrices, solve_triangular, turned

        a = matrices("solve_triangular", self, square=True)
        right = matrices("solve_triangular", b).cast(a.dtype)
        if left:
            return like(self, solve_triangular(a, right, upper, unitriangular))
        return like(self, turned(solve_triangular(turned(a), turned(right), not upper, unitriangular)))

    def triangular_solve(
        self, A: Self, upper: bool = True, transpose: bool = False, unitriangular: bool = False
    ) -> tuple[Self, Self]:
        """PyTorch's older form: (X, A) with A @ X = self, or A^T @ X = self.

        >>> Tensor([[4.0]]).triangular_solve(Tensor([[2.0]]))[0].tolist()
        [[2.0]]
        """
        triangle = A.transpose(-2, -1) if transpose else A
        return triangle.solve_triangular(self, upper=upper is not transpose, unitriangular=unitriangular), A

    def lstsq(self, b: Any, rcond: float | None = None) -> LeastSquares:
        """The X of least norm for which |self @ X - b| is least: (solution, residuals, rank, singular_values).

        Singular values up to `rcond` times the largest count as zero (by default the larger size times the step of
        the type).  Residuals are sums of squares, none where there are no more rows than columns.

        >>> Tensor([[1.0], [1.0]]).lstsq(Tensor([[1.0], [3.0]])).solution.round().tolist()
        [[2.0]]
        """
        from lazulite.tensor.solving import columns_of, matrices

        a = matrices("lstsq", self)
        right, vectors = columns_of(a, self._tensor("lstsq", b).cast(a.dtype))
        solution = self.pinv(rcond).matmul(right)
        residuals = (a.matmul(solution) - right).square().sum(-2)
        if a.shape[-2] <= a.shape[-1]:
            residuals = residuals.flatten()[:0]
        values = self.svdvals()
        rank = values._rank(self._tolerance(rcond))
        solution = solution.squeeze(-1) if vectors else solution
        return LeastSquares(solution, residuals, rank, values)

    def _tolerance(self, rtol: Any) -> Any:
        step = _STEP.get(wide_dtype(self.dtype), _HALF_STEP)
        return max(self.shape[-2:]) * step if rtol is None else rtol

    # --- determinants --------------------------------------------------------------------------------

    def det(self) -> Self:
        """The determinant.

        >>> Tensor([[0.0, 2.0], [3.0, 1.0]]).det().item()
        -6.0
        """
        from lazulite.tensor.solving import determinant, like, matrices

        return like(self, determinant(matrices("det", self, square=True)))

    def slogdet(self) -> tuple[Self, Self]:
        """The sign of the determinant and the logarithm of its size; (0, -inf) for a singular matrix.

        >>> [part.item() for part in Tensor([[0.0, 1.0], [1.0, 0.0]]).slogdet()]
        [-1.0, 0.0]
        """
        from lazulite.tensor.solving import like, matrices, slogdet

        sign, size = slogdet(matrices("slogdet", self, square=True))
        return like(self, sign), like(self, size)

    def logdet(self) -> Self:
        """The logarithm of the determinant: NaN where it is below zero, -inf where it is zero.

        >>> Tensor([[1.0, 0.0], [0.0, 1.0]]).logdet().item()
        0.0
        """
        sign, size = self.slogdet()
        return (sign < 0).where(math.nan, size)

    # --- factors -------------------------------------------------------------------------------------

    def lu_factor(self) -> tuple[Self, Self]:
        """Both triangles of PA = LU in one matrix (L has ones on its diagonal), and the exchanges, counted from 1.

        >>> [part.tolist() for part in Tensor([[0.0, 1.0], [2.0, 3.0]]).lu_factor()]
        [[[2.0, 3.0], [0.0, 1.0]], [2, 2]]
        """
        from lazulite.tensor.solving import eliminated, like, lu, matrices

        a = matrices("lu_factor", self)
        lower, upper, _ = lu(a)
        k = lower.shape[-1]
        below = lower.tril(-1).pad([(0, 0)] * (len(self.shape) - 1) + [(0, self.shape[-1] - k)])
        above = upper.triu().pad([(0, 0)] * (len(self.shape) - 2) + [(0, self.shape[-2] - k), (0, 0)])
        exchanges: Any = eliminated(a)[2] + 1
        return like(self, below + above), exchanges

    def lu(self) -> tuple[Self, Self, Self]:
        """P, L and U with self = P @ L @ U: a permutation, ones on the diagonal of a lower triangle, and an upper one.

        >>> [part.tolist() for part in Tensor([[0.0, 1.0], [2.0, 3.0]]).lu()]
        [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[2.0, 3.0], [0.0, 1.0]]]
        """
        from lazulite.tensor.solving import identity, like, lu, matrices

        lower, upper, rows = lu(matrices("lu", self))
        places = identity(self, self.shape[-2])[rows].transpose(-2, -1)
        return like(self, places), like(self, lower), like(self, upper)

    def cholesky(self, upper: bool = False) -> Self:
        """L with L @ L^T = self, or with `upper` its transpose; the lower triangle is read.

        NaN where a matrix is not positive definite (PyTorch and NumPy raise).

        >>> Tensor([[4.0, 2.0], [2.0, 5.0]]).cholesky().tolist()
        [[2.0, 0.0], [1.0, 2.0]]
        """
        from lazulite.tensor.solving import cholesky, like, matrices, turned

        found = like(self, cholesky(matrices("cholesky", self, square=True)))
        return turned(found) if upper else found

    def cholesky_solve(self, factor: Self, upper: bool = False) -> Self:
        """X with A @ X = self, where `factor` is what `cholesky` gives for A.

        >>> Tensor([[4.0]]).cholesky_solve(Tensor([[2.0]])).tolist()
        [[1.0]]
        """
        from lazulite.tensor.solving import cholesky_solve, like, matrices

        lower = matrices("cholesky_solve", factor, square=True)
        return like(self, cholesky_solve(matrices("cholesky_solve", self).cast(lower.dtype), lower, upper))

    def cholesky_inverse(self, upper: bool = False) -> Self:
        """The inverse of A, where this is what `cholesky` gives for A.

        >>> Tensor([[2.0]]).cholesky_inverse().tolist()
        [[0.25]]
        """
        from lazulite.tensor.solving import cholesky_solve, identity, like, matrices

        factor = matrices("cholesky_inverse", self, square=True)
        return like(self, cholesky_solve(identity(factor, factor.shape[-1]), factor, upper))

    def qr(self, mode: str | bool = "reduced") -> tuple[Self, Self]:
        """Q with orthonormal columns and upper triangular R with Q @ R = self (Householder), LAPACK's signs (B086).

        `mode` "reduced" (or True) gives as many columns of Q as the smaller size, "complete" (or False; tinygrad
        always does) a square Q, "r" no Q.  The complete Q of a tall matrix has no gradient.

        >>> q, r = Tensor([[0.0, 1.0], [0.0, 2.0]]).qr()
        >>> q.matmul(r).tolist()
        [[0.0, 1.0], [0.0, 2.0]]
        """
        from lazulite.tensor.decomposition import qr
        from lazulite.tensor.solving import like, matrices

        kind = {True: "reduced", False: "complete"}.get(mode, mode) if isinstance(mode, bool) else mode
        if kind not in ("reduced", "complete", "r"):
            raise ArgumentError("qr", f"mode is 'reduced', 'complete' or 'r', not {mode!r}")
        q, r = qr(matrices("qr", self), kind == "complete")
        q = q.reshape((0,)) if kind == "r" and 0 in q.shape else q
        return like(self, q), like(self, r)

    def svd(self, full_matrices: bool = True) -> tuple[Self, Self, Self]:
        """U, the singular values in descending order, and V^T with U * S @ V^T = self (one-sided Jacobi; B086).

        With `full_matrices` U and V are square, otherwise they have as many columns as there are values; only these
        have gradients.

        >>> Tensor([[0.0, 2.0], [3.0, 0.0]]).svd()[1].tolist()
        [3.0, 2.0]
        """
        from lazulite.tensor.decomposition import svd
        from lazulite.tensor.solving import like, matrices

        u, s, vh = svd(matrices("svd", self), full_matrices)
        return like(self, u), like(self, s), like(self, vh)

    def svdvals(self) -> Self:
        """The singular values in descending order.

        >>> Tensor([[3.0, 0.0], [0.0, 4.0]]).svdvals().tolist()
        [4.0, 3.0]
        """
        return self.svd(full_matrices=False)[1]

    def eigh(self, UPLO: str = "L") -> tuple[Self, Self]:
        """The eigenvalues of a symmetric matrix in ascending order, and its eigenvectors as columns (Jacobi).

        `UPLO` says which triangle is read, "L" or "U".

        >>> Tensor([[2.0, 0.0], [0.0, 1.0]]).eigh()[0].tolist()
        [1.0, 2.0]
        """
        from lazulite.tensor.decomposition import eigh
        from lazulite.tensor.solving import like, matrices

        if UPLO not in ("L", "U"):
            raise ArgumentError("eigh", f"UPLO is 'L' or 'U', not {UPLO!r}")
        values, vectors = eigh(matrices("eigh", self, square=True), UPLO == "U")
        return like(self, values), like(self, vectors)

    def eigvalsh(self, UPLO: str = "L") -> Self:
        """The eigenvalues of a symmetric matrix in ascending order.

        >>> Tensor([[0.0, 1.0], [1.0, 0.0]]).eigvalsh().round().tolist()
        [-1.0, 1.0]
        """
        return self.eigh(UPLO)[0]

    # --- what follows ----------------------------------------------------------------------------------

    def pinv(self, rtol: float | None = None, hermitian: bool = False) -> Self:
        """The inverse of Moore and Penrose; singular values up to `rtol` times the largest count as zero.

        `hermitian` promises a symmetric matrix, which changes nothing here.

        >>> Tensor([[2.0], [0.0]]).pinv().tolist()
        [[0.5, 0.0]]
        """
        from lazulite.tensor.decomposition import pseudo_inverse
        from lazulite.tensor.solving import like, matrices

        a = matrices("pinv", self)
        if 0 in self.shape:
            return like(self, a.transpose(-2, -1))
        return like(self, pseudo_inverse(a, self._tolerance(rtol)))

    def pinverse(self, rcond: float = 1e-15) -> Self:
        """`pinv` by PyTorch's older name.

        >>> Tensor([[2.0]]).pinverse().tolist()
        [[0.5]]
        """
        return self.pinv(rcond)

    def matrix_rank(self, tol: float | None = None, rtol: float | None = None, hermitian: bool = False) -> Self:
        """How many singular values are above `tol` and `rtol` times the largest, as an int64.

        >>> Tensor([[1.0, 1.0], [1.0, 1.0]]).matrix_rank().item()
        1
        """
        values = self.svdvals()
        if not values.shape[-1]:
            return values.sum(-1).cast(dtypes.int64)
        relative = self._tensor("matrix_rank", self._tolerance(0.0 if rtol is None and tol is not None else rtol))
        relative = relative.unsqueeze(-1) if relative.shape else relative
        limit = values.max(-1, keepdim=True) * relative
        if tol is not None:
            least = self._tensor("matrix_rank", tol)
            limit = limit.maximum(least.unsqueeze(-1) if least.shape else least)
        rank: Self = (values > limit).cast(dtypes.int64).sum(-1)
        return rank

    def _rank(self, rtol: float) -> Self:
        if not self.shape[-1]:
            return self.sum(-1).cast(dtypes.int64)
        return (self > self.max(-1, keepdim=True) * rtol).cast(dtypes.int64).sum(-1)

    def cond(self, p: Any = None) -> Self:
        """The condition number: the largest over the smallest singular value, or in another norm of `matrix_norm`.

        >>> Tensor([[4.0, 0.0], [0.0, 2.0]]).cond().item()
        2.0
        """
        if p in (None, 2, -2):
            values = self.svdvals()
            first, last = values.max(-1), values.min(-1)
            return last / first if p == -2 else first / last
        return self.matrix_norm(p) * self.inv().matrix_norm(p)

    def matrix_power(self, n: int) -> Self:
        """The n-th power of a square matrix; of its inverse for n below zero.

        >>> Tensor([[1.0, 1.0], [0.0, 1.0]]).matrix_power(5).tolist()
        [[1.0, 5.0], [0.0, 1.0]]
        """
        from lazulite.tensor.solving import identity, matrices

        matrices("matrix_power", self, square=True)
        base = self.inv() if n < 0 else self
        power: Self | None = None
        left = abs(n)
        while left:
            if left & 1:
                power = base if power is None else power.matmul(base)
            left >>= 1
            base = base.matmul(base) if left else base
        unit: Self = identity(self, self.shape[-1]).expand(self.shape)
        return unit if power is None else power

    def matrix_exp(self) -> Self:
        """The exponential of a square matrix: a Taylor series of a scaled matrix, squared back (Higham).

        >>> Tensor([[0.0, 1.0], [0.0, 0.0]]).matrix_exp().tolist()
        [[1.0, 1.0], [0.0, 1.0]]
        """
        from lazulite.tensor.functions_of_matrices import exponential
        from lazulite.tensor.solving import like, matrices

        return like(self, exponential(matrices("matrix_exp", self, square=True)))

    def vander(self, N: int | None = None, increasing: bool = False) -> Self:
        """Powers along a new last axis: of a vector Vandermonde's matrix, descending unless `increasing` (NumPy).

        >>> Tensor([2, 3]).vander(3).tolist()
        [[4, 2, 1], [9, 3, 1]]
        """
        if not self.shape:
            raise ShapeError("vander", "a vector has an axis, got a number", about={"tensor": self})
        count = self.shape[-1] if N is None else N
        if not 0 <= count <= _MOST_POWERS:
            raise ArgumentError("vander", f"the powers lie between 0 and {_MOST_POWERS}, got {count}")
        powers = [self * 0 + 1]
        for _ in range(1, count):
            powers.append(powers[-1] * self)
        if not count:
            return self.unsqueeze(-1).shrink([*[(0, n) for n in self.shape], (0, 0)])
        ordered = powers if increasing else powers[::-1]
        return ordered[0].stack(*ordered[1:], dim=-1)

    def tensorinv(self, ind: int = 2) -> Self:
        """The inverse of `tensordot`: the first `ind` axes are rows, the others columns (NumPy).

        >>> Tensor.eye(4).reshape(2, 2, 4).tensorinv().shape
        (4, 2, 2)
        """
        rows, columns = self.shape[:ind], self.shape[ind:]
        if ind < 1 or math.prod(rows) != math.prod(columns):
            raise ShapeError("tensorinv", f"{rows} and {columns} are not a square", about={"tensor": self})
        return self.reshape((math.prod(rows), -1)).inv().reshape((*columns, *rows))

    def tensorsolve(self, b: Self, dims: Any = None) -> Self:
        """X with tensordot(self, X, X.ndim) = b (NumPy); the axes `dims` of self are moved to its end first.

        >>> Tensor.eye(4).reshape(2, 2, 4).tensorsolve(Tensor.ones(2, 2)).tolist()
        [1.0, 1.0, 1.0, 1.0]
        """
        a = self
        if dims is not None:
            axes = [one_axis("tensorsolve", axis, len(self.shape)) for axis in dims]
            a = self.permute((*[axis for axis in range(len(self.shape)) if axis not in axes], *axes))
        rest = a.shape[len(b.shape) :]
        return a.reshape((-1, math.prod(rest))).solve(b.flatten()).reshape(rest)

    def newton_schulz(self, steps: int, params: tuple[float, ...], eps: float = 1e-07) -> Self:
        """The nearest orthogonal matrix, roughly: X = sum of params[i] * (X X^T)^i X, `steps` times, from X / |X|.

        >>> Tensor([[2.0, 0.0], [0.0, 2.0]]).newton_schulz(8, (1.5, -0.5)).round().tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        from lazulite.tensor.functions_of_matrices import orthogonalised
        from lazulite.tensor.solving import like, matrices

        matrices("newton_schulz", self)
        if not 0 <= steps <= _MOST_STEPS:
            raise ArgumentError("newton_schulz", f"the steps lie between 0 and {_MOST_STEPS}, got {steps}")
        return like(self, orthogonalised(self.cast(float_dtype(self.dtype)), steps, params, eps))
