"""Normalisations as torch.nn.functional calls them.

Statistics of narrow floats are taken in float32, and the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir.dtype import dtypes
from lazulite.nn.functional.rearrangement import pad
from lazulite.tensor.tensor import Tensor


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """`Tensor.normalize`: the value over its p-norm along an axis."""
    return input.normalize(p, dim, eps)


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each channel (axis 1) with mean 0 and variance 1, scaled and shifted.

    In training the statistics are those of the batch, and the running ones, if given, take a step of `momentum`
    towards them; otherwise the running ones are used.

    >>> batch_norm(Tensor([[1.0], [3.0]]), None, None, training=True, eps=0.0).tolist()
    [[-1.0], [1.0]]
    """
    if input.ndim < 2:
        raise ShapeError("batch_norm", f"(batch, channels, ..) is needed, got {input.shape}", about={"x": input})
    wide = input.cast(dtypes.promote(input.dtype, dtypes.float32))
    if training:
        axes = tuple([axis for axis in range(input.ndim) if axis != 1])
        count = input.numel() // max(input.shape[1], 1)
        variance, mean = wide.var_mean(axes, correction=0)
        _follow(running_mean, mean, momentum)
        _follow(running_var, variance * (count / max(count - 1, 1)), momentum)
    elif running_mean is None or running_var is None:
        raise ArgumentError("batch_norm", "outside of training the running statistics are needed")
    else:
        mean, variance = running_mean, running_var
    normal = wide.batchnorm(weight, bias, mean, (variance + eps).rsqrt())
    return normal.cast(input.dtype) if input.is_floating_point() else normal


def _follow(running: Tensor | None, found: Tensor, momentum: float) -> None:
    """Move running statistics a step."""
    if running is not None:
        running.assign((running * (1 - momentum) + found.detach() * momentum).cast(running.dtype))


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Each channel of each sample with mean 0 and variance 1 over its positions, scaled and shifted.

    >>> instance_norm(Tensor([[[1.0, 3.0]]]), eps=0.0).tolist()
    [[[-1.0, 1.0]]]
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if input.ndim < 3:
        raise ShapeError("instance_norm", f"(batch, channels, ..) is needed, got {input.shape}", about={"x": input})
    axes = tuple(range(2, input.ndim))
    wide = input.cast(dtypes.promote(input.dtype, dtypes.float32))
    if running_mean is not None or running_var is not None:
        variance, mean = wide.var_mean(axes)
        _follow(running_mean, mean.mean(0), momentum)
        _follow(running_var, variance.mean(0), momentum)
    normal = _scaled(wide.layernorm(axes, eps), weight, bias, 1)
    return normal.cast(input.dtype) if input.is_floating_point() else normal


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Each group of channels of each sample with mean 0 and variance 1; channels scaled and shifted (Wu and He).

    >>> group_norm(Tensor([[1.0, 3.0]]), 1, eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise ShapeError("group_norm", f"{num_groups} groups do not divide the channels of {input.shape}")
    wide = input.cast(dtypes.promote(input.dtype, dtypes.float32))
    groups = wide.reshape((input.shape[0], num_groups, input.numel() // max(input.shape[0] * num_groups, 1)))
    normal = _scaled(groups.layernorm(-1, eps).reshape(input.shape), weight, bias, 1)
    return normal.cast(input.dtype) if input.is_floating_point() else normal


def layer_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """The last axes with mean 0 and variance 1, scaled and shifted (Ba et al.).

    >>> layer_norm(Tensor([[1.0, 3.0]]), [2], eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    rank = len(_last_axes("layer_norm", input, normalized_shape))
    normal = input.layernorm(tuple(range(-rank, 0)), eps)
    scaled = normal if weight is None else normal * weight
    return scaled if bias is None else scaled + bias


def rms_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """The last axes over the root of their mean square, scaled (Zhang and Sennrich); `eps` defaults to the type's.

    >>> rms_norm(Tensor([[3.0, -3.0]]), [2], eps=0.0).tolist()
    [[1.0, -1.0]]
    """
    axes = tuple(range(-len(_last_axes("rms_norm", input, normalized_shape)), 0))
    wide = input.cast(dtypes.promote(input.dtype, dtypes.float32))
    small = 2.0 ** -_FRACTION_BITS.get(input.dtype.name, 23) if eps is None else eps
    normal = wide / ((wide * wide).mean(axes, keepdim=True) + small).sqrt()
    normal = normal.cast(input.dtype) if input.is_floating_point() else normal
    return normal if weight is None else normal * weight


_FRACTION_BITS = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}


def _last_axes(function: str, input: Tensor, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or input.shape[max(input.ndim - len(shape), 0) :] != shape:
        raise ShapeError(function, f"the last axes must be {shape}, got {input.shape}", about={"x": input})
    return shape


def _scaled(normal: Tensor, weight: Tensor | None, bias: Tensor | None, axis: int) -> Tensor:
    column = (-1, *(1,) * (normal.ndim - axis - 1))
    scaled = normal if weight is None else normal * weight.reshape(column)
    return scaled if bias is None else scaled + bias.reshape(column)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta (Krizhevsky et al.).

    >>> local_response_norm(Tensor([[[2.0]]]), 1, alpha=1.0, beta=1.0).tolist()
    [[[0.4000000059604645]]]
    """
    if input.ndim < 3:
        raise ShapeError("local_response_norm", f"(batch, channels, ..) is needed, got {input.shape}")
    squares = input.square().transpose(1, -1)
    near = pad(squares, (size // 2, (size - 1) // 2)).unfold(-1, size, 1).mean(-1).transpose(1, -1)
    return input / (near * alpha + k).pow(beta)
