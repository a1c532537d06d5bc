"""The part of `numpy.linalg` that is products and diagonals."""

from __future__ import annotations

from typing import Any

from lazulite.interop.elementwise import as_tensor
from lazulite.interop.numpy.products import cross as _cross
from lazulite.interop.numpy.products import matmul, multi_dot, outer, tensordot, vecdot
from lazulite.interop.numpy.shapes import matrix_transpose
from lazulite.tensor.tensor import Tensor

__all__ = [
    "cross", "diagonal", "matmul", "matrix_transpose", "multi_dot", "outer", "tensordot", "trace", "vecdot",
]  # fmt: skip


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Cross products of vectors of three elements."""
    return _cross(x1, x2, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """A diagonal of the last two axes."""
    return as_tensor(x).diagonal(offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal of the last two axes."""
    return diagonal(x, offset=offset).sum(-1, dtype=dtype)
