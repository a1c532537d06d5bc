"""Resize and Upsample: each axis on its own, as a weighted sum of a few of its elements.

Which elements, and with what weights, follows from sizes and attributes alone (`taps`), so it is worked
out on the host, in float64; the tensor sees gathers and multiplications, as many as the filter is wide.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy

from lazulite.base.errors import FormatError
from lazulite.formats.onnx.registry import onnx_op
from lazulite.formats.onnx.values import Host, Ints
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class _Filter:
    """The attributes that say how an axis is resampled."""

    mode: str
    coordinates: str
    nearest: str
    cubic: float
    exclude_outside: bool
    antialias: bool


@onnx_op("Resize", since=11)
def resize(
    x: Tensor, roi: Host | None = None, scales: Host | None = None, sizes: Ints | None = None, *, antialias: int = 0,
    axes: list[int] | None = None, coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0, extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest", nearest_mode: str = "round_prefer_floor",
) -> Tensor:  # fmt: skip
    """Integers are rounded to nearest and saturate (B128)."""
    chosen = [axis % len(x.shape) for axis in (range(len(x.shape)) if axes is None else axes)]
    regions = (
        numpy.array([[0.0] * len(chosen), [1.0] * len(chosen)]) if roi is None or not roi.size else roi.reshape(2, -1)
    )
    crops = coordinate_transformation_mode == "tf_crop_and_resize"
    spans = [(float(b), float(e)) if crops else (0.0, 1.0) for b, e in regions.T]
    wanted, factors = _targets([x.shape[axis] for axis in chosen], spans, scales, sizes, keep_aspect_ratio_policy)
    kind = _Filter(
        mode, coordinate_transformation_mode, nearest_mode, cubic_coeff_a, bool(exclude_outside), bool(antialias)
    )
    return _resampled(x, chosen, wanted, factors, spans, kind, extrapolation_value if crops else None)


@onnx_op("Resize", since=10)
@onnx_op("Upsample", since=7)
def upsample(x: Tensor, scales: Host, *, mode: str = "nearest") -> Tensor:
    """The versions before 11, in which a place is a multiple of the scale."""
    axes = list(range(len(x.shape)))
    spans = [(0.0, 1.0)] * len(axes)
    wanted, factors = _targets(x.shape, spans, scales, None, "stretch")
    kind = _Filter(mode, "asymmetric", "floor", -0.75, False, False)
    return _resampled(x, axes, wanted, factors, spans, kind, None)


@onnx_op("Upsample")
def upsample_image(x: Tensor, *, height_scale: float, width_scale: float, mode: str = "nearest") -> Tensor:
    """The first version: of images only."""
    return upsample(x, numpy.array([1.0, 1.0, height_scale, width_scale], "float32"), mode=mode)


def _targets(
    shape: Sequence[int], spans: Sequence[tuple[float, float]], scales: Host | None, sizes: Ints | None, policy: str
) -> tuple[list[int], list[float]]:
    """The new size and the scale of each axis."""
    if sizes is None or not sizes:
        if scales is None or len(scales) != len(shape):
            raise FormatError("OnnxRunner", f"Resize needs sizes or a scale for each of {len(shape)} axes")
        factors = [float(scale) for scale in scales]
        facts = zip(shape, spans, factors, strict=True)
        return [math.floor(size * (end - begin) * factor) for size, (begin, end), factor in facts], factors
    ratios = [new / old for new, old in zip(sizes, shape, strict=True)]
    if policy == "stretch":
        return list(sizes), ratios
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [math.floor(scale * size + 0.5) for size in shape], [scale] * len(shape)


def _resampled(
    x: Tensor, axes: Sequence[int], sizes: Sequence[int], factors: Sequence[float],
    spans: Sequence[tuple[float, float]], kind: _Filter, outside_value: float | None,
) -> Tensor:  # fmt: skip
    given, exact = x.dtype, kind.mode == "nearest"
    y = x if exact or given.is_float else x.cast(dtypes.float32)
    beyond = []
    for axis, new, factor, span in zip(axes, sizes, factors, spans, strict=True):
        old = x.shape[axis]
        if new == old and factor == 1 and span == (0.0, 1.0):
            continue
        places = _places(new, old, factor, span, kind.coordinates)
        if outside_value is not None:
            beyond.append((axis, (places < 0) | (places > old - 1)))
        y = _mixed(y, axis, *taps(places, old, factor, kind))
    if not given.is_float and not exact:
        y = y.round()
    for axis, outside in beyond:
        gate = Tensor(outside, device=x.device).reshape([-1 if n == axis else 1 for n in range(len(x.shape))])
        y = gate.where(outside_value, y)
    return y.cast(given)


def _mixed(x: Tensor, axis: int, index: Host, weights: Host) -> Tensor:
    """The sum over the taps of the elements there times their weights."""
    shape = [-1 if n == axis else 1 for n in range(len(x.shape))]
    parts = []
    for tap in range(index.shape[1]):
        part = x.index_select(axis, Tensor(index[:, tap].astype("int32"), device=x.device))
        weight = weights[:, tap]
        if (weight != 1).any():
            part = part * Tensor(weight.astype("float32"), device=x.device).reshape(shape).cast(x.dtype)
        parts.append(part)
    return reduce(operator.add, parts)


def _places(new: int, old: int, factor: float, span: tuple[float, float], mode: str) -> Host:
    """Where each element of the result lies along the axis, in elements of the source."""
    x = numpy.arange(new, dtype="float64")
    length = factor * old
    if mode == "asymmetric":
        return x / factor
    if mode == "align_corners":
        return x * (old - 1) / (length - 1) if length != 1 else numpy.zeros(new)
    if mode == "tf_crop_and_resize":
        begin, end = span
        if new == 1:
            return numpy.full(1, 0.5 * (begin + end) * (old - 1))
        return begin * (old - 1) + x * (end - begin) * (old - 1) / (new - 1)
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / factor
    if mode == "pytorch_half_pixel" and new == 1:
        return numpy.full(1, -0.5)
    if mode == "half_pixel_symmetric":
        return old / 2 * (1 - new / length) + (x + 0.5) / factor - 0.5
    if mode not in ("half_pixel", "pytorch_half_pixel"):
        raise FormatError("OnnxRunner", f"Resize has no coordinate_transformation_mode {mode!r}")
    return (x + 0.5) / factor - 0.5


_NEAREST: dict[str, Callable[[Host], Host]] = {
    "round_prefer_floor": lambda x: numpy.ceil(x - 0.5), "round_prefer_ceil": lambda x: numpy.floor(x + 0.5),
    "floor": numpy.floor, "ceil": numpy.ceil,
}  # fmt: skip


def taps(places: Host, size: int, factor: float, kind: _Filter) -> tuple[Host, Host]:
    """The elements that each place takes and their weights, a row each."""
    if kind.mode == "nearest":
        index = _NEAREST[kind.nearest](places)[:, None]
        return index.clip(0, size - 1), numpy.ones_like(index)
    reach = 1 if kind.mode == "linear" else 2
    stretch = min(factor, 1.0) if kind.antialias else 1.0
    first = math.floor(-reach / stretch) + 1
    index = numpy.floor(places)[:, None] + numpy.arange(first, 2 - first)
    distance = numpy.abs(index - places[:, None]) * stretch
    weights = (1 - distance).clip(0) if kind.mode == "linear" else _cubic(distance, kind.cubic)
    if kind.exclude_outside:
        weights = numpy.where((index < 0) | (index >= size), 0, weights)
    if kind.exclude_outside or kind.antialias:
        weights = weights / weights.sum(1, keepdims=True)
    return index.clip(0, size - 1), weights


def _cubic(d: Host, a: float) -> Host:
    """The cubic convolution kernel of R. Keys, IEEE TASSP 29 (1981), with its free number."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return numpy.where(d <= 1, near, numpy.where(d < 2, far, 0))
