"""Sequences of numbers: differences, integrals, interpolation, convolution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lazulite.base.errors import ArgumentError
from lazulite.interop.elementwise import as_tensor
from lazulite.interop.numpy.shapes import concatenate
from lazulite.ir.dtype import dtypes, promote
from lazulite.tensor.base import float_dtype, one_axis
from lazulite.tensor.tensor import Tensor

__all__ = ["convolve", "correlate", "diff", "gradient", "interp", "packbits", "trapezoid", "unpackbits", "unwrap"]


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """The differences of neighbours, taken n times."""
    tensor = as_tensor(a)
    place = one_axis("diff", axis, len(tensor.shape))
    ends = []
    for given in (prepend, append):
        if given is not None:
            end = as_tensor(given)
            shape = [1 if each == place else size for each, size in enumerate(tensor.shape)]
            given = end if end.shape else end.expand(*shape)
        ends.append(given)
    return tensor.diff(n, place, prepend=ends[0], append=ends[1])


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral along an axis by trapezoids."""
    values = as_tensor(y)
    place = one_axis("trapezoid", axis, len(values.shape))
    moved = values.movedim(place, -1)
    if x is None:
        steps: Any = dx
    else:
        points = as_tensor(x)
        points = points if len(points.shape) == 1 else points.movedim(place, -1)
        steps = points[..., 1:] - points[..., :-1]
    areas: Tensor = (moved[..., 1:] + moved[..., :-1]) * steps / 2.0
    return areas.sum(-1)


