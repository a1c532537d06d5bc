"""Layers: objects that hold tensors and map a tensor to a tensor when called.

Weights are drawn when the layer is made.  `Tensor.train()` decides whether a layer behaves as in
training.  `nn.state` finds the tensors of a layer by their attribute names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor


class Linear:
    """x @ weight.T + bias, with weight (out_features, in_features).

    >>> Linear(3, 2)(Tensor.ones(4, 3)).shape
    (4, 2)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        bound = 1 / math.sqrt(in_features) if in_features else 0.0
        self.weight = Tensor.uniform(out_features, in_features, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_features, low=-bound, high=bound) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.linear(self.weight.transpose(), self.bias)


class Conv2d:
    """The convolution of (batch, in_channels, ..) with weight (out_channels, in_channels / groups, kernel ..).

    `padding` is a size, one for each axis, or "same" (with stride 1 the output is as large as the input).

    >>> Conv2d(1, 8, kernel_size=3, padding="same")(Tensor.ones(2, 1, 5, 5)).shape
    (2, 8, 5, 5)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True,
    ) -> None:  # fmt: skip
        kernel = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
        self.stride, self.dilation, self.groups = stride, dilation, groups
        if isinstance(padding, str) and padding != "same":
            raise ArgumentError("Conv2d", f"padding is a size, sizes or 'same', not {padding!r}")
        self.padding = _same_padding(kernel, stride, dilation) if isinstance(padding, str) else padding
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ShapeError("Conv2d", f"{groups} groups do not divide {in_channels} and {out_channels} channels")
        bound = 1 / math.sqrt(max(in_channels * math.prod(kernel), 1))
        self.weight = Tensor.uniform(out_channels, in_channels // groups, *kernel, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_channels, low=-bound, high=bound) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)


class ConvTranspose2d:
    """The transposed convolution of (batch, in_channels, ..) with weight (in_channels, out_channels / groups, ..).

    >>> ConvTranspose2d(1, 8, kernel_size=3, stride=2)(Tensor.ones(2, 1, 5, 5)).shape
    (2, 8, 11, 11)
    """

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1, groups: int = 1, bias: bool = True,
    ) -> None:  # fmt: skip
        kernel = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ShapeError("ConvTranspose2d", f"{groups} groups do not divide {in_channels}, {out_channels} channels")
        self.stride, self.padding, self.output_padding = stride, padding, output_padding
        self.dilation, self.groups = dilation, groups
        bound = 1 / math.sqrt(max(out_channels // groups * math.prod(kernel), 1))
        self.weight = Tensor.uniform(in_channels, out_channels // groups, *kernel, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_channels, low=-bound, high=bound) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv_transpose2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding, self.output_padding
        )


class Embedding:
    """A row of the weight (vocab_size, embed_size) for each integer; zeros for one outside.

    >>> Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(self, vocab_size: int, embed_size: int) -> None:
        self.weight = Tensor.glorot_uniform(vocab_size, embed_size)

    def __call__(self, idx: Tensor) -> Tensor:
        return self.weight[idx]


class Dropout:
    """In training each element is zero with probability `p`, and the others grow by 1 / (1 - p).

    >>> Dropout(0.5)(Tensor([1.0, 2.0])).tolist()  # not in training
    [1.0, 2.0]
    """

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, x: Tensor) -> Tensor:
        return x.dropout(self.p)


class Sequential:
    """Layers and functions applied one after the other.

    >>> Sequential(Tensor.abs, Tensor.neg)(Tensor([-2.0])).tolist()
    [-2.0]
    """

    def __init__(self, *layers: Callable[[Tensor], Tensor]) -> None:
        self.layers = list(layers)

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self.layers)

    def __getitem__(self, number: int) -> Callable[[Tensor], Tensor]:
        return self.layers[number]

    def __len__(self) -> int:
        return len(self.layers)


