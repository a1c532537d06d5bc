"""Statistics: what ignores NaN, quantiles, counts, histograms, covariances.

`axis`/`dim` and `keepdim`/`keepdims` as in `tensor.reduce`.  Methods whose result has as many elements as the
values say look at them now; each says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

from lazulite.base.errors import ArgumentError, DTypeError, ShapeError
from lazulite.ir.dtype import Scalar, dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import Axes, DTypeLike, constant, one_axis, sizes_argument
from lazulite.tensor.placing import PlaceMethods
from lazulite.tensor.products import ProductMethods
from lazulite.tensor.special import SpecialMethods

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


class StatisticsMethods(SpecialMethods, ProductMethods, PlaceMethods):
    """Statistics."""

    __slots__ = ()

    # --- extrema --------------------------------------------------------------------------------------

    def amax(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None, keepdims: bool = False) -> Self:
        """`max` by its other name.

        >>> Tensor([[1, 5], [3, 4]]).amax(dim=1).tolist()
        [5, 4]
        """
        return self.max(_no_axes(axis), keepdim, dim=_no_axes(dim), keepdims=keepdims)

    def amin(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None, keepdims: bool = False) -> Self:
        """`min` by its other name.

        >>> Tensor([[1, 5], [3, 4]]).amin(dim=1).tolist()
        [1, 3]
        """
        return self.min(_no_axes(axis), keepdim, dim=_no_axes(dim), keepdims=keepdims)

    def aminmax(self, *, dim: int | None = None, keepdim: bool = False) -> tuple[Self, Self]:
        """The smallest and the largest element.

        >>> [part.item() for part in Tensor([3, 1, 2]).aminmax()]
        [1, 3]
        """
        return self.min(dim, keepdim), self.max(dim, keepdim)

    # --- without NaN ------------------------------------------------------------------------------------

    def _nan_as(self, otherwise: Scalar) -> Self:
        x = self.uop
        return self._derived(x.ne(x).where(constant(x.dtype, otherwise), x)) if x.dtype.is_float else self

    def nansum(
        self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None,
        *, dim: Axes = None, keepdims: bool = False,
    ) -> Self:  # fmt: skip
        """The sum of what is not NaN; 0 where there is nothing.

        >>> Tensor([1.0, float("nan")]).nansum().item()
        1.0
        """
        return self._nan_as(0).sum(axis, keepdim, dtype, dim=dim, keepdims=keepdims)

    def nanmean(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None, keepdims: bool = False) -> Self:
        """The mean of what is not NaN; NaN where there is nothing.

        >>> Tensor([1.0, 3.0, float("nan")]).nanmean().item()
        2.0
        """
        if not self.dtype.is_float:
            return self.mean(axis, keepdim, dim=dim, keepdims=keepdims)
        count = self._derived(self.uop.eq(self.uop)).sum(axis, keepdim, dim=dim, keepdims=keepdims)
        total = self._nan_as(0)._derived(self._nan_as(0).uop.cast(dtypes.promote(self.dtype, dtypes.float32)))
        return (total.sum(axis, keepdim, dim=dim, keepdims=keepdims) / count).cast(self.dtype)

    def count_nonzero(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None) -> Self:
        """How many elements are not zero, as int32.

        >>> Tensor([0, 1, 2]).count_nonzero().item()
        2
        """
        return self.ne(0).sum(_no_axes(axis), keepdim, dim=_no_axes(dim))

    # --- quantiles --------------------------------------------------------------------------------------

    def quantile(self, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Self:
        """The value below which a share `q` of the elements lies, of all or along an axis; NaN where there is one.

        Several `q` give a new first axis.  Between elements `interpolation` is "linear", "lower", "higher", "midpoint"
        or "nearest" (definition 7 of Hyndman and Fan, as in NumPy and PyTorch).

        >>> Tensor([1.0, 2.0, 3.0, 4.0]).quantile(0.5).item()
        2.5
        """
        return self._quantile("quantile", q, dim, keepdim, interpolation, ignore=False)

    def nanquantile(
        self, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Self:
        """`quantile` of what is not NaN.

        >>> Tensor([1.0, 3.0, float("nan")]).nanquantile(0.5).item()
        2.0
        """
        return self._quantile("nanquantile", q, dim, keepdim, interpolation, ignore=True)

    def _quantile(self, function: str, q: Any, dim: int | None, keep: bool, interpolation: str, ignore: bool) -> Self:
        if interpolation not in _INTERPOLATIONS:
            raise ArgumentError(function, f"interpolation is one of {_INTERPOLATIONS}, not {interpolation!r}")
        levels: Any = self._derived(self._floating())._tensor(function, q)
        if not levels.dtype.is_float or len(levels.shape) > 1:
            raise DTypeError(function, "q is a float or a vector of floats", about={"q": levels})
        axis = 0 if dim is None else one_axis(function, dim, len(self.shape))
        x = (self.flatten() if dim is None else self)._ordered_last(axis)
        size = x.shape[-1]
        if not size:
            raise ShapeError(function, f"no element to choose from in {self.shape}", about={"tensor": self})
        number = x._derived(x.uop.eq(x.uop)).sum(-1, keepdim=True)
        flat = levels.reshape(-1, *[1] * len(x.shape)).cast(dtypes.float64)
        place = flat * (number - 1).maximum(0)
        low, high = place.floor(), place.ceil()
        if interpolation == "nearest":
            low = high = place.round()
        below, above = [x._at(part) for part in (low, high)]
        weight = {"linear": place - low, "midpoint": (high - low) * 0.5}.get(interpolation)
        if weight is None:
            found = above if interpolation == "higher" else below
        else:
            found = (below + (above - below) * weight.cast(x.dtype)).cast(x.dtype)
        if not ignore:
            found = number.ne(size).where(math.nan, found)
        found = found.squeeze(-1)
        if keep:
            shape = (
                [1] * len(self.shape) if dim is None else [1 if at == axis else n for at, n in enumerate(self.shape)]
            )
            found = found.reshape(-1, *shape)
        return found if levels.shape else found.squeeze(0)  # type: ignore[no-any-return]

    def _ordered_last(self, axis: int) -> Self:
        """The floats in order along an axis that comes last; a tensor without axes is its own only element."""
        x: Any = self._derived(self._floating())
        x = x.movedim(axis, -1) if x.shape else x.reshape(1)
        return x.sort(-1)[0]  # type: ignore[no-any-return]

    def _at(self, places: Any) -> Any:
        """The elements at float positions of the last axis, in the shape of the positions."""
        lead = len(places.shape) - len(self.shape)
        shape = (*places.shape[:lead], *self.shape[:-1], 1)
        wide = self.reshape((1,) * lead + self.shape).expand((*places.shape[:lead], *self.shape))
        return wide.gather(-1, places.cast(dtypes.int32).expand(shape))

    def nanmedian(self, dim: int | None = None, keepdim: bool = False) -> Any:
        """The lower middle element of what is not NaN: of all, or along an axis with its int32 position.

        >>> Tensor([1.0, 2.0, float("nan")]).nanmedian().item()
        1.0
        """
        if dim is None:
            return self.flatten().nanmedian(0, keepdim)[0]
        if not self.shape:
            return self, self._derived(UOp.const(dtypes.int32, 0))
        axis = one_axis("nanmedian", dim, len(self.shape))
        if not self.shape[axis]:
            raise ShapeError("nanmedian", f"an axis of no elements has no middle: {self.shape}", about={"tensor": self})
        values, order = self.sort(axis)
        number = self._derived(self.uop.eq(self.uop)).sum(axis, keepdim=True)
        middle = ((number - 1) // 2).maximum(0)
        found = [part.gather(axis, middle) for part in (values, order)]
        return tuple([part if keepdim else part.squeeze(axis) for part in found])

    def mode(self, dim: int = -1, keepdim: bool = False) -> tuple[Self, Self]:
        """The most frequent element along an axis, of several the smallest, and the int32 position of its last one.

        >>> [part.item() for part in Tensor([3, 1, 3, 1, 2]).mode()]
        [1, 3]
        """
        if not self.shape:
            return self, self._derived(UOp.const(dtypes.int32, 0))
        axis = one_axis("mode", dim, len(self.shape))
        if not self.shape[axis]:
            raise ShapeError(
                "mode", f"an axis of no elements has no most frequent: {self.shape}", about={"tensor": self}
            )
        values, order = [part.movedim(axis, -1) for part in self.sort(axis)]
        count = type(self).arange(values.shape[-1], device=self.device)
        begins = values.ne(values.roll(1, -1)) | count.eq(0)
        run = count - begins.where(count, 0).cummax(-1)[0]
        last = run.argmax(-1, keepdim=True)
        found = [part.gather(-1, last).movedim(-1, axis) for part in (values, order)]
        first, second = [part if keepdim else part.squeeze(axis) for part in found]
        return first, second

    # --- counts -----------------------------------------------------------------------------------------

    def bincount(self, weights: Any = None, minlength: int = 0) -> Self:
        """How often each number 0, 1, .. stands in this vector of integers, or the sum of its weights.

        The largest number is looked up now.

        >>> Tensor([1, 3, 1]).bincount().tolist()
        [0, 2, 0, 1]
        """
        if len(self.shape) != 1 or not self.dtype.is_int:
            raise ShapeError("bincount", f"takes a vector of integers, got {self.shape} {self.dtype.name}")
        low, high = (int(self.min().item()), int(self.max().item())) if self.numel() else (0, -1)
        if low < 0 or minlength < 0:
            raise ArgumentError("bincount", f"numbers and minlength are not negative, got {min(low, minlength)}")
        amounts: Any = self.ones_like(dtype=dtypes.int32) if weights is None else self._tensor("bincount", weights)
        if weights is not None and not amounts.dtype.is_float:
            amounts = amounts.cast(dtypes.float64)
        if amounts.shape != self.shape:
            raise ShapeError("bincount", f"{amounts.shape} weights for {self.shape}", about={"weights": amounts})
        counts = type(self).zeros(max(high + 1, minlength), dtype=amounts.dtype, device=self.device)
        return counts.scatter_add(0, self, amounts) if self.numel() else counts

    def histc(self, bins: int = 100, min: float = 0, max: float = 0) -> Self:
        """How many elements lie in each of `bins` intervals of equal width from min to max, in this float type.

        The last one includes `max`; what lies outside, and NaN, does not count.  With min equal to max, the bounds
        are those of the elements (one less and one more where these are equal, too).

        >>> Tensor([1.0, 2.0, 1.0]).histc(bins=4, min=0, max=3).tolist()
        [0.0, 2.0, 1.0, 0.0]
        """
        if bins < 1 or min > max:
            raise ArgumentError("histc", f"needs at least one bin and min <= max, got {bins}, {min} and {max}")
        x: Any = self.flatten()
        wide = x.cast(dtypes.float64)
        if not x.shape[0]:
            return type(self).zeros(bins, dtype=self.dtype, device=self.device)
        if min == max:
            low, high = wide.min(), wide.max()
            low, high = low.eq(high).where(low - 1, low), low.eq(high).where(high + 1, high)
        else:
            low, high = [self._derived(UOp.const(dtypes.float64, float(end))) for end in (min, max)]
        inside = (wide >= low) & (wide <= high)
        place = ((wide - low) * bins / (high - low)).floor().cast(dtypes.int32).minimum(bins - 1)
        counts = type(self).zeros(bins, dtype=dtypes.int32, device=self.device)
        return counts.scatter_add(0, inside.where(place, bins), inside.cast(dtypes.int32)).cast(self.dtype)

    def histogram(
        self, bins: Any, *, range: tuple[float, float] | None = None, weight: Any = None, density: bool = False
    ) -> tuple[Self, Self]:
        """How many elements, or what weight, lie between ascending edges, and the edges; the last interval is closed.

        `bins` is the vector of edges, or the number of intervals of equal width over `range` (by default that of the
        elements).  With `density` the integral is 1.

        >>> [part.tolist() for part in Tensor([1.0, 2.0, 1.0]).histogram(2, range=(0.0, 2.0))]
        [[0.0, 3.0], [0.0, 1.0, 2.0]]
        """
        x: Any = self.flatten()
        if isinstance(bins, int):
            if bins < 1:
                raise ArgumentError("histogram", f"needs at least one bin, got {bins}")
            ends = (x.min(), x.max()) if range is None else range
            low, high = [self._tensor("histogram", end) for end in ends]
            low, high = low.eq(high).where(low - 0.5, low), low.eq(high).where(high + 0.5, high)
            share = type(self).linspace(0, 1, bins + 1, dtype=dtypes.float64, device=self.device)
            edges = low.cast(dtypes.float64).lerp(high.cast(dtypes.float64), share)
            edges = edges.cast(self.dtype)
        else:
            edges = self._tensor("histogram", bins)
        count = edges.shape[0] - 1
        place = edges.searchsorted(x, right=True) - 1
        place = x.eq(edges[-1]).where(count - 1, place)
        inside = (x >= edges[0]) & (x <= edges[-1])
        amount = x.ones_like() if weight is None else self._tensor("histogram", weight).flatten()
        total = type(self).zeros(count, dtype=dtypes.float64, device=self.device)
        total = total.scatter_add(0, inside.where(place, count), amount.cast(dtypes.float64))
        if density:
            total = total / total.sum() / (edges[1:] - edges[:-1])
        return total.cast(self.dtype), edges

    # --- differences and averages -------------------------------------------------------------------------

    def diff(self, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Self:
        """The difference of each element to the one before along an axis, `n` times.

        >>> Tensor([1, 4, 9]).diff().tolist()
        [3, 5]
        """
        if n < 0 or not self.shape:
            raise ArgumentError("diff", f"needs an axis and a count that is not negative, got {self.shape} and {n}")
        axis = one_axis("diff", dim, len(self.shape))
        first, *rest = [self._tensor("diff", part) for part in (prepend, self, append) if part is not None]
        x: Any = first.cat(*rest, dim=axis)
        for _ in range(n):
            size = x.shape[axis]
            if size < 2:
                return x.narrow(axis, 0, 0)  # type: ignore[no-any-return]
            after, before = x.narrow(axis, 1, size - 1), x.narrow(axis, 0, size - 1)
            x = after.ne(before) if x.dtype is dtypes.bool else after - before
        return x  # type: ignore[no-any-return]

    def cov(self, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Self:
        """The covariances of the rows of a matrix (of one row its variance), with n - `correction` degrees of freedom.

        `fweights` count observations, `aweights` weigh them (as in numpy.cov).

        >>> Tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).cov().tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
        """
        if len(self.shape) > 2:
            raise ShapeError("cov", f"takes at most two axes, got {self.shape}", about={"tensor": self})
        x: Any = self._derived(self._floating()).reshape((1, -1) if len(self.shape) < 2 else self.shape)
        weights: Any = None if fweights is None else self._tensor("cov", fweights)
        if aweights is not None:
            shares = self._tensor("cov", aweights)
            weights = shares if weights is None else weights * shares
        if weights is None:
            freedom: Any = max(x.shape[1] - correction, 0)
            gap = x - x.mean(1, keepdim=True)
            other = gap
        else:
            total = weights.sum()
            gap = x - (x * weights).sum(1, keepdim=True) / total
            other = gap * weights
            lost = 0 if correction == 0 else correction * self._lost(weights, aweights) / total
            freedom = (total - lost).maximum(0)
        result = other.matmul(gap.transpose(0, 1)) / freedom
        return result if x.shape[0] != 1 else result.reshape(())  # type: ignore[no-any-return]

    def _lost(self, weights: Any, aweights: Any) -> Any:
        """The sum of weights, each times its share: what a correction of 1 takes."""
        return weights.sum() if aweights is None else (weights * self._tensor("cov", aweights)).sum()

    def corrcoef(self) -> Self:
        """The correlations of the rows of a matrix.

        >>> Tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).corrcoef().tolist()
        [[1.0, -1.0], [-1.0, 1.0]]
        """
        matrix: Any = self.cov()
        if not matrix.shape:
            return matrix / matrix  # type: ignore[no-any-return]
        spread = matrix.diagonal().sqrt()
        return (matrix / spread.unsqueeze(1) / spread).clip(-1, 1)  # type: ignore[no-any-return]

    # --- norms and sums -----------------------------------------------------------------------------------

    def renorm(self, p: float, dim: int, maxnorm: float) -> Self:
        """The parts along an axis, those with a larger `p`-norm scaled down to `maxnorm`.

        >>> Tensor([[3.0, 4.0], [0.3, 0.4]]).renorm(2, 0, 1.0).round().tolist()
        [[1.0, 1.0], [0.0, 0.0]]
        """
        axis = one_axis("renorm", dim, len(self.shape))
        if len(self.shape) < 2 or p <= 0:
            raise ArgumentError("renorm", f"needs two axes and p above 0, got {self.shape} and {p}")
        others = [at for at in range(len(self.shape)) if at != axis]
        size = self.abs().max(others, keepdim=True) if p == math.inf else self._power_norm(p, others)
        factor = (size > maxnorm).where(maxnorm / (size + 1e-7), 1.0)
        return self * factor

    def _power_norm(self, p: float, axes: list[int]) -> Any:
        if p == 2:
            return self.square().sum(axes, keepdim=True).sqrt()
        return self.abs().pow(p).sum(axes, keepdim=True).pow(1 / p)

    def sum_to_size(self, *size: Any) -> Self:
        """Summed over the axes by which a tensor of this size was expanded to it.

        >>> Tensor([[1, 2], [3, 4]]).sum_to_size(1, 2).tolist()
        [[4, 6]]
        """
        target = sizes_argument("sum_to_size", size[0], size[1:]) if size else ()
        lead = len(self.shape) - len(target)
        fits = lead >= 0 and all(n in (1, own) for n, own in zip(target, self.shape[max(lead, 0) :], strict=False))
        if not fits:
            raise ShapeError("sum_to_size", f"{self.shape} does not come from {target}", about={"tensor": self})
        axes = [*range(lead), *[lead + at for at, n in enumerate(target) if n != self.shape[lead + at]]]
        total = self.sum(axes, keepdim=True) if axes else self
        return total.cast(self.dtype).reshape(target)

    def clamp_min(self, min: Any) -> Self:
        """`clip` from below.

        >>> Tensor([1, 5]).clamp_min(3).tolist()
        [3, 5]
        """
        return self.maximum(min)

    def clamp_max(self, max: Any) -> Self:
        """`clip` from above.

        >>> Tensor([1, 5]).clamp_max(3).tolist()
        [1, 3]
        """
        return self.minimum(max)

    def msort(self) -> Self:
        """In order along the first axis.

        >>> Tensor([3, 1, 2]).msort().tolist()
        [1, 2, 3]
        """
        return self.sort(0)[0]

    def apply_(self, function: Callable[[Scalar], Scalar]) -> Self:
        """Write what a Python function makes of each element to this tensor.  Slow: it runs on the host, now.

        >>> Tensor([1, 2]).apply_(lambda x: x + 1).tolist()
        [2, 3]
        """
        return self._computed("apply_", function)

    def map_(self, tensor: Any, function: Callable[[Scalar, Scalar], Scalar]) -> Self:
        """Write what a Python function makes of each element and that of another tensor.  Slow, as `apply_`.

        >>> Tensor([1, 2]).map_(Tensor([3, 4]), lambda x, y: x * y).tolist()
        [3, 8]
        """
        return self._computed("map_", function, tensor)

    def map2_(self, x: Any, y: Any, function: Callable[[Scalar, Scalar, Scalar], Scalar]) -> Self:
        """`map_` with two more tensors.

        >>> Tensor([1, 2]).map2_(Tensor([3, 4]), Tensor([5, 6]), lambda x, y, z: x + y + z).tolist()
        [9, 12]
        """
        return self._computed("map2_", function, x, y)

    def _computed(self, name: str, function: Callable[..., Scalar], *others: Any) -> Self:
        if not callable(function):
            raise DTypeError(name, f"takes a function, got {type(function).__name__}", about={"tensor": self})
        columns = [self.flatten().tolist()]
        columns += [self._tensor(name, other).expand(self.shape).flatten().tolist() for other in others]
        values = [function(*each) for each in zip(*columns, strict=True)]
        return self.assign(type(self)(values, device=self.device, dtype=self.dtype).reshape(self.shape))


def _no_axes(axes: Axes) -> Axes:
    """In PyTorch no axis at all stands for every axis."""
    return None if axes in ((), []) else axes
