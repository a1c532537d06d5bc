"""Layers: objects that hold tensors and map a tensor to a tensor when called.

Weights are drawn when the layer is made.  `Tensor.train()` decides whether a layer behaves as in
training.  `nn.state` finds the tensors of a layer by their attribute names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lazulite.base.errors import ShapeError
from lazulite.ir.dtype import dtypes
from lazulite.nn import functional as F
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

    def __call__(self, input: Tensor) -> Tensor:
        return input.linear(self.weight.transpose(), self.bias)


class Bilinear:
    """x1 @ weight[o] @ x2 + bias for each output o, with weight (out_features, in1_features, in2_features).

    >>> Bilinear(3, 2, 5)(Tensor.ones(4, 3), Tensor.ones(4, 2)).shape
    (4, 5)
    """

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True) -> None:
        bound = 1 / math.sqrt(in1_features) if in1_features else 0.0
        self.weight = Tensor.uniform(out_features, in1_features, in2_features, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_features, low=-bound, high=bound) if bias else None

    def __call__(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.bilinear(x1, x2, self.weight, self.bias)


class Embedding:
    """A row of the weight (vocab_size, embed_size) for each integer; zeros for one outside.

    The row `padding_idx` gets no gradient; the other options are those of `nn.functional.embedding`.

    >>> Embedding(10, 4)(Tensor([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self, vocab_size: int, embed_size: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> None:  # fmt: skip
        self.weight = Tensor.glorot_uniform(vocab_size, embed_size)
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq

    def __call__(self, idx: Tensor) -> Tensor:
        if self.padding_idx is None and self.max_norm is None and not self.scale_grad_by_freq:
            return self.weight[idx]
        facts = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)
        return F.embedding(idx, self.weight, *facts)


class EmbeddingBag:
    """The sum, mean or maximum of the rows of each bag of integers: `nn.functional.embedding_bag`.

    >>> EmbeddingBag(10, 4)(Tensor([[1, 2, 3]])).shape
    (1, 4)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
        include_last_offset: bool = False, padding_idx: int | None = None,
    ) -> None:  # fmt: skip
        self.weight = Tensor.randn(num_embeddings, embedding_dim)
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.include_last_offset, self.padding_idx = mode, include_last_offset, padding_idx

    def __call__(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, False,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip


class PReLU:
    """The value above zero, a learned slope times it elsewhere; one slope, or one for each channel.

    >>> PReLU()(Tensor([-4.0])).tolist()
    [-1.0]
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        self.weight = Tensor.full((num_parameters,), init)

    def __call__(self, x: Tensor) -> Tensor:
        return x.prelu(self.weight)


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


BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm


class LayerNorm:
    """The last axes with mean 0 and variance 1, then scaled and shifted.

    >>> LayerNorm(4)(Tensor.ones(2, 4)).shape
    (2, 4)
    """

    def __init__(
        self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None:  # fmt: skip
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight = Tensor.ones(self.normalized_shape) if elementwise_affine else None
        self.bias = Tensor.zeros(self.normalized_shape) if elementwise_affine and bias else None

    def __call__(self, x: Tensor) -> Tensor:
        rank = len(self.normalized_shape)
        if x.shape[x.ndim - rank :] != self.normalized_shape:
            raise ShapeError(
                "LayerNorm", f"the last axes must be {self.normalized_shape}, got {x.shape}", about={"x": x}
            )
        normal = x.layernorm(tuple(range(-rank, 0)), self.eps)
        scaled = normal if self.weight is None else normal * self.weight
        return scaled if self.bias is None else scaled + self.bias


class LayerNorm2d(LayerNorm):
    """`LayerNorm` of the channels (axis 1) of (batch, channels, height, width).

    >>> LayerNorm2d(3)(Tensor.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
