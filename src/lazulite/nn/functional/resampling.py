"""Images at other places and sizes, as torch.nn.functional calls it."""

from __future__ import annotations

from collections.abc import Sequence

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.tensor.tensor import Tensor

_AXES = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def interpolate(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest", align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:  # fmt: skip
    """`Tensor.interpolate` of all axes behind the first two, to a size or by a factor.

    With a factor, places are computed with the factor itself, unless `recompute_scale_factor`.

    >>> interpolate(Tensor([[[1.0, 2.0]]]), scale_factor=2).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """
    rank = input.ndim - 2
    if rank < 1 or _AXES.get(mode, rank) != rank:
        raise ShapeError("interpolate", f"mode {mode!r} does not fit {input.shape}", about={"input": input})
    if (size is None) is (scale_factor is None):
        raise ArgumentError("interpolate", "give one of size and scale_factor")
    factors = None
    if scale_factor is not None:
        factors = (scale_factor,) * rank if isinstance(scale_factor, int | float) else tuple(scale_factor)
        sizes = tuple([int(old * factor) for old, factor in zip(input.shape[2:], factors, strict=True)])
        factors = None if recompute_scale_factor else factors
    else:
        sizes = (size,) * rank if isinstance(size, int) else tuple(size or ())
    kind = "linear" if mode in ("bilinear", "trilinear") else mode
    return input.interpolate(sizes, kind, bool(align_corners), antialias, factors)


def upsample(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest", align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """`interpolate` by its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` to the nearest element."""
    return interpolate(input, size, scale_factor)


def upsample_bilinear(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """Bilinear `interpolate` with aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """For each element of an image of this size where an affine map (N, 2, 3) or (N, 3, 4) takes it.

    Coordinates run from -1 to 1; the last axis of the result holds x, y (and z).

    >>> affine_grid(Tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2)).tolist()
    [[[[-0.5, 0.0], [0.5, 0.0]]]]
    """
    spatial = tuple(size[2:])
    rank = len(spatial)
    if theta.ndim != 3 or theta.shape[1:] != (rank, rank + 1) or theta.shape[0] != size[0]:
        raise ShapeError("affine_grid", f"maps {theta.shape} do not fit an image of size {tuple(size)}")
    columns = []
    for axis in reversed(range(rank)):
        column = (1,) * axis + (-1,) + (1,) * (rank - axis - 1)
        columns.append(_coordinates(theta, spatial[axis], bool(align_corners)).reshape(column).expand(spatial))
    base = columns[0].stack(*columns[1:], columns[0].ones_like(), dim=-1)
    grid = base.reshape((1, -1, rank + 1)).matmul(theta.transpose(1, 2))
    return grid.reshape((theta.shape[0], *spatial, rank))


def _coordinates(theta: Tensor, count: int, align_corners: bool) -> Tensor:
    number = Tensor.arange(count, device=theta.device).cast(theta.dtype)
    if count <= 1:
        return number * 0
    return number * 2 / (count - 1) - 1 if align_corners else (number * 2 + 1) / count - 1


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """An image (N, C, H, W) or volume (N, C, D, H, W) at the places of a grid (N, .., 2 or 3) (Jaderberg et al.).

    Coordinates are those of `affine_grid`.  `mode` is "bilinear", "nearest" or (images only) "bicubic"; outside lie
    "zeros", the "border", or the image's "reflection".

    >>> grid_sample(Tensor([[[[1.0, 3.0]]]]), Tensor([[[[0.0, 0.0]]]])).tolist()
    [[[[2.0]]]]
    """
    from lazulite.tensor.sampling import sampled

    return sampled(input, grid, mode, padding_mode, bool(align_corners))
