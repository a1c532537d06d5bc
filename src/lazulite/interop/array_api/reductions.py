"""Statistics over axes, and running ones."""

from __future__ import annotations

from typing import Any

from lazulite.interop.array_api.array import Array, array_of, wrapped
from lazulite.interop.array_api.kinds import promote, require_kind
from lazulite.ir.dtype import DType
from lazulite.tensor.base import one_axis
from lazulite.tensor.tensor import Tensor

__all__ = [
    "all", "any", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std",
    "sum", "var",
]  # fmt: skip

Axes = int | tuple[int, ...] | None


def _reduced(name: str, kinds: str, x: Array, axis: Axes, keepdims: bool, **options: Any) -> Array:
    require_kind(name, kinds, array_of(name, x).dtype)
    return wrapped(getattr(Tensor, name)(x, axis=axis, keepdim=keepdims, **options))


def all(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether all elements are true."""
    return _reduced("all", "biuf", x, axis, keepdims)


def any(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """Whether an element is true."""
    return _reduced("any", "biuf", x, axis, keepdims)


def max(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The largest element."""
    return _reduced("max", "iuf", x, axis, keepdims)


def min(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The smallest element."""
    return _reduced("min", "iuf", x, axis, keepdims)


def mean(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """The mean."""
    return _reduced("mean", "f", x, axis, keepdims)


def sum(x: Array, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False) -> Array:
    """The sum; of small integers in 32 bits."""
    return _reduced("sum", "iuf", x, axis, keepdims, dtype=dtype)


def prod(x: Array, /, *, axis: Axes = None, dtype: DType | None = None, keepdims: bool = False) -> Array:
    """The product; of small integers in 32 bits."""
    return _reduced("prod", "iuf", x, axis, keepdims, dtype=dtype)


def std(x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The standard deviation."""
    return _reduced("std", "f", x, axis, keepdims, correction=correction)


def var(x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The variance."""
    return _reduced("var", "f", x, axis, keepdims, correction=correction)


def count_nonzero(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
    """How many elements are not zero."""
    return _reduced("count_nonzero", "biuf", x, axis, keepdims)


def _running(name: str, x: Array, axis: int | None, dtype: DType | None, include_initial: bool, first: int) -> Array:
    if axis is None and len(array_of(name, x).shape) > 1:
        raise_axis(name)
    place = one_axis(name, axis or 0, len(x.shape))
    method = Tensor.cumsum if first == 0 else Tensor.cumprod
    found: Tensor = method(x if dtype is None else x.cast(dtype), place)
    found = found if dtype is None else found.cast(dtype)
    if include_initial:
        shape = [1 if axis == place else size for axis, size in enumerate(found.shape)]
        found = Tensor.full(tuple(shape), first, dtype=found.dtype, device=found.device).cat(found, dim=place)
    return wrapped(found)


def raise_axis(name: str) -> None:
    """The error of a function that needs an axis where there are several."""
    from lazulite.base.errors import ArgumentError

    raise ArgumentError(name, "an array of several axes needs axis=")


def cumulative_sum(
    x: Array, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False
) -> Array:
    """The sum up to each element."""
    require_kind("cumulative_sum", "iuf", array_of("cumulative_sum", x).dtype)
    return _running("cumulative_sum", x, axis, dtype, include_initial, 0)


def cumulative_prod(
    x: Array, /, *, axis: int | None = None, dtype: DType | None = None, include_initial: bool = False
) -> Array:
    """The product up to each element."""
    require_kind("cumulative_prod", "iuf", array_of("cumulative_prod", x).dtype)
    return _running("cumulative_prod", x, axis, dtype, include_initial, 1)


def diff(
    x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None
) -> Array:
    """The differences of neighbours, taken n times."""
    require_kind("diff", "iuf", array_of("diff", x).dtype)
    promote("diff", *[part.dtype for part in (x, prepend, append) if part is not None])
    return wrapped(x.diff(n, axis, prepend=prepend, append=append))
