"""Triangular, general and positive definite systems: factors, solutions, determinants.

Takes and gives tensors, matrices in the last two axes, anything before them a batch.  Elimination and substitution
are kernels; gradients are stated by their textbook formulas (Giles, 2008).  A singular matrix gives what division
by zero gives, inf and NaN: nothing is computed before somebody looks, so nothing can raise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeVar

from lazulite.base.errors import ShapeError
from lazulite.ir.dtype import dtypes
from lazulite.tensor.base import Base, float_dtype, wide_dtype
from lazulite.tensor.elimination import factored, substituted
from lazulite.tensor.stated import stated

if TYPE_CHECKING:
    from lazulite.tensor.tensor import Tensor

T = TypeVar("T", bound="Base")


def matrices(function: str, x: Any, square: bool = False) -> Any:
    """The operand as floats of at least 32 bits; ShapeError where there are no (square) matrices."""
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        wanted = "square matrices are needed" if square else "a matrix has two axes"
        raise ShapeError(function, f"{wanted}, got {x.shape}", about={"tensor": x})
    return x.cast(wide_dtype(x.dtype))


def like(x: T, result: Any) -> T:
    """The result in the type that a float function of `x` has."""
    return result.cast(float_dtype(x.dtype))  # type: ignore[no-any-return]


def flat(x: Tensor) -> Tensor:
    """(batch, rows, columns)."""
    return x.reshape((math.prod(x.shape[:-2]), *x.shape[-2:]))


def turned(x: T) -> T:
    """Rows as columns."""
    return x.transpose(-2, -1)  # type: ignore[attr-defined, no-any-return]


def identity(x: Any, size: int) -> Any:
    """The unit matrix in the type of `x`."""
    return type(x).eye(size, dtype=x.dtype, device=x.device)


# --- triangles -------------------------------------------------------------------------------------


def solve_triangular(a: Tensor, b: Tensor, upper: bool, unit: bool = False) -> Tensor:
    """X with A X = B for triangles (n, n); the batches of both broadcast."""
    lead = common_lead("solve_triangular", a, b)
    a, b = a.expand((*lead, *a.shape[-2:])), b.expand((*lead, *b.shape[-2:]))
    if 0 in (*a.shape, *b.shape):
        return b * 1

    def rule(a: Tensor, b: Tensor, upstream: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        right = solve_triangular(turned(a), upstream, not upper, unit)
        slope = -right.matmul(turned(x))
        inner = int(unit)
        return slope.triu(inner) if upper else slope.tril(-inner), right

    return stated(_substituted(a, b, upper, unit), [a, b], rule)  # type: ignore[no-any-return]


def _substituted(a: Tensor, b: Tensor, upper: bool, unit: bool) -> Tensor:
    """Rows are divided by the diagonal first, which leaves ones there."""
    if not unit:
        diagonal = a.diagonal(0, -2, -1).unsqueeze(-1)
        a, b = a / diagonal, b / diagonal
    solved = substituted(flat(a).uop, flat(turned(b)).uop, lower=not upper)
    return turned(b._derived(solved).reshape(turned(b).shape))


def common_lead(function: str, a: Tensor, b: Tensor) -> tuple[int, ...]:
    """The batch axes of both."""
    if a.shape[-1] != a.shape[-2] or b.shape[-2] != a.shape[-1]:
        raise ShapeError(
            function, f"matrices {a.shape} do not fit right sides {b.shape}", about={"matrices": a, "right sides": b}
        )
    x, y = a.shape[:-2], b.shape[:-2]
    rank = max(len(x), len(y))
    x, y = [(1,) * (rank - len(lead)) + lead for lead in (x, y)]
    if any(1 not in (m, n) and m != n for m, n in zip(x, y, strict=True)):
        raise ShapeError(function, f"the batches of {a.shape} and {b.shape} do not broadcast")
    return tuple([n if m == 1 else m for m, n in zip(x, y, strict=True)])


# --- elimination ------------------------------------------------------------------------------------


def eliminated(a: Tensor, pivoting: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """PA = LU without gradients: both triangles in one matrix, the rows of A in the order of PA, and the exchanges."""
    if 0 in a.shape:
        steps, lead = min(a.shape[-2:]), a.shape[:-2]
        return a, _counts(a, (*lead, a.shape[-2])), _counts(a, (*lead, steps))
    packed, rows, exchanges = [a._derived(node) for node in factored(flat(a).uop, pivoting)]
    order = rows.unsqueeze(-1).expand(packed.shape)
    packed = packed.gather(1, order) if pivoting else packed
    lead = a.shape[:-2]
    return packed.reshape(a.shape), rows.reshape((*lead, -1)), exchanges.reshape((*lead, -1))


def _counts(a: Tensor, shape: tuple[int, ...]) -> Tensor:
    return type(a).arange(shape[-1], device=a.device).cast(dtypes.int32).expand(shape)


def permuted(x: Tensor, rows: Tensor) -> Tensor:
    """The rows of matrices in another order."""
    return x.gather(-2, rows.unsqueeze(-1).expand((*rows.shape, x.shape[-1])))


def lu(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """L and U with gradients, and the rows of A in the order of PA."""
    _, rows, _ = eliminated(a)
    m, n = a.shape[-2:]
    k = min(m, n)
    ordered = permuted(a, rows)
    core = _core(ordered[..., :k, :k])
    lower, upper = core.tril(-1) + identity(a, k), core.triu()
    if m > n:
        below = turned(solve_triangular(turned(upper), turned(ordered[..., k:, :]), upper=False))
        lower = lower.cat(below, dim=-2)
    elif n > m:
        upper = upper.cat(solve_triangular(lower, ordered[..., k:], upper=False, unit=True), dim=-1)
    return lower, upper, rows


def _core(a: Tensor) -> Tensor:
    """Both triangles of a square matrix whose rows are in order already."""

    def rule(a: Tensor, upstream: Tensor, packed: Tensor) -> tuple[Tensor]:
        lower, upper = packed.tril(-1) + identity(packed, packed.shape[-1]), packed.triu()
        inner = turned(lower).matmul(upstream.tril(-1)).tril(-1) + upstream.triu().matmul(turned(upper)).triu()
        half = solve_triangular(turned(lower), inner, upper=True, unit=True)
        return (turned(solve_triangular(upper, turned(half), upper=True)),)

    return a if 0 in a.shape else stated(eliminated(a, pivoting=False)[0], [a], rule)


def solve(a: Tensor, b: Tensor) -> Tensor:
    """X with A X = B; the batches of both broadcast."""
    lead = common_lead("solve", a, b)
    a, b = a.expand((*lead, *a.shape[-2:])), b.expand((*lead, *b.shape[-2:]))
    if 0 in (*a.shape, *b.shape):
        return b * 1

    def rule(a: Tensor, b: Tensor, upstream: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        right = solve(turned(a), upstream)
        return -right.matmul(turned(x)), right

    packed, rows, _ = eliminated(a)
    first = _substituted(packed, permuted(b, rows), upper=False, unit=True)
    return stated(_substituted(packed, first, upper=True, unit=False), [a, b], rule)  # type: ignore[no-any-return]


def inverse(a: Tensor) -> Tensor:
    """A^-1."""
    return solve(a, identity(a, a.shape[-1]))


def slogdet(a: Tensor) -> tuple[Tensor, Tensor]:
    """The sign of the determinant, and the logarithm of its size."""
    packed, _, exchanges = eliminated(a)
    diagonal = packed.diagonal(0, -2, -1)
    count = _counts(a, exchanges.shape).ne(exchanges).cast(a.dtype).sum(-1)
    sign = (diagonal.sign().prod(-1) * (1 - (count % 2) * 2)).detach()

    def rule(a: Tensor, upstream: Tensor, value: Tensor) -> tuple[Tensor]:
        return (turned(inverse(a)) * upstream.unsqueeze(-1).unsqueeze(-1),)

    return sign, stated(diagonal.abs().log().sum(-1), [a], rule)


def determinant(a: Tensor) -> Tensor:
    """The product of the pivots with the sign of the exchanges."""
    packed, _, exchanges = eliminated(a)
    count = _counts(a, exchanges.shape).ne(exchanges).cast(a.dtype).sum(-1)
    value = packed.diagonal(0, -2, -1).prod(-1) * (1 - (count % 2) * 2)

    def rule(a: Tensor, upstream: Tensor, value: Tensor) -> tuple[Tensor]:
        return (turned(inverse(a)) * (upstream * value).unsqueeze(-1).unsqueeze(-1),)

    return stated(value, [a], rule)  # type: ignore[no-any-return]


# --- positive definite ------------------------------------------------------------------------------


def cholesky(a: Tensor) -> Tensor:
    """L with L L^T = A, of which the lower triangle is read; NaN where A is not positive definite."""
    if 0 in a.shape:
        return a * 1

    def rule(a: Tensor, upstream: Tensor, lower: Tensor) -> tuple[Tensor]:
        inner = turned(lower).matmul(upstream.tril())
        inner = inner.tril() - inner.tril().triu() * 0.5
        half = solve_triangular(turned(lower), inner, upper=True)
        slope = turned(solve_triangular(turned(lower), turned(half), upper=True))
        return ((slope + turned(slope)) * 0.5,)

    source = a
    packed, _, _ = eliminated(source.tril() + turned(source.tril(-1)), pivoting=False)
    roots = packed.diagonal(0, -2, -1).sqrt().unsqueeze(-2)
    value = (packed.tril(-1) + identity(a, a.shape[-1])) * roots
    return stated(value, [a], rule)  # type: ignore[no-any-return]


def cholesky_solve(b: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """X with A X = B, for the factor of A."""
    lower = turned(factor) if upper else factor
    return solve_triangular(turned(lower), solve_triangular(lower, b, upper=False), upper=True)


def columns_of(a: Any, b: Any) -> tuple[Any, bool]:
    """The right side as matrices, and whether it was vectors; ShapeError for a single number."""
    if not b.shape:
        raise ShapeError("solve", f"the right side of {a.shape} has no axis", about={"matrices": a, "right side": b})
    vectors = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    return (b.unsqueeze(-1) if vectors else b), vectors
