"""Axes brought to new sizes.

Every mode gives, for each new element, the places of some old ones and their weights, as tensors; fractions are
those of integers where the sizes give the scale, so that places are exact.  Axes are resampled one after another;
what is computed is picking, products and sums.  Elements are areas whose middles count, with `align_corners` points of
which the first and last stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import float_dtype, wide_dtype
from lazulite.tensor.functions import FunctionMethods
from lazulite.tensor.gather import GatherMethods
from lazulite.tensor.products import ProductMethods

_MODES = ("nearest", "nearest-exact", "linear", "bicubic", "area")
_SHARP, _SMOOTH = -0.75, -0.5
"""The parameter of Keys' cubic kernel: OpenCV's and torch's, and Pillow's, which antialiasing follows."""


class ResampleMethods(FunctionMethods, ProductMethods, GatherMethods):
    """Resizing."""

    __slots__ = ()

    def interpolate(
        self, size: int | Sequence[int], mode: str = "linear", align_corners: bool = False, antialias: bool = False,
        scale_factors: Sequence[float] | None = None,
    ) -> Self:  # fmt: skip
        """The last axes brought to new sizes.

        "linear" and "bicubic" (any number of axes) mix the two or four nearest elements of each axis, "nearest"
        takes the one below, "nearest-exact" that around the middle, "area" the mean of a part.  `align_corners`
        (linear and bicubic) keeps the first and last element; a single new one is the first (B092).  `antialias`
        widens the kernel where an axis shrinks.  `scale_factors` are used for places instead of the sizes' ratios.

        >>> Tensor([0.0, 2.0]).interpolate(3, align_corners=True).tolist()
        [0.0, 1.0, 2.0]
        """
        sizes = (size,) if isinstance(size, int) else tuple(size)
        smooth = mode in ("linear", "bicubic")
        if mode not in _MODES or ((align_corners or antialias) and not smooth):
            raise ArgumentError("interpolate", f"mode {mode!r} with align_corners={align_corners} is none of the modes")
        lead = len(self.shape) - len(sizes)
        if lead < 0 or min(sizes, default=1) < 0 or 0 in self.shape[lead:]:
            raise ShapeError(
                "interpolate", f"the last axes of {self.shape} cannot become {sizes}", about={"self": self}
            )
        x = self
        for axis, new in enumerate(sizes, lead):
            factor = None if scale_factors is None else scale_factors[axis - lead]
            grid = _Grid(x.shape[axis], new, align_corners, factor)
            places, weights = x._filter(mode, grid) if antialias else x._taps(mode, grid)
            x = x._combined(axis, places, weights)
        return x.cast(float_dtype(self.dtype)) if mode not in ("nearest", "nearest-exact") else x

    def _combined(self, axis: int, places: Self, weights: Self | None) -> Self:
        """Each new element of an axis from old ones: (new, taps) places, and weights unless there is one tap."""
        new, taps = places.shape
        picked = self.index_select(axis, places.cast(dtypes.int32).flatten())
        if weights is None:
            return picked
        dtype = wide_dtype(self.dtype)
        column = weights.cast(dtype).reshape((new, taps, *(1,) * (len(self.shape) - axis - 1)))
        return (picked.unflatten(axis, (new, taps)).cast(dtype) * column).sum(axis + 1)

    def _numbers(self, count: int, offset: int = 0) -> Self:
        """offset, offset + 1, .. as int64."""
        return self._derived(UOp(ops.IOTA, dtypes.int64, (), count)) + offset

    def _taps(self, mode: str, grid: _Grid) -> tuple[Self, Self | None]:
        """The places and weights of one, two or four elements, or those of a part."""
        number, last = self._numbers(grid.new).unsqueeze(1), grid.old - 1
        if mode in ("nearest", "nearest-exact"):
            below, _ = grid.place(number, twice=mode == "nearest-exact")
            return below.clip(0, last), None
        if mode == "area":
            begin, end = number * grid.old // grid.new, ((number + 1) * grid.old + grid.new - 1) // grid.new
            places = begin + self._numbers(-(-grid.old // grid.new) + (grid.old % grid.new > 0))
            return places.clip(0, last), (places < end) / (end - begin)
        below, share = grid.middle(number, least=0 if mode == "linear" else None)
        if mode == "linear":
            weights = (1 - share).cat(share, dim=1)
            return (below + self._numbers(2)).clip(0, last), weights
        around = self._numbers(4, -1)
        return (below + around).clip(0, last), (share - around)._cubic(_SHARP)

    def _filter(self, mode: str, grid: _Grid) -> tuple[Self, Self]:
        """The places and weights of the elements under a kernel as wide as the new element."""
        wide = max(grid.scale, 1.0)
        reach = wide * (1 if mode == "linear" else 2)
        middle = (self._numbers(grid.new).unsqueeze(1).cast(dtypes.float64) + 0.5) * grid.scale
        begin, end = [(middle + (side * reach + 0.5)).cast(dtypes.int64).clip(0, grid.old) for side in (-1, 1)]
        places = begin + self._numbers(int(2 * reach) + 2)
        away = ((places - middle + 0.5) / wide).abs()
        weights = (1 - away).maximum(0) if mode == "linear" else away._cubic(_SMOOTH)
        weights = (places < end).where(weights, 0)
        return places.clip(0, grid.old - 1), weights / weights.sum(1, keepdim=True)

    def _cubic(self, a: float) -> Self:
        """Keys' cubic convolution kernel."""
        x = self.abs()
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return (x <= 1).where(near, (x < 2).where(far, 0))


class _Grid(NamedTuple):
    """Old and new elements of an axis, and how places follow from numbers."""

    old: int
    new: int
    align_corners: bool
    factor: float | None

    @property
    def scale(self) -> float:
        """The old elements for each new one."""
        if self.align_corners:
            return (self.old - 1) / (self.new - 1) if self.new > 1 else 0.0
        return self.old / max(self.new, 1) if self.factor is None else 1 / self.factor

    def place(self, number: Any, twice: bool) -> tuple[Any, Any]:
        """Where a new element begins, or (twice) its middle is: a whole place, and the share of the next."""
        numerator = number * 2 + 1 if twice else number
        if self.factor is None:
            return _divided(numerator * self.old, (2 if twice else 1) * max(self.new, 1))
        return _parted(numerator.cast(dtypes.float64) * (self.scale / (2 if twice else 1)))

    def middle(self, number: Any, least: int | None) -> tuple[Any, Any]:
        """The place whose value a new element has, not before `least`."""
        if self.align_corners:
            return _divided(number * (self.old - 1 if self.new > 1 else 0), max(self.new - 1, 1))
        if self.factor is not None:
            place = (number.cast(dtypes.float64) + 0.5) * self.scale - 0.5
            return _parted(place if least is None else place.maximum(least))
        numerator = (number * 2 + 1) * self.old - self.new
        return _divided(numerator if least is None else numerator.maximum(least), 2 * max(self.new, 1))


def _divided(numerator: Any, denominator: int) -> tuple[Any, Any]:
    return numerator // denominator, (numerator % denominator).cast(dtypes.float64) / denominator


def _parted(place: Any) -> tuple[Any, Any]:
    below = place.floor()
    return below.cast(dtypes.int64), place - below
