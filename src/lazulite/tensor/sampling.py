"""Images and volumes at the places of a grid (Jaderberg et al., 2015).

Takes an image (N, C, ..) and coordinates from -1 to 1, x first; gives (N, C, ..) in the grid's shape.  What is
picked are the corners of the cell that a place lies in; the gradient for the grid comes through their weights.
"""

from __future__ import annotations

import itertools
import operator
from functools import reduce
from typing import TYPE_CHECKING

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir.dtype import dtypes

if TYPE_CHECKING:
    from lazulite.tensor.tensor import Tensor

Tap = tuple["Tensor", "Tensor", "Tensor"]
"""Along one axis: int32 places inside the image, whether they stand for places inside, and weights."""
_SHARP = -0.75


def sampled(image: Tensor, grid: Tensor, mode: str, padding: str, align_corners: bool) -> Tensor:
    """The image at the places of the grid."""
    rank = image.ndim - 2
    if rank not in (2, 3) or grid.ndim != rank + 2 or grid.shape[-1] != rank or grid.shape[0] != image.shape[0]:
        raise ShapeError("grid_sample", f"a grid {grid.shape} does not fit an image {image.shape}")
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and rank != 2):
        raise ArgumentError("grid_sample", f"mode is 'bilinear', 'nearest' or (images only) 'bicubic', not {mode!r}")
    if padding not in ("zeros", "border", "reflection"):
        raise ArgumentError("grid_sample", f"padding_mode is 'zeros', 'border' or 'reflection', not {padding!r}")
    axes = []
    for axis, size in enumerate(image.shape[2:]):
        place = grid[..., rank - 1 - axis]
        place = (place + 1) * ((size - 1) / 2) if align_corners else ((place + 1) * size - 1) / 2
        axes.append(_taps(place, size, mode, padding, align_corners))
    rows = image.flatten(2)
    return reduce(operator.add, [_picked(rows, image.shape[2:], taps, grid) for taps in itertools.product(*axes)])


def _picked(rows: Tensor, sizes: tuple[int, ...], taps: tuple[Tap, ...], grid: Tensor) -> Tensor:
    """One corner of all cells, weighed."""
    place, inside, weight = taps[0]
    for size, (more, also, share) in zip(sizes[1:], taps[1:], strict=True):
        place, inside, weight = place * size + more, inside & also, weight * share
    batch, channels = rows.shape[:2]
    flat = place.reshape((batch, 1, -1)).expand(batch, channels, place.numel() // max(batch, 1))
    found = rows.gather(2, flat).reshape((batch, channels, *grid.shape[1:-1]))
    return inside.unsqueeze(1).where(found * weight.unsqueeze(1), 0)


def _taps(place: Tensor, size: int, mode: str, padding: str, align_corners: bool) -> list[Tap]:
    """The elements of one axis that a place is made of."""
    if mode == "bicubic":
        below = place.detach().floor()
        share = place - below
        return [
            (*_located(_inside(below + k, size, padding, align_corners), size), _cubic(share - k))
            for k in (-1, 0, 1, 2)
        ]
    place = _inside(place, size, padding, align_corners)
    if mode == "nearest":
        return [(*_located(place.detach().round(), size), place.detach() * 0 + 1)]
    below = place.detach().floor()
    share = place - below
    return [(*_located(below, size), 1 - share), (*_located(below + 1, size), share)]


def _located(place: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Whole places as int32 inside the axis, and whether they were."""
    return place.clip(0, max(size - 1, 0)).cast(dtypes.int32), (place >= 0) & (place <= size - 1)


def _inside(place: Tensor, size: int, padding: str, align_corners: bool) -> Tensor:
    """Where a place outside is looked up instead."""
    if padding == "zeros":
        return place
    if padding == "reflection":
        low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
        place = _reflected(place, low, span)
    return place.clip(0, size - 1)


def _reflected(place: Tensor, low: float, span: float) -> Tensor:
    if span == 0:
        return place * 0
    away = (place - low).abs()
    turns = (away / span).floor().detach()
    rest = away - turns * span
    return (turns % 2).eq(0).where(rest, span - rest) + low


def _cubic(x: Tensor) -> Tensor:
    """Keys' cubic convolution kernel."""
    a, x = _SHARP, x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return (x <= 1).where(near, far)
