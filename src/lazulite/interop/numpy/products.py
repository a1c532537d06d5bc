"""Products of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lazulite.interop.elementwise import as_tensor, pair
from lazulite.linalg import multi_dot as chain
from lazulite.tensor.tensor import Tensor

__all__ = [
    "cross", "dot", "einsum", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "vdot", "vecdot", "vecmat",
]  # fmt: skip


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """Products of matrices."""
    first, second = pair(x1, x2)
    return first.matmul(second)


def dot(a: Any, b: Any) -> Tensor:
    """The product summed over the last axis of the first and the second last of the other."""
    first, second = as_tensor(a), as_tensor(b)
    if not first.shape or not second.shape:
        return first * second
    axis = 0 if len(second.shape) == 1 else len(second.shape) - 2
    return first.tensordot(second, dims=([len(first.shape) - 1], [axis]))


def inner(a: Any, b: Any, /) -> Tensor:
    """The product summed over the last axis of both."""
    return as_tensor(a).inner(as_tensor(b))


def outer(a: Any, b: Any) -> Tensor:
    """The products of all pairs of elements."""
    first, second = as_tensor(a).flatten(), as_tensor(b).flatten()
    return first.reshape(-1, 1) * second


def vdot(a: Any, b: Any, /) -> Tensor:
    """The sum of the products of all elements."""
    return inner(as_tensor(a).flatten(), as_tensor(b).flatten())


def vecdot(x1: Any, x2: Any, /, axis: int = -1) -> Tensor:
    """Inner products of vectors along an axis."""
    first, second = pair(x1, x2)
    product: Tensor = first * second
    return product.sum(axis)


def matvec(x1: Any, x2: Any, /) -> Tensor:
    """Products of matrices and vectors."""
    return as_tensor(x1).matmul(as_tensor(x2).unsqueeze(-1)).squeeze(-1)


def vecmat(x1: Any, x2: Any, /) -> Tensor:
    """Products of vectors and matrices."""
    return as_tensor(x1).unsqueeze(-2).matmul(as_tensor(x2)).squeeze(-2)


def kron(a: Any, b: Any) -> Tensor:
    """Each element of the first times all of the second."""
    return as_tensor(a).kron(as_tensor(b))


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """Cross products of vectors of three elements."""
    if axis is not None:
        axisa = axisb = axisc = axis
    first, second = as_tensor(a).movedim(axisa, -1), as_tensor(b).movedim(axisb, -1)
    parts = []
    for one, other in ((1, 2), (2, 0), (0, 1)):
        parts.append(first[..., one] * second[..., other] - first[..., other] * second[..., one])
    return parts[0].stack(*parts[1:], dim=-1).movedim(-1, axisc)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """A product summed over axes of both."""
    if not isinstance(axes, int):
        axes = [[each] if isinstance(each, int) else list(each) for each in axes]
    return as_tensor(a).tensordot(as_tensor(b), dims=axes)


def einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Tensor:
    """Products and sums by Einstein's notation."""
    return Tensor.einsum(subscripts, *[as_tensor(each) for each in operands])


def multi_dot(arrays: Sequence[Any]) -> Tensor:
    """The product of several matrices, in the order that takes the fewest steps."""
    return chain([as_tensor(each) for each in arrays])
