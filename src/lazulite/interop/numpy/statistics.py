"""Statistics over axes, and running ones."""

from __future__ import annotations

import math
from builtins import range as _builtin_range
from collections.abc import Sequence
from typing import Any

from lazulite.base.errors import ArgumentError
from lazulite.interop.elementwise import as_tensor
from lazulite.interop.numpy.shapes import concatenate
from lazulite.ir.dtype import DType, dtypes
from lazulite.tensor.base import float_dtype, one_axis
from lazulite.tensor.tensor import Tensor

__all__ = [
    "all", "allclose", "amax", "amin", "angle", "any", "around", "average", "bincount", "clip", "corrcoef",
    "count_nonzero", "cov", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "digitize", "fix",
    "histogram", "histogram2d", "histogram_bin_edges", "histogramdd", "i0", "imag", "isclose", "isneginf",
    "isposinf", "max", "mean", "median", "min", "nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum",
    "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum",
    "nanvar", "percentile", "prod", "ptp", "quantile", "real", "real_if_close", "round", "sinc", "std", "sum",
    "var",
]  # fmt: skip

Axes = int | Sequence[int] | None
Type = DType | str | None


def _typed(a: Any, dtype: Type) -> Tensor:
    return as_tensor(a) if dtype is None else as_tensor(a).cast(dtype)


# --- reductions --------------------------------------------------------------------------------------


