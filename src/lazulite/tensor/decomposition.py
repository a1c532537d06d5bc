"""Orthogonal factors: QR, eigenvalues, singular values, and what follows from them.

Takes and gives tensors, matrices in the last two axes, anything before them a batch.  Reflections and rotations are
kernels; gradients are stated by their textbook formulas (Townsend, 2016; Giles, 2008).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lazulite.ir.dtype import dtypes
from lazulite.tensor.rotation import reflected, rotated
from lazulite.tensor.solving import flat, identity, solve_triangular, turned
from lazulite.tensor.stated import stated

if TYPE_CHECKING:
    from lazulite.tensor.tensor import Tensor


# --- QR ------------------------------------------------------------------------------------------


def qr(a: Tensor, complete: bool) -> tuple[Tensor, Tensor]:
    """Q with orthonormal columns and upper R; with `complete` Q is square, and has a gradient only if A is."""
    m, n = a.shape[-2:]
    if m < n:
        q, left = qr(a[..., :m], complete)
        return q, left.cat(turned(q).matmul(a[..., m:]), dim=-1)
    q, r = _householder(a, m if complete else n)
    if q.shape[-1] != n or 0 in a.shape:
        return q, r
    q = stated(q, [a], _q_rule)
    return q, stated(r, [a, q], _r_rule)


def _q_rule(a: Tensor, upstream: Tensor, q: Tensor) -> tuple[Tensor]:
    r = turned(q).matmul(a)
    inner = -turned(upstream).matmul(q)
    return (_behind(upstream + q.matmul(_mirrored(inner)), r),)


def _r_rule(a: Tensor, q: Tensor, upstream: Tensor, r: Tensor) -> tuple[Tensor, None]:
    return _behind(q.matmul(_mirrored(r.matmul(turned(upstream)))), r), None


def _mirrored(x: Tensor) -> Tensor:
    """The lower triangle on both sides of the diagonal."""
    return x.tril() + turned(x.tril(-1))


def _behind(x: Tensor, r: Tensor) -> Tensor:
    """x R^-T."""
    return turned(solve_triangular(r, turned(x), upper=True))


def _householder(a: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The first columns of Q, and R, without gradients, for as many rows as columns or more."""
    m, n = a.shape[-2:]
    if 0 in a.shape:
        eye = identity(a, m)[:, :width].expand((*a.shape[:-2], m, width))
        return eye, a[..., :width, :]
    scaled, size = unit_sized(flat(a))
    left, corner = [a._derived(node) for node in reflected(turned(scaled).uop)]
    vectors = turned(left)
    diagonal = corner.unsqueeze(-1) * identity(a, n)
    upper = (vectors[:, :n].triu(1) + diagonal) * size
    vectors = vectors.tril() - diagonal.pad(((0, 0), (0, m - n), (0, 0)))
    length = vectors.square().sum(-2, keepdim=True).sqrt()
    vectors = vectors / length.eq(0).where(1, length)
    # Q = 1 - V T V^T, where T^-1 has the products of the vectors above its diagonal, and 1 / 2 on it.
    products = turned(vectors).matmul(vectors)
    inner = products.triu(1) + identity(a, n) * length.eq(0).where(1.0, 0.5)
    q = identity(a, m)[:, :width] - vectors.matmul(solve_triangular(inner, turned(vectors)[..., :width], upper=True))
    below = width - n
    upper = upper.pad(((0, 0), (0, below), (0, 0)))
    return q.reshape((*a.shape[:-2], m, width)), upper.reshape((*a.shape[:-2], width, n))


def unit_sized(x: Tensor) -> tuple[Tensor, Tensor]:
    """Matrices whose largest element is 1, and what to multiply them with."""
    size = x.abs().max((-2, -1), keepdim=True)
    size = (size > 0).where(size, 1)
    return x / size, size


# --- rotations -------------------------------------------------------------------------------------


def _orthogonal(a: Tensor) -> tuple[Tensor, Tensor]:
    """V orthogonal, and W = A V whose columns are orthogonal, for (batch, rows, columns)."""
    rows, n = a.shape[-2:]
    below = identity(a, n).expand((a.shape[0], n, n))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)] or [(0, 0)]
    first, second = [type(a)(list(side), device=a.device, dtype=dtypes.int32) for side in zip(*pairs, strict=True)]
    turned_columns = turned(a.cat(below, dim=-2))
    result = turned(a._derived(rotated(turned_columns.uop, rows, first.uop, second.uop)))
    return result[:, rows:], result[:, :rows]


def _ordered(values: Tensor, *matrices: Tensor, descending: bool) -> list[Tensor]:
    """Values in order, and the columns that go with them."""
    order = values.argsort(-1, descending)
    found = [values.gather(-1, order)]
    for each in matrices:
        found.append(each.gather(-1, order.unsqueeze(-2).expand(each.shape)))
    return found


