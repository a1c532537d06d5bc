"""Distances and similarities of vectors, as torch.nn.functional calls them."""

from __future__ import annotations

from lazulite.base.errors import ShapeError
from lazulite.tensor.tensor import Tensor


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis; a length below `eps` counts as `eps`.

    >>> cosine_similarity(Tensor([[1.0, 0.0]]), Tensor([[2.0, 0.0]])).tolist()
    [1.0]
    """
    x1, x2 = x1 + 0 * x2, x2 + 0 * x1
    return (x1.normalize(2.0, dim, eps) * x2.normalize(2.0, dim, eps)).sum(dim)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last axis.

    >>> pairwise_distance(Tensor([[3.0, 0.0]]), Tensor([[0.0, 4.0]]), eps=0.0).tolist()
    [5.0]
    """
    return (x1 - x2 + eps).vector_norm(p, -1, keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances of all pairs of rows, as the part of the matrix of distances above its diagonal.

    >>> pdist(Tensor([[0.0], [1.0], [3.0]])).tolist()
    [1.0, 3.0, 2.0]
    """
    if input.ndim != 2:
        raise ShapeError("pdist", f"a matrix of rows is needed, got {input.shape}", about={"input": input})
    count = input.shape[0]
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    if not pairs:
        return input.sum(-1)[:0]
    first, second = [Tensor(list(side), device=input.device) for side in zip(*pairs, strict=True)]
    return (input[first] - input[second]).vector_norm(p, -1)
