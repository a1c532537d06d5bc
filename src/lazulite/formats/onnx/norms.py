"""Normalisations: by batch, layer, group, root mean square, and of neighbouring channels."""

from __future__ import annotations

import math
from typing import Any

from lazulite.formats.onnx.proto import NAMES
from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor


def _per_channel(t: Tensor, rank: int) -> Tensor:
    return t.reshape((-1, *(1,) * (rank - 2)))


@onnx_op("BatchNormalization")
def batch_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float = 1e-5,
    momentum: float = 0.9, training_mode: int = 0, spatial: int = 1, is_test: int = 1, call: Call,
) -> Any:  # fmt: skip
    """With `training_mode` by the batch's own moments, which also move the running ones."""
    axes, rank = (0, *range(2, len(x.shape))), len(x.shape)
    own = mean, variance
    if training_mode:
        own = x.mean(axes), x.var(axes, correction=0)
    centre, spread = [_per_channel(each, rank) for each in own]
    factor = _per_channel(scale, rank) / (spread + epsilon).sqrt()
    y = ((x - centre) * factor + _per_channel(bias, rank)).cast(x.dtype)
    if call.outputs == 1:
        return y
    moved = [
        (old * momentum + new * (1 - momentum)).cast(old.dtype) for old, new in zip((mean, variance), own, strict=True)
    ]
    return y, *moved


@onnx_op("InstanceNormalization")
def instance_normalization(x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    rank = len(x.shape)
    normal = x.layernorm(tuple(range(2, rank)), epsilon)
    return normal * _per_channel(scale, rank) + _per_channel(bias, rank)


def _stashed(x: Tensor, stash_type: int) -> Tensor:
    """In the type that the moments are computed in."""
    return x.cast(dtypes.promote(x.dtype, dtypes.float32) if stash_type == 1 else NAMES[stash_type])


@onnx_op("LayerNormalization", since=17)
def layer_normalization(
    x: Tensor, scale: Tensor, bias: Tensor | None = None, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1,
    call: Call,
) -> Any:  # fmt: skip
    axes = tuple(range(axis % len(x.shape), len(x.shape)))
    wide = _stashed(x, stash_type)
    y = wide.layernorm(axes, epsilon).cast(x.dtype) * scale
    y = y if bias is None else y + bias
    if call.outputs == 1:
        return y
    variance, mean = wide.var_mean(axes, keepdim=True, correction=0)
    return y, mean, (variance + epsilon).rsqrt()


@onnx_op("SkipLayerNormalization", domain="com.microsoft")
def skip_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, beta: Tensor | None = None, bias: Tensor | None = None, *,
    epsilon: float = 1e-12, call: Call,
) -> Any:  # fmt: skip
    total = x + skip if bias is None else x + skip + bias
    y = total.layernorm(-1, epsilon) * gamma
    return (y if beta is None else y + beta), None, None, total


@onnx_op("GroupNormalization", since=18)
def group_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1, call: Call
) -> Tensor:
    """Scale and bias are one for each channel; before version 21 one for each group."""
    rank, groups = len(x.shape), _stashed(x, stash_type).reshape((x.shape[0], num_groups, -1))
    normal = groups.layernorm(-1, epsilon).cast(x.dtype)
    if call.opset >= 21:
        return normal.reshape(x.shape) * _per_channel(scale, rank) + _per_channel(bias, rank)
    return (normal * scale.unsqueeze(1) + bias.unsqueeze(1)).reshape(x.shape)


@onnx_op("RMSNormalization", since=23)
@onnx_op("SimplifiedLayerNormalization")
def rms_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    axes = tuple(range(axis % len(x.shape), len(x.shape)))
    wide = _stashed(x, stash_type)
    return (wide * ((wide * wide).mean(axes, keepdim=True) + epsilon).rsqrt()).cast(x.dtype) * scale


@onnx_op("LRN")
def lrn(x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Tensor:
    """Over the squares of so many neighbouring channels."""
    before = (size - 1) // 2
    channels, pixels = x.shape[1], math.prod(x.shape[2:])
    rows = (x * x).reshape((x.shape[0], 1, channels, pixels)).pad([(0, 0), (0, 0), (before, size - 1 - before), (0, 0)])
    total = rows.avg_pool2d((size, 1), (1, 1)).reshape(x.shape)
    return x / (total * alpha + bias) ** beta