def gradient(f: Any, *varargs: Any, axis: int | Sequence[int] | None = None, edge_order: int = 1) -> Any:
    """Slopes by central differences inside and one-sided ones at the ends; `varargs` are distances or coordinates."""
    tensor = as_tensor(f)
    rank = len(tensor.shape)
    axes = list(range(rank)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    spacings = [1.0] * len(axes) if not varargs else list(varargs) * (len(axes) if len(varargs) == 1 else 1)
    if edge_order not in (1, 2) or len(spacings) != len(axes):
        raise ArgumentError("gradient", "edge_order is 1 or 2, and there is one distance, or one for each axis")
    found = [
        _slope(tensor, one_axis("gradient", each, rank), spacing, edge_order)
        for each, spacing in zip(axes, spacings, strict=True)
    ]
    return found[0] if len(found) == 1 else tuple(found)


def _slope(tensor: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    moved = tensor.cast(float_dtype(tensor.dtype)).movedim(axis, -1)
    size = moved.shape[-1]
    spaced = as_tensor(spacing)
    points = spaced if spaced.shape else Tensor.arange(size) * spaced
    h = (points[1:] - points[:-1]).cast(moved.dtype)
    before, behind = h[:-1], h[1:]
    inside = (
        moved[..., 2:] * before * before
        + moved[..., 1:-1] * (behind - before) * (behind + before)
        - moved[..., :-2] * behind * behind
    ) / (before * behind * (before + behind))
    first = (moved[..., 1:2] - moved[..., :1]) / h[:1]
    last = (moved[..., -1:] - moved[..., -2:-1]) / h[-1:]
    if edge_order == 2:
        second = (moved[..., 2:3] - moved[..., 1:2]) / h[1:2]
        first = first + (first - second) * (h[:1] / (h[:1] + h[1:2]))
        second = (moved[..., -2:-1] - moved[..., -3:-2]) / h[-2:-1]
        last = last + (last - second) * (h[-1:] / (h[-1:] + h[-2:-1]))
    return concatenate([first, inside, last], -1).movedim(-1, axis)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: float | None = None) -> Tensor:
    """The piecewise linear function through points, at other places; constant outside, or periodic."""
    places, points, values = [as_tensor(each) for each in (x, xp, fp)]
    kind = promote(dtypes.float32, *[float_dtype(each.dtype) for each in (places, points, values)])
    places, points, values = [each.cast(kind) for each in (places, points, values)]
    if period is not None:
        width = abs(period)
        places, points = places.mod(width), points.mod(width)
        order = points.argsort()
        points, values = points.take(order), values.take(order)
        points = concatenate([points[-1:] - width, points, points[:1] + width], 0)
        values = concatenate([values[-1:], values, values[:1]], 0)
    count = points.shape[0]
    after = points.searchsorted(places, side="right").clip(1, max(count - 1, 1))
    low, high = [(after - back).minimum(count - 1) for back in (1, 0)]
    x0, x1, y0, y1 = points.take(low), points.take(high), values.take(low), values.take(high)
    wide = x1.ne(x0).where(x1 - x0, 1.0)
    found = y0 + (places - x0) * ((y1 - y0) / wide)
    found = places.eq(x1).where(y1, found)
    found = (places < points[0]).where(values[0] if left is None else left, found)
    found = (places > points[-1]).where(values[-1] if right is None else right, found)
    return places.isnan().where(math.nan, found)


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """The sums of products of a vector with another one, reversed and shifted; modes full, same and valid."""
    first, second = as_tensor(a).reshape(-1), as_tensor(v).reshape(-1)
    return _sliding(first, second, mode)


def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """The sums of products of a vector with another one, shifted; modes full, same and valid."""
    first, second = as_tensor(a).reshape(-1), as_tensor(v).reshape(-1)
    return _sliding(first, second.flip(0), mode)


def _sliding(first: Tensor, second: Tensor, mode: str) -> Tensor:
    kind = promote(first.dtype, second.dtype)
    first, second = first.cast(kind), second.cast(kind)
    short, long = sorted((first.shape[0], second.shape[0]))
    if mode not in ("full", "same", "valid") or not short:
        raise ArgumentError("convolve", f"modes are full, same and valid, of vectors with elements, got {mode!r}")
    one, other = (first, second) if first.shape[0] >= second.shape[0] else (second, first)
    windows = one.pad(((short - 1, short - 1),)).unfold(0, short, 1)
    full = (windows * other.flip(0)).sum(-1, dtype=kind)
    if mode == "full":
        return full
    begin = short - 1 if mode == "valid" else (short - 1) // 2
    return full[begin : begin + (long - short + 1 if mode == "valid" else long)]


def unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> Tensor:
    """Angles without the jumps that come from counting them within one period."""
    angles = as_tensor(p)
    place = one_axis("unwrap", axis, len(angles.shape))
    moved = angles.cast(float_dtype(angles.dtype)).movedim(place, -1)
    step = moved[..., 1:] - moved[..., :-1]
    near = (step + period / 2).mod(period) - period / 2
    near = (near.eq(-period / 2) & (step > 0)).where(period / 2, near)
    change = (step.abs() < (period / 2 if discont is None else max(discont, period / 2))).where(0.0, near - step)
    whole = concatenate([moved[..., :1], moved[..., 1:] + change.cumsum(-1)], -1)
    return whole.movedim(-1, place)


def packbits(a: Any, /, axis: int | None = None, bitorder: str = "big") -> Tensor:
    """Eight truth values in each byte, zeros at the end."""
    tensor = as_tensor(a) if axis is not None else as_tensor(a).flatten()
    place = 0 if axis is None else one_axis("packbits", axis, len(tensor.shape))
    moved = tensor.ne(0).cast(dtypes.uint8).movedim(place, -1)
    missing = -moved.shape[-1] % 8
    bits = moved.pad(((0, 0),) * (len(moved.shape) - 1) + ((0, missing),)).reshape(*moved.shape[:-1], -1, 8)
    found = (bits * _bit_values(bitorder)).sum(-1, dtype=dtypes.uint8)
    return found.movedim(-1, place)


def unpackbits(a: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Tensor:
    """The bits of bytes as zeros and ones."""
    tensor = as_tensor(a) if axis is not None else as_tensor(a).flatten()
    place = 0 if axis is None else one_axis("unpackbits", axis, len(tensor.shape))
    moved = tensor.movedim(place, -1).unsqueeze(-1)
    bits = (moved & _bit_values(bitorder)).ne(0).cast(dtypes.uint8)
    found = bits.reshape(*moved.shape[:-2], -1)
    return (found if count is None else found[..., :count]).movedim(-1, place)


def _bit_values(order: str) -> Tensor:
    values = [1 << n for n in range(8)]
    return Tensor(values if order == "little" else values[::-1], dtype=dtypes.uint8)
