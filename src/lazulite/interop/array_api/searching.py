"""Positions, order and sets."""

from __future__ import annotations

from typing import Any, NamedTuple

from lazulite.interop.array_api.array import Array, array_of, wrapped
from lazulite.interop.array_api.kinds import promote, require_kind, require_scalar
from lazulite.interop.elementwise import pair
from lazulite.tensor.base import one_axis
from lazulite.tensor.tensor import Tensor

__all__ = [
    "argmax", "argmin", "argsort", "isin", "matmul", "matrix_transpose", "nonzero", "searchsorted", "sort", "take",
    "take_along_axis", "tensordot", "unique_all", "unique_counts", "unique_inverse", "unique_values", "vecdot",
    "where",
]  # fmt: skip


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the largest element stands first."""
    require_kind("argmax", "iuf", array_of("argmax", x).dtype)
    return wrapped(x.argmax(axis=axis, keepdim=keepdims))


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the smallest element stands first."""
    require_kind("argmin", "iuf", array_of("argmin", x).dtype)
    return wrapped(x.argmin(axis=axis, keepdim=keepdims))


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The positions that sort the array; equal elements keep their order."""
    require_kind("argsort", "iuf", array_of("argsort", x).dtype)
    return wrapped(x.argsort(axis, descending))


def sort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order."""
    require_kind("sort", "iuf", array_of("sort", x).dtype)
    return wrapped(x.sort(axis, descending)[0])


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Where elements are not zero, one array of positions for each axis."""
    places = array_of("nonzero", x).nonzero()
    return tuple(wrapped(places[:, axis]) for axis in range(places.shape[1]))


def searchsorted(x1: Array, x2: Any, /, *, side: str = "left", sorter: Array | None = None) -> Array:
    """Where values go into an ascending vector without breaking its order."""
    require_kind("searchsorted", "iuf", array_of("searchsorted", x1).dtype)
    ordered = x1 if sorter is None else x1.take(sorter)
    return wrapped(ordered.searchsorted(x2, side=side))


def where(condition: Array, x1: Any, x2: Any, /) -> Array:
    """The one where the condition is true, else the other."""
    require_kind("where", "b", array_of("where", condition).dtype)
    arrays = [x for x in (x1, x2) if isinstance(x, Tensor)]
    if arrays:
        common = promote("where", *[x.dtype for x in arrays])
        for x in (x1, x2):
            if not isinstance(x, Tensor):
                require_scalar("where", x, common)
    return wrapped(condition.where(x1, x2))


def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """The parts at positions along an axis."""
    rank = len(array_of("take", x).shape)
    place = one_axis("take", 0 if axis is None else axis, rank)
    require_kind("take", "iu", array_of("take", indices).dtype)
    return wrapped(x[(slice(None),) * place + (indices,)])


def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> Array:
    """The elements at positions along an axis, one position for each result."""
    require_kind("take_along_axis", "iu", array_of("take_along_axis", indices).dtype)
    return wrapped(array_of("take_along_axis", x).take_along_dim(indices, axis))


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Whether each element of the first is among those of the second."""
    first, second = pair(x1, x2)
    return wrapped(first.isin(second, invert=invert))


# --- sets --------------------------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """Distinct values, where each stands first, which one each element is, and how often it occurs."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Distinct values, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Distinct values, and which one each element is."""

    values: Array
    inverse_indices: Array


def _distinct(name: str, x: Array) -> tuple[Array, Array, Array]:
    values, inverse, counts = array_of(name, x).flatten().unique(return_inverse=True, return_counts=True)
    return wrapped(values), wrapped(inverse.reshape(*x.shape) if x.shape else inverse.reshape(())), wrapped(counts)


def unique_all(x: Array, /) -> UniqueAll:
    """All that there is to know about the distinct values of an array."""
    values, inverse, counts = _distinct("unique_all", x)
    order = inverse.flatten().argsort()
    starts = counts.cumsum(0) - counts
    return UniqueAll(values, wrapped(order.take(starts)), inverse, counts)


def unique_counts(x: Array, /) -> UniqueCounts:
    """The distinct values, and how often each occurs."""
    values, _, counts = _distinct("unique_counts", x)
    return UniqueCounts(values, counts)


def unique_inverse(x: Array, /) -> UniqueInverse:
    """The distinct values, and which one each element is."""
    values, inverse, _ = _distinct("unique_inverse", x)
    return UniqueInverse(values, inverse)


def unique_values(x: Array, /) -> Array:
    """The distinct values."""
    return _distinct("unique_values", x)[0]


# --- products ----------------------------------------------------------------------------------------


def matmul(x1: Array, x2: Array, /) -> Array:
    """Products of matrices."""
    product: Array = array_of("matmul", x1) @ array_of("matmul", x2)
    return product


def matrix_transpose(x: Array, /) -> Array:
    """The last two axes exchanged."""
    return array_of("matrix_transpose", x).mT


def tensordot(x1: Array, x2: Array, /, *, axes: Any = 2) -> Array:
    """A product summed over axes of both."""
    dtype = promote("tensordot", array_of("tensordot", x1).dtype, array_of("tensordot", x2).dtype)
    require_kind("tensordot", "iuf", dtype)
    return wrapped(x1.tensordot(x2, axes).cast(dtype))


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Inner products of vectors along an axis, which is counted from the end."""
    dtype = promote("vecdot", array_of("vecdot", x1).dtype, array_of("vecdot", x2).dtype)
    require_kind("vecdot", "iuf", dtype)
    return wrapped((x1.cast(dtype) * x2.cast(dtype)).sum(axis, dtype=dtype))
