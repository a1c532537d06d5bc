"""Functions of square matrices by products of them, so gradients come by themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lazulite.ir.dtype import dtypes
from lazulite.tensor.solving import identity, turned

if TYPE_CHECKING:
    from lazulite.tensor.tensor import Tensor

_TERMS = {dtypes.float64: 18}
_FEW_TERMS = 10
"""Terms of the series for a norm of at most 1/2: what is left out is below the last digit."""
_SQUARINGS = 20
"""Norms up to 2^19, far beyond those whose exponential overflows."""


def exponential(a: Tensor) -> Any:
    """exp(A) = exp(A / 2^s)^(2^s), with s by the largest row sum of each matrix."""
    if 0 in a.shape:
        return a * 1
    norm = a.detach().abs().sum(-1, keepdim=True).max(-2, keepdim=True)
    halvings = (norm.log2().ceil() + 1).clip(0, _SQUARINGS)
    x = a * (-halvings).exp2()
    result = unit = identity(a, a.shape[-1]).expand(a.shape)
    for term in range(_TERMS.get(a.dtype, _FEW_TERMS), 0, -1):
        result = x.matmul(result) / term + unit
    for step in range(_SQUARINGS):
        result = (halvings > step).where(result.matmul(result), result)
    return result


def orthogonalised(x: Any, steps: int, params: Sequence[float], eps: float) -> Any:
    """The polynomial of Newton and Schulz on the smaller side of the matrix."""
    tall = x.shape[-2] > x.shape[-1]
    x = x / (x.square().sum((-2, -1), keepdim=True).sqrt() + eps)
    x = turned(x) if tall else x
    for _ in range(steps):
        square, power, total = x.matmul(turned(x)), x, x * params[0]
        for factor in params[1:]:
            power = square.matmul(power)
            total = total + power * factor
        x = total
    return turned(x) if tall else x


def product(matrices: Sequence[Tensor]) -> Tensor:
    """The product of a chain, in the order that takes the fewest multiplications."""
    sizes = [matrices[0].shape[0], *[each.shape[-1] for each in matrices]]
    count = len(matrices)
    cost = [[0.0] * count for _ in range(count)]
    cut = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            choices = [(cost[i][k] + cost[k + 1][j] + math.prod((sizes[i], sizes[k + 1], sizes[j + 1])), k)
                       for k in range(i, j)]  # fmt: skip
            cost[i][j], cut[i][j] = min(choices)
    return _joined(matrices, cut, 0, count - 1)


def _joined(matrices: Sequence[Tensor], cut: Sequence[Sequence[int]], first: int, last: int) -> Tensor:
    if first == last:
        return matrices[first]
    k = cut[first][last]
    return _joined(matrices, cut, first, k).matmul(_joined(matrices, cut, k + 1, last))