def eigh(a: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order and eigenvectors of symmetric matrices, one triangle of which is read."""
    if 0 in a.shape:
        return a.sum(-1), a * 1

    def whole(a: Tensor) -> Tensor:
        half = turned(a) if upper else a
        return half.tril() + turned(half.tril(-1))

    def vector_rule(a: Tensor, upstream: Tensor, vectors: Tensor) -> tuple[Tensor]:
        inner = turned(vectors).matmul(upstream) * _apart(_quotients(whole(a), vectors))
        slope = vectors.matmul(inner).matmul(turned(vectors))
        return ((slope + turned(slope)) * 0.5,)

    scaled, _ = unit_sized(flat(whole(a)))
    # With the norm added no eigenvalue is below zero, so eigenvalues of one size are one eigenvalue.
    shift = scaled.square().sum((-2, -1), keepdim=True).sqrt()
    vectors, _ = _orthogonal(scaled + identity(a, a.shape[-1]) * shift)
    values = (scaled.matmul(vectors) * vectors).sum(-2)
    _, vectors = _ordered(values, vectors, descending=False)
    vectors = stated(vectors.reshape(a.shape), [a], vector_rule)
    return stated(_quotients(whole(a), vectors), [a, vectors], _eigenvalue_rule), vectors


def _quotients(a: Tensor, vectors: Tensor) -> Tensor:
    """Rayleigh's quotients: the eigenvalues of eigenvectors."""
    return (a.matmul(vectors) * vectors).sum(-2)


def _eigenvalue_rule(a: Tensor, vectors: Tensor, upstream: Tensor, values: Tensor) -> tuple[Tensor, None]:
    return (vectors * upstream.unsqueeze(-2)).matmul(turned(vectors)), None


def _apart(values: Tensor) -> Tensor:
    """1 / (value j - value i), 0 where they are one."""
    gap = values.unsqueeze(-2) - values.unsqueeze(-1)
    return gap.eq(0).where(0, 1 / gap.eq(0).where(1, gap))


# --- singular values ---------------------------------------------------------------------------------


def svd(a: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    """U, singular values in descending order, and V^T; with `full` U and V are square."""
    m, n = a.shape[-2:]
    if m < n:
        u, s, vh = svd(turned(a), full)
        return turned(vh), s, turned(u)
    if 0 in a.shape:
        u, v = [identity(a, size).expand((*a.shape[:-2], size, size)) for size in (m, n)]
        return (u if full else u[..., :n]), a.sum(-2) * 0, v
    raw_u, raw_s, raw_v = _singular(a)
    u = stated(raw_u[..., :n], [a], _left_rule)
    v = stated(raw_v, [a], _right_rule)
    s = stated(raw_s, [a, u, v], _value_rule)
    return (u.cat(raw_u[..., n:].detach(), dim=-1) if full and m > n else u), s, turned(v)


def _singular(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Square U, values and V without gradients, for as many rows as columns or more."""
    n, lead = a.shape[-1], a.shape[:-2]
    scaled, size = unit_sized(flat(a))
    q, r = _householder(scaled, a.shape[-2])
    v, w = _orthogonal(r[:, :n])
    values = w.square().sum(-2).sqrt()
    values, v, w = _ordered(values, v, w, descending=True)
    sizes = values.unsqueeze(-2)
    u = sizes.eq(0).where(0, w / sizes.eq(0).where(1, sizes))
    u, corner = _householder(u, n)  # fills up what a value of zero leaves open
    u = u * (corner.diagonal(0, -2, -1) < 0).where(-1.0, 1.0).unsqueeze(-2)
    u = q[..., :n].matmul(u).cat(q[..., n:], dim=-1)
    values = values * size.squeeze(-1)
    return u.reshape((*lead, *u.shape[1:])), values.reshape((*lead, n)), v.reshape((*lead, n, n))


def _value_rule(a: Tensor, u: Tensor, v: Tensor, upstream: Tensor, s: Tensor) -> tuple[Tensor, None, None]:
    return (u * upstream.unsqueeze(-2)).matmul(turned(v)), None, None


def _left_rule(a: Tensor, upstream: Tensor, u: Tensor) -> tuple[Tensor]:
    s, v = _other_side(turned(a), u)
    skew = turned(u).matmul(upstream) * _apart(s * s)
    inner = (skew + turned(skew)) * s.unsqueeze(-2)
    outside = upstream - u.matmul(turned(u).matmul(upstream))
    return ((u.matmul(inner) + outside / s.unsqueeze(-2)).matmul(turned(v)),)


def _right_rule(a: Tensor, upstream: Tensor, v: Tensor) -> tuple[Tensor]:
    s, u = _other_side(a, v)
    skew = turned(v).matmul(upstream) * _apart(s * s)
    inner = (skew + turned(skew)) * s.unsqueeze(-1)
    return (u.matmul(inner).matmul(turned(v)),)


def _other_side(a: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Singular values and the vectors on the other side."""
    w = a.matmul(vectors)
    s = w.square().sum(-2).sqrt()
    return s, w / s.unsqueeze(-2)


def pseudo_inverse(a: Tensor, rtol: Any) -> Tensor:
    """V / s U^T over the singular values that are above `rtol` times the largest."""
    u, s, vh = svd(a, full=False)
    limit = s.max(-1, keepdim=True) * rtol if s.shape[-1] else 0
    share = (s > limit).where(1 / (s > limit).where(s, 1), 0)
    return stated((turned(vh) * share.unsqueeze(-2)).matmul(turned(u)), [a], _inverse_rule)  # type: ignore[no-any-return]


def _inverse_rule(a: Tensor, upstream: Tensor, p: Tensor) -> tuple[Tensor]:
    """Golub and Pereyra, 1973."""
    g, back = turned(upstream), turned(p)
    left = g.matmul(p).matmul(back)
    right = back.matmul(p).matmul(g)
    outside = left - a.matmul(p.matmul(left)) + right - right.matmul(p).matmul(a)
    return (outside - back.matmul(upstream).matmul(back),)
