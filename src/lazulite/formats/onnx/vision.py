"""Operators on images: sampling at given places, regions, boxes."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce

import numpy

from lazulite.base.errors import FormatError
from lazulite.formats.onnx.products import margins
from lazulite.formats.onnx.registry import onnx_op
from lazulite.formats.onnx.values import Host, Ints
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor

# --- sampling --------------------------------------------------------------------------------------


def picked(x: Tensor, places: Sequence[Tensor]) -> Tensor:
    """x[n, c, places..] for x (batch, channels, ..) and integer places (batch, ..); zero outside."""
    sizes, shape = x.shape[2:], places[0].shape
    inside = places[0].eq(places[0])
    flat = places[0].zeros_like()
    for place, size in zip(places, sizes, strict=True):
        inside = inside & (place >= 0) & (place < size)
        flat = flat * size + place.clip(0, size - 1)
    rows = x.reshape((*x.shape[:2], math.prod(sizes)))
    index = flat.reshape((shape[0], 1, -1)).expand((shape[0], x.shape[1], math.prod(shape[1:])))
    found = rows.gather(2, index).reshape((*x.shape[:2], *shape[1:]))
    return inside.unsqueeze(1).where(found, 0)


def interpolated(
    x: Tensor, places: Sequence[Tensor], reach: int, weight: Callable[[Tensor], Tensor],
    bound: Callable[[Tensor, int], Tensor],
) -> Tensor:  # fmt: skip
    """The sum over the elements around each place, weighted by the distance along each axis.

    `bound` brings integer places of an axis of a size back inside, or leaves them outside, where elements are zero.
    """
    lows = [place.floor() for place in places]
    offsets = range(1 - reach, reach + 1)
    parts = []
    for steps in itertools.product(offsets, repeat=len(places)):
        factors, index = [], []
        for axis, (place, low, step) in enumerate(zip(places, lows, steps, strict=True)):
            factors.append(weight((place - (low + step)).abs()))
            index.append(bound((low + step).cast(dtypes.int32), x.shape[2 + axis]))
        parts.append(picked(x, index) * reduce(operator.mul, factors).unsqueeze(1))
    return reduce(operator.add, parts)


def _linear(distance: Tensor) -> Tensor:
    return (1 - distance).clip(0)


def _cubic(distance: Tensor) -> Tensor:
    near = (1.25 * distance - 2.25) * distance * distance + 1
    far = ((-0.75 * distance + 3.75) * distance - 6) * distance + 3
    return (distance <= 1).where(near, (distance < 2).where(far, 0))


def _free(place: Tensor, size: int) -> Tensor:
    return place


@onnx_op("GridSample", since=16)
def grid_sample(
    x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    """The grid names places from -1 to 1, the last axis of the image first."""
    rank = len(x.shape) - 2
    wide = grid.cast(dtypes.promote(grid.dtype, dtypes.float32))
    places = []
    for axis, size in enumerate(x.shape[2:]):
        place = wide[..., rank - 1 - axis]
        places.append((place + 1) * ((size - 1) / 2) if align_corners else ((place + 1) * size - 1) * 0.5)
    bound = _bounding(padding_mode, bool(align_corners))
    if mode == "nearest":
        index = [bound(place.round(), size).cast(dtypes.int32) for place, size in zip(places, x.shape[2:], strict=True)]
        return picked(x, index)
    if mode in ("cubic", "bicubic"):
        return interpolated(x, places, 2, _cubic, bound).cast(x.dtype)
    if mode not in ("linear", "bilinear"):
        raise FormatError("OnnxRunner", f"GridSample has no mode {mode!r}")
    inner = [bound(place, size) for place, size in zip(places, x.shape[2:], strict=True)]
    return interpolated(x, inner, 1, _linear, _free).cast(x.dtype)


def _bounding(mode: str, align_corners: bool) -> Callable[[Tensor, int], Tensor]:
    """How a padding mode brings a place back into an axis."""
    if mode == "zeros":
        return _free
    if mode == "border":
        return lambda place, size: place.clip(0, size - 1)
    if mode != "reflection":
        raise FormatError("OnnxRunner", f"GridSample has no padding_mode {mode!r}")

    def reflected(place: Tensor, size: int) -> Tensor:
        low, span = (0.0, size - 1) if align_corners else (-0.5, size)
        if span == 0:
            return place.zeros_like()
        turn = (place.cast(dtypes.float32) - low) % (2 * span)
        back = (turn > span).where(2 * span - turn, turn) + low
        return back.clip(0, size - 1).cast(place.dtype)

    return reflected


@onnx_op("AffineGrid", since=20)
def affine_grid(theta: Tensor, size: Ints, *, align_corners: int = 0) -> Tensor:
    """The places that a matrix for each image sends the middles of its elements to, from -1 to 1."""
    sizes, axes = size[2:], []
    for axis, count in enumerate(sizes):
        steps = Tensor.arange(count, dtype=theta.dtype, device=theta.device) * 2
        place = (steps / max(count - 1, 1) if align_corners else (steps + 1) / count) - 1
        axes.append(place.reshape([-1 if n == axis else 1 for n in range(len(sizes))]).expand(sizes))
    points = axes[-1].stack(*axes[-2::-1], axes[0].ones_like(), dim=-1).reshape((1, -1, len(sizes) + 1))
    return (points @ theta.transpose(1, 2)).reshape((size[0], *sizes, len(sizes)))


# --- regions ---------------------------------------------------------------------------------------


@onnx_op("RoiAlign", since=10)
def roi_align(
    x: Tensor, rois: Host, batch: Host, *, coordinate_transformation_mode: str = "half_pixel", mode: str = "avg",
    output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0, spatial_scale: float = 1.0,
) -> Tensor:  # fmt: skip
    """The mean (or maximum) of points in each cell of each region, between which the image is linear.

    Points more than one element outside count as zero.  How many points a cell has may depend on its
    region, so regions are looked at on the host.
    """
    aligned = coordinate_transformation_mode == "half_pixel"
    cells, results = (output_height, output_width), []
    for region, image in zip(rois.astype("float64"), batch, strict=True):
        corners = region * spatial_scale - (0.5 if aligned else 0.0)
        spans = [corners[3] - corners[1], corners[2] - corners[0]]
        spans = spans if aligned else [max(span, 1.0) for span in spans]
        counts = [sampling_ratio or max(math.ceil(span / n), 1) for span, n in zip(spans, cells, strict=True)]
        axes = [
            corners[1 - axis] + (numpy.arange(n * count) + 0.5) * span / (n * count)
            for axis, (span, n, count) in enumerate(zip(spans, cells, counts, strict=True))
        ]
        points = [_clamped(axis, size) for axis, size in zip(axes, x.shape[2:], strict=True)]
        sampled = x[int(image)]
        for axis, (index, weights) in enumerate(points, 1):
            shape = [-1 if n == axis else 1 for n in range(3)]
            parts = [
                sampled.index_select(axis, Tensor(index[:, tap], device=x.device))
                * Tensor(weights[:, tap], device=x.device).reshape(shape)
                for tap in (0, 1)
            ]
            if mode == "max" and axis == 1:
                rows = parts
                continue
            sampled = parts[0] + parts[1]
        grid = (x.shape[1], cells[0], counts[0], cells[1], counts[1])
        if mode == "max":
            sampled = _largest_corner(rows, points[1])
            results.append(sampled.reshape(grid).max((2, 4)))
        else:
            results.append(sampled.reshape(grid).mean((2, 4)))
    return results[0].stack(*results[1:]) if results else x.shrink([(0, 0), *[(0, n) for n in x.shape[1:]]])


def _largest_corner(rows: Sequence[Tensor], columns: tuple[Host, Host]) -> Tensor:
    """Of the four weighted elements around each point the largest."""
    index, weights = columns
    corners = [
        row.index_select(2, Tensor(index[:, tap], device=row.device)) * Tensor(weights[:, tap], device=row.device)
        for row in rows
        for tap in (0, 1)
    ]
    return reduce(Tensor.maximum, corners)


def _clamped(places: Host, size: int) -> tuple[Host, Host]:
    """The two elements around each place, and their weights: none more than one element outside."""
    valid = (places >= -1) & (places <= size)
    place = places.clip(0, size - 1)
    low = numpy.floor(place).astype("int32")
    high = numpy.minimum(low + 1, size - 1)
    part = place - low
    weights = numpy.stack([1 - part, part], 1) * valid[:, None]
    return numpy.stack([low, high], 1), weights.astype("float32")


@onnx_op("MaxRoiPool")
def max_roi_pool(x: Tensor, rois: Host, *, pooled_shape: list[int], spatial_scale: float = 1.0) -> Tensor:
    """The maximum of each cell of each region, whose corners are rounded to whole elements."""
    results = []
    for image, *corners in rois.tolist():
        left, top, right, bottom = [math.floor(corner * spatial_scale + 0.5) for corner in corners]
        part, rows = x[int(image)], []
        ranges = []
        for begin, end, count, size in (
            (top, bottom, pooled_shape[0], x.shape[2]),
            (left, right, pooled_shape[1], x.shape[3]),
        ):
            step = max(end - begin + 1, 1) / count
            ranges.append([
                (min(max(begin + math.floor(n * step), 0), size), min(max(begin + math.ceil((n + 1) * step), 0), size))
                for n in range(count)
            ])  # fmt: skip
        for r0, r1 in ranges[0]:
            cells = [part[:, r0:r1, c0:c1] for c0, c1 in ranges[1]]
            made = [c.max((1, 2)) if c.numel() else c.sum((1, 2)) for c in cells]
            rows.append(made[0].stack(*made[1:], dim=1))
        results.append(rows[0].stack(*rows[1:], dim=1))
    return results[0].stack(*results[1:])


@onnx_op("NonMaxSuppression", since=10)
def non_max_suppression(
    boxes: Host, scores: Host, most: Host | None = None, iou_threshold: Host | None = None,
    score_threshold: Host | None = None, *, center_point_box: int = 0,
) -> Host:  # fmt: skip
    """(batch, class, box) of the boxes kept, best first.  How many depends on the values: it runs on the host."""
    limit = 0 if most is None else int(most.item())
    overlap = 0.0 if iou_threshold is None else float(iou_threshold.item())
    lowest = -math.inf if score_threshold is None else float(score_threshold.item())
    found = []
    for image, corners in enumerate(_corners(boxes, bool(center_point_box))):
        for kind, ranking in enumerate(scores[image]):
            order = [n for n in numpy.argsort(-ranking, kind="stable") if ranking[n] > lowest]
            kept: list[int] = []
            for candidate in order:
                if len(kept) == limit:
                    break
                if all(_overlap(corners[candidate], corners[other]) <= overlap for other in kept):
                    kept.append(candidate)
            found += [[image, kind, int(n)] for n in kept]
    return numpy.array(found, "int64").reshape(-1, 3)


def _corners(boxes: Host, centred: bool) -> Host:
    """Boxes as (low, low, high, high)."""
    a, b = boxes[..., :2], boxes[..., 2:]
    if centred:
        return numpy.concatenate([a - b / 2, a + b / 2], -1)
    return numpy.concatenate([numpy.minimum(a, b), numpy.maximum(a, b)], -1)


def _overlap(a: Host, b: Host) -> float:
    """The shared area over the whole area of two boxes."""
    sides = (numpy.minimum(a[2:], b[2:]) - numpy.maximum(a[:2], b[:2])).clip(0)
    shared = float(sides.prod())
    areas = float((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod())
    return shared / (areas - shared) if areas > shared else 0.0


# --- deformable convolution ------------------------------------------------------------------------


@onnx_op("DeformConv", since=19)
def deform_conv(
    x: Tensor, w: Tensor, offset: Tensor, b: Tensor | None = None, mask: Tensor | None = None, *,
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None, offset_group: int = 1,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Tensor:  # fmt: skip
    """A convolution whose window takes each element at a place of its own, between elements linearly."""
    kernel, (batch, channels, *sizes) = w.shape[2:], x.shape
    rank, count, out = len(kernel), math.prod(kernel), offset.shape[2:]
    steps, gaps = strides or [1] * rank, dilations or [1] * rank
    around = margins("NOTSET", pads, sizes, kernel, steps, gaps)
    moves = offset.reshape((batch * offset_group, count, rank, *out))
    places = []
    for axis in range(rank):
        base = Tensor.arange(out[axis], device=x.device) * steps[axis] - around[axis][0]
        base = base.reshape([-1 if n == axis else 1 for n in range(rank)])
        taps = Tensor.arange(kernel[axis], device=x.device) * gaps[axis]
        taps = taps.reshape([-1 if n == axis else 1 for n in range(rank)]).expand(kernel).reshape((count, *(1,) * rank))
        places.append(moves[:, :, axis] + (base + taps))
    groups = x.reshape((batch * offset_group, channels // offset_group, *sizes))
    columns = interpolated(groups, places, 1, _linear, _free)
    if mask is not None:
        columns = columns * mask.reshape((batch * offset_group, 1, count, *out))
    columns = columns.reshape((batch, group, channels // group * count, math.prod(out)))
    rows = w.reshape((group, w.shape[0] // group, w.shape[1] * count))
    y = (rows @ columns).reshape((batch, w.shape[0], *out))
    return y if b is None else y + b.reshape((-1, *(1,) * rank))
