"""Products as torch.nn.functional calls them: convolutions over one to three axes, linear and bilinear maps.

An input without a batch axis is a batch of one.  All of them are `Tensor.conv2d`, `Tensor.conv_transpose2d`,
`Tensor.linear` and `Tensor.einsum`.
"""

from __future__ import annotations

from collections.abc import Sequence

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.tensor.products import each_axis
from lazulite.tensor.tensor import Tensor

Sizes = int | Sequence[int]


def _convolved(
    rank: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes | str,
    dilation: Sizes, groups: int,
) -> Tensor:  # fmt: skip
    batch, steps = _batched(f"conv{rank}d", rank, input, weight), each_axis(f"conv{rank}d", stride, rank)
    gaps = each_axis(f"conv{rank}d", dilation, rank)
    margins = around(f"conv{rank}d", padding, weight.shape[2:], steps, gaps)
    result = batch.conv2d(weight, bias, groups, steps, gaps, margins)
    return result if batch is input else result.squeeze(0)


def _batched(function: str, rank: int, input: Tensor, weight: Tensor) -> Tensor:
    if weight.ndim != rank + 2 or input.ndim not in (rank + 1, rank + 2):
        raise ShapeError(
            function, f"the weight has {rank + 2} axes and the input {rank + 1} or {rank + 2}, got {weight.shape} "
            f"and {input.shape}", about={"input": input, "weight": weight},
        )  # fmt: skip
    return input if input.ndim == rank + 2 else input.unsqueeze(0)


def around(
    function: str, padding: Sizes | str, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[int, ...]:
    """Padding by number or name: (before, after) for each axis, flat, the last axis first; an odd rest goes behind."""
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ArgumentError(function, f"padding is a size, sizes, 'same' or 'valid', not {padding!r}")
        if padding == "same" and set(stride) != {1}:
            raise ArgumentError(function, "padding 'same' needs stride 1")
        same = padding == "same"
        totals = [gap * (size - 1) if same else 0 for gap, size in zip(dilation, kernel, strict=True)]
        return tuple([part for total in reversed(totals) for part in (total // 2, total - total // 2)])
    margins = each_axis(function, padding, len(kernel))
    return tuple([margin for margin in reversed(margins) for _ in range(2)])


def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0,
    dilation: Sizes = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """`Tensor.conv2d` of (batch, channels, length); `padding` may be "same" or "valid".

    >>> conv1d(Tensor([[[1.0, 2.0, 3.0]]]), Tensor.ones(1, 1, 3), padding="same").tolist()
    [[[3.0, 6.0, 5.0]]]
    """
    return _convolved(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0,
    dilation: Sizes = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """`Tensor.conv2d` of (batch, channels, height, width)."""
    return _convolved(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0,
    dilation: Sizes = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """`Tensor.conv2d` of (batch, channels, depth, height, width)."""
    return _convolved(3, input, weight, bias, stride, padding, dilation, groups)


def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """The convolution of (time, batch, channels) with (kernel, channels, outputs).

    >>> conv_tbc(Tensor.ones(3, 1, 1), Tensor.ones(2, 1, 1), Tensor([0.5])).flatten().tolist()
    [2.5, 2.5]
    """
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def _transposed(
    rank: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes,
    output_padding: Sizes, groups: int, dilation: Sizes,
) -> Tensor:  # fmt: skip
    batch = _batched(f"conv_transpose{rank}d", rank, input, weight)
    result = batch.conv_transpose2d(weight, bias, groups, stride, dilation, padding, output_padding)
    return result if batch is input else result.squeeze(0)


def conv_transpose1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0,
    output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1,
) -> Tensor:  # fmt: skip
    """`Tensor.conv_transpose2d` of (batch, channels, length).

    >>> conv_transpose1d(Tensor([[[1.0, 2.0]]]), Tensor.ones(1, 1, 2)).tolist()
    [[[1.0, 3.0, 2.0]]]
    """
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0,
    output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1,
) -> Tensor:  # fmt: skip
    """`Tensor.conv_transpose2d` of (batch, channels, height, width)."""
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0,
    output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1,
) -> Tensor:  # fmt: skip
    """`Tensor.conv_transpose2d` of (batch, channels, depth, height, width)."""
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias, with weight (outputs, inputs) or (inputs).

    >>> linear(Tensor([[1.0, 2.0]]), Tensor([[1.0, 1.0]]), Tensor([0.5])).tolist()
    [[3.5]]
    """
    product = input.matmul(weight if weight.ndim < 2 else weight.transpose())
    return product if bias is None else product + bias


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1 @ weight[o] @ x2 for each output, with weight (outputs, inputs1, inputs2).

    >>> bilinear(Tensor([[1.0, 2.0]]), Tensor([[3.0]]), Tensor.ones(1, 2, 1)).tolist()
    [[9.0]]
    """
    product = Tensor.einsum("...i,oij,...j->...o", input1, weight, input2)
    return product if bias is None else product + bias
