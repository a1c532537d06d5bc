"""Convolutions as layers, over one to three axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.nn.functional.convolution import around
from lazulite.tensor.products import each_axis
from lazulite.tensor.tensor import Tensor

Sizes = int | Sequence[int]
_PADS = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate", "circular": "circular"}


class _Convolution:
    """What all of them share: weight (out_channels, in_channels / groups, kernel ..)."""

    rank = 2

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes | str = 0,
        dilation: Sizes = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
    ) -> None:  # fmt: skip
        name = type(self).__name__
        kernel = (kernel_size,) * self.rank if isinstance(kernel_size, int) else tuple(kernel_size)
        _check_groups(name, groups, in_channels, out_channels)
        if padding_mode not in _PADS:
            raise ArgumentError(name, f"padding_mode is one of {', '.join(map(repr, _PADS))}, not {padding_mode!r}")
        self.stride, self.dilation, self.groups, self.padding_mode = stride, dilation, groups, padding_mode
        steps, gaps = [each_axis(name, given, len(kernel)) for given in (stride, dilation)]
        self.padding = around(name, padding, kernel, steps, gaps)
        bound = 1 / math.sqrt(max(in_channels // groups * math.prod(kernel), 1))
        self.weight = Tensor.uniform(out_channels, in_channels // groups, *kernel, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_channels, low=-bound, high=bound) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        batch = x.unsqueeze(0) if x.ndim == self.weight.ndim - 1 else x
        padding: tuple[int, ...] | int = self.padding
        if self.padding_mode != "zeros":
            batch, padding = batch.pad(self.padding, _PADS[self.padding_mode]), 0
        result = batch.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, padding)
        return result if x.ndim == self.weight.ndim else result.squeeze(0)


def _check_groups(name: str, groups: int, in_channels: int, out_channels: int) -> None:
    if groups < 1 or in_channels % groups or out_channels % groups:
        raise ShapeError(name, f"{groups} groups do not divide {in_channels} and {out_channels} channels")


class Conv1d(_Convolution):
    """The convolution of (batch, in_channels, length); see `Conv2d`.

    >>> Conv1d(1, 8, kernel_size=3, padding="same")(Tensor.ones(2, 1, 5)).shape
    (2, 8, 5)
    """

    rank = 1


class Conv2d(_Convolution):
    """The convolution of (batch, in_channels, ..) with weight (out_channels, in_channels / groups, kernel ..).

    `padding` is a size, one for each axis, "valid" or "same" (with stride 1 the output is as large as the input);
    `padding_mode` says what lies there: "zeros", "reflect", "replicate" or "circular".

    >>> Conv2d(1, 8, kernel_size=3, padding="same")(Tensor.ones(2, 1, 5, 5)).shape
    (2, 8, 5, 5)
    """


class Conv3d(_Convolution):
    """The convolution of (batch, in_channels, depth, height, width); see `Conv2d`.

    >>> Conv3d(1, 8, kernel_size=3)(Tensor.ones(2, 1, 3, 4, 5)).shape
    (2, 8, 1, 2, 3)
    """

    rank = 3


class _Transposed:
    """What all of them share: weight (in_channels, out_channels / groups, kernel ..)."""

    rank = 2

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1, padding: Sizes = 0,
        output_padding: Sizes = 0, dilation: Sizes = 1, groups: int = 1, bias: bool = True,
    ) -> None:  # fmt: skip
        kernel = (kernel_size,) * self.rank if isinstance(kernel_size, int) else tuple(kernel_size)
        _check_groups(type(self).__name__, groups, in_channels, out_channels)
        self.stride, self.padding, self.output_padding = stride, padding, output_padding
        self.dilation, self.groups = dilation, groups
        bound = 1 / math.sqrt(max(out_channels // groups * math.prod(kernel), 1))
        self.weight = Tensor.uniform(in_channels, out_channels // groups, *kernel, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_channels, low=-bound, high=bound) if bias else None

    def __call__(self, x: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        batch = x.unsqueeze(0) if x.ndim == self.weight.ndim - 1 else x
        extra = self.output_padding if output_size is None else self._missing(batch, output_size)
        result = batch.conv_transpose2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding, extra
        )
        return result if x.ndim == self.weight.ndim else result.squeeze(0)

    def _missing(self, x: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """How far the sizes are short of those asked for."""
        kernel, name = self.weight.shape[2:], type(self).__name__
        steps, gaps, margins = [each_axis(name, g, len(kernel)) for g in (self.stride, self.dilation, self.padding)]
        facts = zip(x.shape[2:], kernel, steps, gaps, margins, strict=True)
        sizes = [(n - 1) * step - 2 * margin + gap * (k - 1) + 1 for n, k, step, gap, margin in facts]
        return tuple([wish - size for wish, size in zip(output_size[-len(sizes) :], sizes, strict=True)])


class ConvTranspose1d(_Transposed):
    """The transposed convolution of (batch, in_channels, length); see `ConvTranspose2d`.

    >>> ConvTranspose1d(1, 8, kernel_size=3, stride=2)(Tensor.ones(2, 1, 5)).shape
    (2, 8, 11)
    """

    rank = 1


class ConvTranspose2d(_Transposed):
    """The transposed convolution of (batch, in_channels, ..) with weight (in_channels, out_channels / groups, ..).

    >>> ConvTranspose2d(1, 8, kernel_size=3, stride=2)(Tensor.ones(2, 1, 5, 5)).shape
    (2, 8, 11, 11)
    """


class ConvTranspose3d(_Transposed):
    """The transposed convolution of (batch, in_channels, depth, height, width); see `ConvTranspose2d`.

    >>> ConvTranspose3d(1, 2, kernel_size=2)(Tensor.ones(1, 1, 2, 2, 2)).shape
    (1, 2, 3, 3, 3)
    """

    rank = 3