def _same_padding(kernel: Sequence[int], stride: int | Sequence[int], dilation: int | Sequence[int]) -> tuple[int, ...]:
    """(before, after) for each axis, flat, the last axis first; an odd rest goes behind."""
    if stride != 1 and set([stride] if isinstance(stride, int) else stride) != {1}:
        raise ArgumentError("Conv2d", "padding 'same' needs stride 1")
    gaps = (dilation,) * len(kernel) if isinstance(dilation, int) else tuple(dilation)
    totals = [gap * (size - 1) for gap, size in zip(gaps, kernel, strict=True)]
    return tuple([part for total in reversed(totals) for part in (total // 2, total - total // 2)])


class BatchNorm:
    """Each channel (axis 1) with mean 0 and variance 1 over the batch, then scaled and shifted.

    In training the statistics are those of the batch, and the running ones follow them: they are written
    together with whatever is realized next, and no gradient flows through them.  Otherwise the running
    ones are used.

    >>> BatchNorm(3)(Tensor.ones(2, 3, 4)).shape
    (2, 3, 4)
    """

    def __init__(
        self, sz: int, eps: float = 1e-5, affine: bool = True, track_running_stats: bool = True, momentum: float = 0.1
    ) -> None:
        self.eps, self.momentum, self.track_running_stats = eps, momentum, track_running_stats
        self.weight = Tensor.ones(sz) if affine else None
        self.bias = Tensor.zeros(sz) if affine else None
        self.num_batches_tracked = Tensor(0, dtype=dtypes.int64, requires_grad=False)
        self.running_mean = Tensor.zeros(sz) if track_running_stats else None
        self.running_var = Tensor.ones(sz) if track_running_stats else None
        for statistic in (self.running_mean, self.running_var):
            if statistic is not None:
                statistic.requires_grad = False

    def __call__(self, x: Tensor) -> Tensor:
        wide = x.cast(dtypes.promote(x.dtype, dtypes.float32))
        mean, variance = self._statistics(wide)
        normal = wide.batchnorm(self.weight, self.bias, mean, (variance + self.eps).rsqrt())
        return normal.cast(x.dtype) if x.is_floating_point() else normal

    def _statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self.running_mean is not None and self.running_var is not None and not Tensor.training():
            return self.running_mean, self.running_var
        axes = tuple([axis for axis in range(x.ndim) if axis != 1])
        variance, mean = x.var_mean(axes, correction=0)
        if Tensor.training():
            self._follow(mean.detach(), variance.detach(), x.numel() // max(x.shape[1], 1))
        return mean, variance

    def _follow(self, mean: Tensor, variance: Tensor, count: int) -> None:
        """Move the running statistics a step; the variance without the bias of a small batch."""
        if self.running_mean is None or self.running_var is None:
            return
        keep, unbiased = 1 - self.momentum, variance * (count / max(count - 1, 1))
        self.running_mean.assign(self.running_mean * keep + mean * self.momentum)
        self.running_var.assign(self.running_var * keep + unbiased * self.momentum)
        self.num_batches_tracked.assign(self.num_batches_tracked + 1)


BatchNorm2d = BatchNorm


class LayerNorm:
    """The last axes with mean 0 and variance 1, then scaled and shifted.

    >>> LayerNorm(4)(Tensor.ones(2, 4)).shape
    (2, 4)
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True
    ) -> None:
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight = Tensor.ones(self.normalized_shape) if elementwise_affine else None
        self.bias = Tensor.zeros(self.normalized_shape) if elementwise_affine else None

    def __call__(self, x: Tensor) -> Tensor:
        rank = len(self.normalized_shape)
        if x.shape[x.ndim - rank :] != self.normalized_shape:
            raise ShapeError(
                "LayerNorm", f"the last axes must be {self.normalized_shape}, got {x.shape}", about={"x": x}
            )
        normal = x.layernorm(tuple(range(-rank, 0)), self.eps)
        scaled = normal if self.weight is None else normal * self.weight
        return scaled if self.bias is None else scaled + self.bias
