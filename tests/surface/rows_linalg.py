"""Rows of linear algebra whose results are not unique: factors are multiplied out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from lazulite import Tensor
from surface.rows import Row, Sample, claim, row

_random = np.random.default_rng(11)
_SHAPES = [(3, 3), (5, 2), (2, 5), (2, 4, 4), (1, 1), (2, 3, 5), (6, 6)]


def floats(*shape: int) -> torch.Tensor:
    return torch.from_numpy(_random.standard_normal(shape).astype(np.float32))


def multiplied(u: Any, s: Any, vh: Any) -> Any:
    k = s.shape[-1]
    return (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :]


def singular(full: bool) -> Row:
    """The product of the factors, the values, and what does not change with the signs of vectors."""

    def seen(svd: Callable[..., Any]) -> Callable[..., Any]:
        def of(a: Any) -> list[Any]:
            u, s, vh = svd(a, full_matrices=full)
            return [multiplied(u, s, vh), s, (u * u).sum(-2), (vh * vh).sum(-1)]

        return of

    samples = [Sample((floats(*shape),)) for shape in _SHAPES]
    return row("svd", *samples, ours=seen(Tensor.svd), reference=seen(torch.linalg.svd), alone=True, relative=1e-4)


def eigen() -> Row:
    def seen(eigh: Callable[..., Any]) -> Callable[..., Any]:
        def of(a: Any) -> list[Any]:
            w, v = eigh(a + a.transpose(-2, -1))
            return [w, (v * w.unsqueeze(-2)) @ v.transpose(-2, -1), (v * v)[..., :1, :]]

        return of

    samples = [Sample((floats(*shape),)) for shape in ((3, 3), (2, 4, 4), (1, 1), (6, 6), (2, 2, 3, 3), (5, 5))]
    return row("eigh", *samples, ours=seen(Tensor.eigh), reference=seen(torch.linalg.eigh), alone=True, relative=1e-4)


def cholesky_row(name: str, other: bool) -> Row:
    """Of the factor of a positive definite matrix, so that gradients are those of the matrix."""
    right = [Sample((floats(3, 2), floats(3, 3), upper)) for upper in (False, True)] * 2
    right += [Sample((floats(2, 4, 1), floats(2, 4, 4), upper)) for upper in (False, True)]

    def called(a: Any, upper: bool, first: Any = None) -> Any:
        eye = a.detach() * 0 + (Tensor.eye(a.shape[-1]) if isinstance(a, Tensor) else torch.eye(a.shape[-1]))
        whole = a @ a.transpose(-2, -1) + eye
        factor = whole.cholesky(upper) if isinstance(a, Tensor) else torch.linalg.cholesky(whole, upper=upper)
        return factor.cholesky_inverse(upper) if first is None else first.cholesky_solve(factor, upper)

    if other:
        return row(name, *right, ours=lambda b, a, u: called(a, u, b), reference=lambda b, a, u: called(a, u, b),
                   alone=True, relative=1e-4)  # fmt: skip
    samples = [Sample(s.args[1:]) for s in right]
    return row(name, *samples, ours=called, reference=called, alone=True, relative=1e-4)


def orthogonal(shape: tuple[int, ...]) -> Callable[[], bool]:
    """Cubic iteration ends at the product of the singular vectors."""

    def holds() -> bool:
        a = floats(*shape).numpy()
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        return np.allclose(Tensor(a).newton_schulz(40, (1.5, -0.5)).numpy(), u @ vh, atol=1e-3)

    return holds


def same(name: str, *samples: Any, seen: Callable[..., Any] = lambda out: out) -> Row:
    """A method against the function of torch.linalg."""
    own, theirs = getattr(Tensor, name), getattr(torch.linalg, name)
    return row(name, *map(Sample, samples), ours=lambda *a: seen(own(*a)), reference=lambda *a: seen(theirs(*a)),
               alone=True, relative=1e-4)  # fmt: skip


def low(*shape: int) -> torch.Tensor:
    """A matrix of rank 2."""
    return floats(*shape[:-1], 2) @ floats(*shape[:-2], 2, shape[-1])


ROWS = [
    same("solve", *[(floats(*a), floats(*b)) for a, b in [
        ((3, 3), (3,)), ((3, 3), (3, 2)),
        ((2, 4, 4), (2, 4, 1)), ((1, 1), (1, 3)), ((2, 4, 4), (4, 2)), ((5, 5), (5, 2))
    ]]),
    same("lstsq", *[(floats(*a), floats(*b)) for a, b in [
        ((5, 2), (5, 1)), ((4, 4), (4, 2)), ((2, 6, 3), (2, 6, 2)), ((3, 1), (3, 1)), ((7, 4), (7, 2)), ((6, 5), (6, 1))
    ]], seen=lambda out: out[0]),
    same("cond", *[(floats(*shape),) for shape in ((3, 3), (5, 2), (2, 4, 4), (1, 1))],
         *[(floats(3, 3), p) for p in (1, -1, float("inf"), "fro", 2, -2)]),
    same("matrix_rank", *[(low(*shape),) for shape in ((3, 3), (5, 4), (2, 4, 4), (2, 6), (7, 7))], (floats(4, 4),)),
    same("pinv", *[(floats(*shape),) for shape in ((3, 3), (5, 2), (2, 5), (2, 4, 3), (1, 1), (6, 6))]),
    row("matrix_exp", *[Sample((floats(*shape) * scale,)) for shape in ((3, 3), (2, 4, 4), (1, 1))
                        for scale in (0.01, 1.0, 5.0)], relative=1e-4, alone=True),
    same("tensorinv", *[(floats(*shape), ind) for shape, ind in [
        ((4, 2, 2), 1), ((2, 2, 4), 2), ((6, 3, 2), 1), ((2, 3, 6), 2), ((3, 3), 1)
    ]]),
    singular(True), singular(False), eigen(), cholesky_row("cholesky_inverse", False),
    cholesky_row("cholesky_solve", True),
    claim("newton_schulz", *[orthogonal(shape) for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 3), (5, 5))]),
]  # fmt: skip
