"""Layers that bring values to a common scale: over groups of channels, single channels, or last axes.

The statistics are those of each sample, in training and otherwise.  Narrow floats are normalised in
float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

from lazulite.base.errors import ShapeError
from lazulite.ir.dtype import dtypes
from lazulite.nn import functional as F
from lazulite.tensor.tensor import Tensor


class GroupNorm:
    """Each group of channels (axis 1) of a sample with mean 0 and variance 1; channels scaled and shifted.

    >>> GroupNorm(2, 4)(Tensor.ones(3, 4, 5)).shape
    (3, 4, 5)
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, bias: bool = True
    ) -> None:
        if num_groups < 1 or num_channels % num_groups:
            raise ShapeError("GroupNorm", f"{num_groups} groups do not divide {num_channels} channels")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Tensor.ones(num_channels) if affine else None
        self.bias = Tensor.zeros(num_channels) if affine and bias else None

    def __call__(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ShapeError(
                type(self).__name__, f"axis 1 must have {self.num_channels} channels, got {x.shape}", about={"x": x}
            )
        normal = x.reshape((x.shape[0], self.num_groups, -1)).layernorm(-1, self.eps).reshape(x.shape)
        column = (-1, *(1,) * (x.ndim - 2))
        scaled = normal if self.weight is None else normal * self.weight.reshape(column)
        return scaled if self.bias is None else scaled + self.bias.reshape(column)


class InstanceNorm(GroupNorm):
    """Each channel (axis 1) of a sample with mean 0 and variance 1, then scaled and shifted.

    >>> InstanceNorm(4)(Tensor.ones(3, 4, 5)).shape
    (3, 4, 5)
    """

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__(num_features, num_features, eps, affine)


class InstanceNorm1d:
    """`nn.functional.instance_norm` with PyTorch's arguments: no scale, and no running statistics, unless asked for.

    >>> InstanceNorm1d(4)(Tensor.ones(3, 4, 5)).shape
    (3, 4, 5)
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, bias: bool = True,
    ) -> None:  # fmt: skip
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = Tensor.ones(num_features) if affine else None
        self.bias = Tensor.zeros(num_features) if affine and bias else None
        self.running_mean = _statistic(Tensor.zeros(num_features)) if track_running_stats else None
        self.running_var = _statistic(Tensor.ones(num_features)) if track_running_stats else None
        self.num_batches_tracked = _statistic(Tensor(0, dtype=dtypes.int64)) if track_running_stats else None

    _spatial = 1

    def __call__(self, x: Tensor) -> Tensor:
        batch = x.unsqueeze(0) if x.ndim == self._spatial + 1 else x
        own = Tensor.training() or self.running_mean is None
        normal = F.instance_norm(
            batch, self.running_mean, self.running_var, self.weight, self.bias, own, self.momentum, self.eps
        )
        return normal if batch is x else normal.squeeze(0)


def _statistic(x: Tensor) -> Tensor:
    x.requires_grad = False
    return x


class InstanceNorm2d(InstanceNorm1d):
    """`InstanceNorm1d` of images (batch, channels, height, width)."""

    _spatial = 2


class InstanceNorm3d(InstanceNorm1d):
    """`InstanceNorm1d` of volumes (batch, channels, depth, height, width)."""

    _spatial = 3


class RMSNorm:
    """The last axes over the root of their mean square, then scaled.

    >>> RMSNorm(2)(Tensor([[3.0, -3.0]])).tolist()
    [[0.9999999403953552, -0.9999999403953552]]
    """

    def __init__(self, dim: int | Sequence[int], eps: float = 1e-6, elementwise_affine: bool = True) -> None:
        self.shape = (dim,) if isinstance(dim, int) else tuple(dim)
        self.eps = eps
        self.weight = Tensor.ones(self.shape) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        rank = len(self.shape)
        if x.shape[x.ndim - rank :] != self.shape:
            raise ShapeError("RMSNorm", f"the last axes must be {self.shape}, got {x.shape}", about={"x": x})
        wide = x.cast(dtypes.promote(x.dtype, dtypes.float32))
        scale = ((wide * wide).mean(tuple(range(-rank, 0)), keepdim=True) + self.eps).rsqrt()
        normal = wide * scale
        normal = normal.cast(x.dtype) if x.is_floating_point() else normal
        return normal if self.weight is None else normal * self.weight