def all(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Whether all elements are true."""
    return as_tensor(a).all(axis, keepdim=keepdims)


def any(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """Whether an element is true."""
    return as_tensor(a).any(axis, keepdim=keepdims)


def max(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The largest element; NaN if there is one."""
    return as_tensor(a).max(axis, keepdim=keepdims)


def min(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The smallest element; NaN if there is one."""
    return as_tensor(a).min(axis, keepdim=keepdims)


amax, amin = max, min


def ptp(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The largest less the smallest element."""
    return max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)


def sum(a: Any, axis: Axes = None, dtype: Type = None, *, keepdims: bool = False) -> Tensor:
    """The sum."""
    return as_tensor(a).sum(axis, keepdim=keepdims, dtype=dtype)


def prod(a: Any, axis: Axes = None, dtype: Type = None, *, keepdims: bool = False) -> Tensor:
    """The product."""
    return as_tensor(a).prod(axis, keepdim=keepdims, dtype=dtype)


def mean(a: Any, axis: Axes = None, dtype: Type = None, *, keepdims: bool = False) -> Tensor:
    """The mean."""
    return _typed(a, dtype).mean(axis, keepdim=keepdims)


def var(
    a: Any,
    axis: Axes = None,
    dtype: Type = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    correction: float | None = None,
) -> Tensor:
    """The variance: squares over their number less `ddof`."""
    less = ddof if correction is None else correction
    return _typed(a, dtype).var(axis, keepdim=keepdims, correction=less)


def std(
    a: Any,
    axis: Axes = None,
    dtype: Type = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    correction: float | None = None,
) -> Tensor:
    """The standard deviation."""
    return var(a, axis, dtype, ddof=ddof, keepdims=keepdims, correction=correction).sqrt()


def average(a: Any, axis: Axes = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The mean, or that with weights; with `returned` the sum of the weights beside it."""
    tensor = as_tensor(a)
    if weights is None:
        found = mean(tensor, axis, keepdims=keepdims)
        count = found.full_like(tensor.numel() / math.prod(found.shape))
        return (found, count) if returned else found
    given = as_tensor(weights)
    if given.shape != tensor.shape and isinstance(axis, int):
        place = one_axis("average", axis, len(tensor.shape))
        given = given.reshape(*[-1 if place == each else 1 for each in range(len(tensor.shape))]).expand(*tensor.shape)
    total = given.sum(axis, keepdim=keepdims)
    found = (tensor * given).sum(axis, keepdim=keepdims) / total
    return (found, total.cast(found.dtype)) if returned else found


def count_nonzero(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """How many elements are not zero."""
    return as_tensor(a).count_nonzero(axis, keepdim=keepdims)


# --- without NaN -------------------------------------------------------------------------------------


def _without_nan(a: Any, fill: float) -> Tensor:
    tensor = as_tensor(a)
    return tensor.isnan().where(fill, tensor) if tensor.dtype.is_float else tensor


def _unless_all_nan(a: Any, axis: Axes, keepdims: bool, found: Tensor) -> Tensor:
    tensor = as_tensor(a)
    if not tensor.dtype.is_float:
        return found
    return tensor.isnan().all(axis, keepdim=keepdims).where(math.nan, found)


def nanmax(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The largest element that is not NaN."""
    return _unless_all_nan(a, axis, keepdims, max(_without_nan(a, -math.inf), axis, keepdims=keepdims))


def nanmin(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The smallest element that is not NaN."""
    return _unless_all_nan(a, axis, keepdims, min(_without_nan(a, math.inf), axis, keepdims=keepdims))


def nansum(a: Any, axis: Axes = None, dtype: Type = None, *, keepdims: bool = False) -> Tensor:
    """The sum without NaN."""
    return sum(_without_nan(a, 0.0), axis, dtype, keepdims=keepdims)


def nanprod(a: Any, axis: Axes = None, dtype: Type = None, *, keepdims: bool = False) -> Tensor:
    """The product without NaN."""
    return prod(_without_nan(a, 1.0), axis, dtype, keepdims=keepdims)


def _numbers(a: Any, axis: Axes) -> Tensor:
    """How many elements are not NaN, axes kept."""
    return as_tensor(a).isnan().logical_not().sum(axis, keepdim=True)


def nanmean(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The mean without NaN."""
    found = nansum(a, axis, keepdims=True) / _numbers(a, axis)
    return found if keepdims else _dropped(found, axis)


def nanvar(a: Any, axis: Axes = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The variance without NaN."""
    tensor, count = as_tensor(a), _numbers(a, axis)
    apart = tensor - nanmean(tensor, axis, keepdims=True)
    found = (count > ddof).where(nansum(apart * apart, axis, keepdims=True) / (count - ddof), math.nan)
    return found if keepdims else _dropped(found, axis)


def nanstd(a: Any, axis: Axes = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The standard deviation without NaN."""
    return nanvar(a, axis, ddof=ddof, keepdims=keepdims).sqrt()


def _dropped(kept: Tensor, axis: Axes) -> Tensor:
    """Without the axes that a reduction kept."""
    rank = len(kept.shape)
    axes = range(rank) if axis is None else [axis] if isinstance(axis, int) else axis
    gone = {one_axis("axis", each, rank) for each in axes}
    return kept.reshape(tuple([size for place, size in enumerate(kept.shape) if place not in gone]))


def nanargmax(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Where the largest element that is not NaN stands first."""
    return _without_nan(a, -math.inf).argmax(axis, keepdim=keepdims)


def nanargmin(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Where the smallest element that is not NaN stands first."""
    return _without_nan(a, math.inf).argmin(axis, keepdim=keepdims)


# --- running -----------------------------------------------------------------------------------------


def cumsum(a: Any, axis: int | None = None, dtype: Type = None) -> Tensor:
    """The sum up to each element, of the flat array unless an axis is named."""
    tensor = _typed(a, dtype)
    return tensor.flatten().cumsum(0) if axis is None else tensor.cumsum(axis)


def cumprod(a: Any, axis: int | None = None, dtype: Type = None) -> Tensor:
    """The product up to each element, of the flat array unless an axis is named."""
    tensor = _typed(a, dtype)
    return tensor.flatten().cumprod(0) if axis is None else tensor.cumprod(axis)


def nancumsum(a: Any, axis: int | None = None, dtype: Type = None) -> Tensor:
    """The sum up to each element without NaN."""
    return cumsum(_without_nan(a, 0.0), axis, dtype)


def nancumprod(a: Any, axis: int | None = None, dtype: Type = None) -> Tensor:
    """The product up to each element without NaN."""
    return cumprod(_without_nan(a, 1.0), axis, dtype)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Type = None, include_initial: bool = False) -> Tensor:
    """The sum up to each element, from 0 on with `include_initial`."""
    return _from_the_first(cumsum(x, axis or 0, dtype), axis or 0, 0, include_initial)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Type = None, include_initial: bool = False) -> Tensor:
    """The product up to each element, from 1 on with `include_initial`."""
    return _from_the_first(cumprod(x, axis or 0, dtype), axis or 0, 1, include_initial)


def _from_the_first(found: Tensor, axis: int, first: int, wanted: bool) -> Tensor:
    if not wanted:
        return found
    place = one_axis("axis", axis, len(found.shape))
    shape = tuple([1 if each == place else size for each, size in enumerate(found.shape)])
    return concatenate([Tensor.full(shape, first, dtype=found.dtype), found], place)


# --- quantiles ---------------------------------------------------------------------------------------


def quantile(a: Any, q: Any, axis: Axes = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """What a share of the elements is below; methods linear, lower, higher, midpoint and nearest."""
    return _quantile(Tensor.quantile, a, q, axis, method, keepdims)


def nanquantile(a: Any, q: Any, axis: Axes = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """`quantile` without NaN."""
    return _quantile(Tensor.nanquantile, a, q, axis, method, keepdims)


def _quantile(function: Any, a: Any, q: Any, axis: Axes, method: str, keepdims: bool) -> Tensor:
    tensor, share = as_tensor(a), as_tensor(q)
    tensor = tensor.cast(float_dtype(tensor.dtype))
    axes = range(len(tensor.shape)) if axis is None else [axis] if isinstance(axis, int) else axis
    places = sorted({one_axis("quantile", each, len(tensor.shape)) for each in axes})
    rest = [each for each in range(len(tensor.shape)) if each not in places]
    row = tensor.permute(*rest, *places) if len(tensor.shape) > 1 else tensor
    row = row.reshape(*[tensor.shape[each] for each in rest], -1)
    found = function(row, share.flatten().cast(tensor.dtype), dim=-1, interpolation=method)
    kept = [1 if each in places else size for each, size in enumerate(tensor.shape)] if keepdims else row.shape[:-1]
    return found.reshape((*share.shape, *kept))  # type: ignore[no-any-return]


def percentile(a: Any, q: Any, axis: Axes = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """`quantile` by hundredths."""
    return quantile(a, as_tensor(q) / 100, axis, method=method, keepdims=keepdims)


def nanpercentile(a: Any, q: Any, axis: Axes = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """`nanquantile` by hundredths."""
    return nanquantile(a, as_tensor(q) / 100, axis, method=method, keepdims=keepdims)


def median(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The middle element, or the mean of the two in the middle."""
    return quantile(a, 0.5, axis, keepdims=keepdims)


def nanmedian(a: Any, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """`median` without NaN."""
    return nanquantile(a, 0.5, axis, keepdims=keepdims)


# --- relations ---------------------------------------------------------------------------------------


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None,
) -> Tensor:  # fmt: skip
    """The covariances of variables in rows (in columns without `rowvar`)."""
    rows = _variables(m, y, rowvar)
    correction = ddof if ddof is not None else 0 if bias else 1
    weights = [None if w is None else as_tensor(w) for w in (fweights, aweights)]
    return rows.cov(correction=correction, fweights=weights[0], aweights=weights[1])


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Tensor:
    """The correlations of variables in rows."""
    return _variables(x, y, rowvar).corrcoef()


def _variables(m: Any, y: Any, rowvar: bool) -> Tensor:
    parts = [as_tensor(each) for each in (m, y) if each is not None]
    parts = [part if rowvar or len(part.shape) < 2 else part.transpose(0, 1) for part in parts]
    if len(parts) == 1:
        return parts[0]
    return concatenate([part if len(part.shape) > 1 else part.reshape(1, -1) for part in parts], 0)


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether elements differ by no more than `atol` plus `rtol` of the second."""
    return as_tensor(a).isclose(as_tensor(b), rtol, atol, equal_nan)


def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close."""
    return bool(isclose(a, b, rtol, atol, equal_nan).all().item())


# --- counting ----------------------------------------------------------------------------------------


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 on occurs, or the sum of its weights."""
    return as_tensor(x).bincount(None if weights is None else as_tensor(weights), minlength)


def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """Which of the bins each element is in; the edges ascend or descend."""
    edges, values = as_tensor(bins), as_tensor(x)
    if edges.shape[0] > 1 and (edges[0] > edges[-1]).item():
        return edges.flip(0).searchsorted(values, side="right" if right else "left").neg() + edges.shape[0]
    return edges.searchsorted(values, side="left" if right else "right")


def histogram_bin_edges(a: Any, bins: Any = 10, range: Sequence[float] | None = None, weights: Any = None) -> Tensor:
    """The edges of bins: so many of equal width, or those given."""
    if isinstance(bins, str):
        raise ArgumentError("histogram", f"the number of bins is not chosen by {bins!r}", hint="a number, or edges")
    if not isinstance(bins, int):
        return as_tensor(bins)
    values = as_tensor(a).flatten()
    low, high = range if range is not None else (0.0, 1.0) if not values.numel() else _limits(values)
    low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
    return Tensor.linspace(float(low), float(high), bins + 1, dtype=float_dtype(values.dtype))


def _limits(values: Tensor) -> tuple[float, float]:
    return float(values.min().item()), float(values.max().item())


def _bins_of(values: Tensor, edges: Tensor) -> Tensor:
    """The number of the bin of each value, the last one closed; -1 outside."""
    count = edges.shape[0] - 1
    found = edges.searchsorted(values.cast(edges.dtype), side="right") - 1
    inside = (values >= edges[0]) & (values <= edges[-1])
    return inside.where(found.minimum(count - 1), -1)


def histogram(
    a: Any, bins: Any = 10, range: Sequence[float] | None = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """How many values are in each bin (or their weights, or the density), and the edges."""
    values, edges = as_tensor(a).flatten(), histogram_bin_edges(a, bins, range)
    return _counted(values.reshape(-1, 1), [edges], density, weights), edges


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """How many points are in each cell, and the edges of both axes."""
    both = as_tensor(x).flatten().stack(as_tensor(y).flatten(), dim=1)
    several = isinstance(bins, list | tuple) and len(bins) == 2
    counts, edges = histogramdd(
        both, bins if several or isinstance(bins, int) else [bins, bins], range, density, weights
    )
    return counts, edges[0], edges[1]


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, list[Tensor]]:
    """How many rows of a matrix are in each cell, and the edges of each axis."""
    points = (
        as_tensor(sample)
        if isinstance(sample, Tensor) or not isinstance(sample, tuple)
        else Tensor.stack(*[as_tensor(each) for each in sample], dim=1)
    )
    count = points.shape[1]
    wanted = [bins] * count if isinstance(bins, int) else list(bins)
    limits = [None] * count if range is None else list(range)
    edges = [histogram_bin_edges(points[:, n], wanted[n], limits[n]) for n in _upto(count)]
    found = _counted(points, edges, density, weights)
    return found.cast(float_dtype(found.dtype)), edges


def _counted(points: Tensor, edges: list[Tensor], density: bool | None, weights: Any) -> Tensor:
    """How many rows, or which weight or density, is in each cell."""
    sizes = [each.shape[0] - 1 for each in edges]
    places = [_bins_of(points[:, number], each) for number, each in enumerate(edges)]
    inside, place = places[0] >= 0, places[0]
    for own, size in zip(places[1:], sizes[1:], strict=True):
        place, inside = place * size + own, inside & (own >= 0)
    weight = inside.cast(dtypes.int32) if weights is None else inside.where(as_tensor(weights).flatten(), 0)
    nothing = Tensor.zeros(math.prod(sizes), dtype=weight.dtype)
    found = nothing.scatter_add(0, inside.where(place, 0), weight).reshape(*sizes)
    return _density(found, edges) if density else found


def _upto(count: int) -> list[int]:
    return list(_builtin_range(count))


def _density(found: Tensor, edges: list[Tensor]) -> Tensor:
    """Counts over their sum and the volume of each cell."""
    rank = len(edges)
    result = found / found.sum()
    for number, each in enumerate(edges):
        result = result / (each[1:] - each[:-1]).reshape(*[-1 if n == number else 1 for n in _upto(rank)])
    return result


# --- elementwise -------------------------------------------------------------------------------------


def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Tensor:
    """Each element as near as the bounds allow."""
    low, high = a_min if min is None else min, a_max if max is None else max
    found = as_tensor(a)
    found = found if low is None else found.maximum(low if isinstance(low, int | float) else as_tensor(low))
    return found if high is None else found.minimum(high if isinstance(high, int | float) else as_tensor(high))


def round(a: Any, decimals: int = 0) -> Tensor:
    """The nearest number of so many digits behind the point, ties to even."""
    return as_tensor(a).round(decimals=decimals)


around = round


def fix(x: Any) -> Tensor:
    """The part before the point."""
    return as_tensor(x).trunc()


def nan_to_num(x: Any, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """NaN and infinities as numbers."""
    return as_tensor(x).nan_to_num(nan, posinf, neginf)


def isposinf(x: Any) -> Tensor:
    """Whether elements are plus infinity."""
    return as_tensor(x).isposinf()


def isneginf(x: Any) -> Tensor:
    """Whether elements are minus infinity."""
    return as_tensor(x).isneginf()


def real(val: Any) -> Tensor:
    """The array itself: its numbers are real."""
    return as_tensor(val)


def real_if_close(a: Any, tol: float = 100) -> Tensor:
    """The array itself: its numbers are real."""
    return as_tensor(a)


def imag(val: Any) -> Tensor:
    """Zeros: the numbers are real."""
    return as_tensor(val).zeros_like()


def angle(z: Any, deg: bool = False) -> Tensor:
    """Zero for numbers that are not negative, half a turn for those that are."""
    tensor = as_tensor(z)
    below = tensor.signbit() if tensor.dtype.is_float else tensor < 0
    found = below.where(180.0 if deg else math.pi, 0.0)
    return tensor.isnan().where(math.nan, found) if tensor.dtype.is_float else found


def i0(x: Any) -> Tensor:
    """The modified Bessel function of order 0."""
    tensor = as_tensor(x)
    return tensor.cast(float_dtype(tensor.dtype)).i0()


def sinc(x: Any) -> Tensor:
    """sin(pi x) / (pi x)."""
    tensor = as_tensor(x)
    return tensor.cast(float_dtype(tensor.dtype)).sinc()
