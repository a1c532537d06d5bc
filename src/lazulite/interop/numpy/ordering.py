"""Order, positions and sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lazulite.interop.array_api.searching import unique_all, unique_counts, unique_inverse, unique_values
from lazulite.interop.elementwise import as_tensor, pair
from lazulite.interop.numpy.shapes import concatenate
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor

__all__ = [
    "argmax", "argmin", "argpartition", "argsort", "argwhere", "ediff1d", "extract", "flatnonzero", "intersect1d",
    "isin", "lexsort", "nonzero", "partition", "searchsorted", "setdiff1d", "setxor1d", "sort", "union1d", "unique",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "where",
]  # fmt: skip


def argmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Where the largest element stands first; NaN counts as the largest."""
    return as_tensor(a).argmax(axis, keepdim=keepdims)


def argmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Where the smallest element stands first; NaN counts as the smallest."""
    return as_tensor(a).argmin(axis, keepdim=keepdims)


def sort(a: Any, axis: int | None = -1, *, stable: bool | None = None) -> Tensor:
    """The elements in order; flat for axis None."""
    tensor = as_tensor(a)
    return tensor.flatten().sort(0)[0] if axis is None else tensor.sort(axis)[0]


def argsort(a: Any, axis: int | None = -1, *, stable: bool | None = None) -> Tensor:
    """The positions that sort the elements; equal ones keep their order."""
    tensor = as_tensor(a)
    return tensor.flatten().argsort(0) if axis is None else tensor.argsort(axis)


def partition(a: Any, kth: Any, axis: int | None = -1) -> Tensor:
    """Elements so that the k-th stands where it does in order, smaller ones before: they are all in order."""
    return sort(a, axis)


def argpartition(a: Any, kth: Any, axis: int | None = -1) -> Tensor:
    """The positions that `partition` takes the elements from."""
    return argsort(a, axis)


def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """The positions that sort by several keys, the last one first of all."""
    rows = list(as_tensor(keys).unbind(0)) if not isinstance(keys, list | tuple) else [as_tensor(k) for k in keys]
    order = rows[0].argsort(axis)
    for key in rows[1:]:
        order = order.gather(axis, key.gather(axis, order).argsort(axis))
    return order


def nonzero(a: Any) -> tuple[Tensor, ...]:
    """Where elements are not zero, one array of positions for each axis."""
    places = as_tensor(a).nonzero()
    return tuple([places[:, axis] for axis in range(places.shape[1])])


def flatnonzero(a: Any) -> Tensor:
    """Where elements of the flat array are not zero."""
    return argwhere(as_tensor(a).flatten()).flatten()


def argwhere(a: Any) -> Tensor:
    """Where elements are not zero, one row of positions for each."""
    places: Tensor = as_tensor(a).nonzero()
    return places


def extract(condition: Any, arr: Any) -> Tensor:
    """The elements for which the condition is true."""
    return as_tensor(arr).flatten().masked_select(as_tensor(condition).flatten().cast(dtypes.bool))


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """The one where the condition is true, else the other; with the condition alone, where it is."""
    if x is None and y is None:
        return nonzero(condition)
    first, second = pair(x, y)
    return as_tensor(condition).cast(dtypes.bool).where(first, second)


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Where values go into an ascending vector without breaking its order."""
    ordered = as_tensor(a) if sorter is None else as_tensor(a).take(as_tensor(sorter))
    return ordered.searchsorted(as_tensor(v), side=side)


# --- sets --------------------------------------------------------------------------------------------


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """The distinct elements in order, or the distinct parts along an axis, and what is asked for beside them."""
    tensor = as_tensor(ar)
    values, inverse, counts = tensor.unique(return_inverse=True, return_counts=True, dim=axis)
    order = inverse.flatten().argsort()
    index = order.take(counts.cumsum(0) - counts)
    wanted = zip((index, inverse, counts), (return_index, return_inverse, return_counts), strict=True)
    more = [part for part, asked in wanted if asked]
    return (values, *more) if more else values


def union1d(ar1: Any, ar2: Any) -> Tensor:
    """The distinct elements of both, in order."""
    return unique(concatenate([ar1, ar2], None))  # type: ignore[no-any-return]


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that both have, in order, and with `return_indices` where they stand first."""
    first, second = as_tensor(ar1).flatten(), as_tensor(ar2).flatten()
    values = unique(first)
    found = values.masked_select(values.isin(second))
    if not return_indices:
        return found
    places = [found.reshape(-1, 1).eq(each).cast(dtypes.int32).argmax(1) for each in (first, second)]
    return (found, *places)


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The distinct elements that only the first has, in order."""
    values = as_tensor(ar1).flatten() if assume_unique else unique(ar1)
    return values.masked_select(values.isin(as_tensor(ar2)).logical_not())


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The distinct elements that only one of both has, in order."""
    return union1d(setdiff1d(ar1, ar2), setdiff1d(ar2, ar1))


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among others."""
    return as_tensor(element).isin(as_tensor(test_elements), invert=invert)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """The differences of neighbours in the flat array, with values in front and behind."""
    flat = as_tensor(ary).flatten()
    parts: Sequence[Any] = [to_begin, flat[1:] - flat[:-1], to_end]
    return concatenate([as_tensor(part).flatten() for part in parts if part is not None], 0)
