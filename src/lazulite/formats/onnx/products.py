"""Operators with windows and products: matrix products, convolutions, poolings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lazulite.base.errors import FormatError
from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.formats.onnx.values import Ints
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor

Pairs = list[tuple[int, int]]

# --- matrix products -------------------------------------------------------------------------------


@onnx_op("MatMul")
def matmul(a: Tensor, b: Tensor) -> Tensor:
    return a.matmul(b, dtype=a.dtype)


@onnx_op("Gemm")
def gemm(
    a: Tensor, b: Tensor, c: Tensor | None = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0,
    transB: int = 0, broadcast: int = 1,
) -> Tensor:  # fmt: skip
    left, right = a.transpose(0, 1) if transA else a, b.transpose(0, 1) if transB else b
    product = left.matmul(right, dtype=a.dtype)
    product = product if alpha == 1 else (product * alpha).cast(a.dtype)
    if c is None:
        return product
    return product + (c if beta == 1 else (c * beta).cast(a.dtype))


@onnx_op("FusedMatMul", domain="com.microsoft")
def fused_matmul(
    a: Tensor, b: Tensor, *, alpha: float = 1.0, transA: int = 0, transB: int = 0, transBatchA: int = 0,
    transBatchB: int = 0,
) -> Tensor:  # fmt: skip
    if transBatchA or transBatchB:
        raise FormatError("OnnxRunner", "FusedMatMul is not read with transBatchA or transBatchB")
    return (a.transpose(-1, -2) if transA else a).matmul(b.transpose(-1, -2) if transB else b) * alpha


# --- windows ---------------------------------------------------------------------------------------


def margins(
    auto_pad: str, pads: Sequence[int] | None, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilations: Sequence[int],
) -> Pairs:  # fmt: skip
    """What is added before and behind each axis; SAME makes the result as long as the axis over the stride."""
    rank = len(kernel)
    if auto_pad in ("NOTSET", "", "VALID"):
        given = [0] * (2 * rank) if pads is None or auto_pad == "VALID" else list(pads)
        return list(zip(given[:rank], given[rank:], strict=True))
    pairs = []
    for size, width, step, gap in zip(sizes, kernel, strides, dilations, strict=True):
        total = max((-(-size // step) - 1) * step + gap * (width - 1) + 1 - size, 0)
        less, more = total // 2, total - total // 2
        pairs.append((less, more) if auto_pad == "SAME_UPPER" else (more, less))
    return pairs


def flat(pairs: Pairs) -> list[int]:
    """As the methods of tensors take it: pairs, the last axis first."""
    return [width for pair in reversed(pairs) for width in pair]


@onnx_op("Conv")
def conv(
    x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None,
    group: int = 1, kernel_shape: list[int] | None = None, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:  # fmt: skip
    kernel = w.shape[2:]
    steps, gaps = strides or [1] * len(kernel), dilations or [1] * len(kernel)
    around = margins(auto_pad, pads, x.shape[2:], kernel, steps, gaps)
    return x.conv2d(w, b, groups=group, stride=steps, dilation=gaps, padding=flat(around), dtype=x.dtype)


@onnx_op("ConvTranspose")
def conv_transpose(
    x: Tensor, w: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None,
    group: int = 1, kernel_shape: list[int] | None = None, output_padding: list[int] | None = None,
    output_shape: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Tensor:  # fmt: skip
    """The whole result, cut at its ends; what `output_padding` adds lies behind it."""
    kernel = w.shape[2:]
    rank = len(kernel)
    steps, gaps, extras = strides or [1] * rank, dilations or [1] * rank, output_padding or [0] * rank
    whole = x.conv_transpose2d(w, None, groups=group, stride=steps, dilation=gaps)
    ends = [size + extra for size, extra in zip(whole.shape[2:], extras, strict=True)]
    wanted = output_shape[-rank:] if output_shape else None
    if auto_pad.startswith("SAME") and wanted is None:
        wanted = [size * step for size, step in zip(x.shape[2:], steps, strict=True)]
    if wanted is None:
        cut = margins("NOTSET", None if auto_pad == "VALID" else pads, x.shape[2:], kernel, steps, gaps)
    else:
        halves = [(end - size, (end - size) // 2) for end, size in zip(ends, wanted, strict=True)]
        upper = auto_pad == "SAME_UPPER"
        cut = [(half, total - half) if upper else (total - half, half) for total, half in halves]
    around = [(-before, extra - after) for (before, after), extra in zip(cut, extras, strict=True)]
    y = whole.pad([(0, 0), (0, 0), *around])
    return y if b is None else y + b.reshape((-1, *(1,) * rank))


@onnx_op("Col2Im", since=18)
def col2im(
    x: Tensor, image: Ints, block: Ints, *, dilations: list[int] | None = None, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Tensor:  # fmt: skip
    """The sum of blocks put at their places: a transposed convolution in which each block is its own kernel."""
    rank, (batch, rows, _) = len(block), x.shape
    steps, gaps = strides or [1] * rank, dilations or [1] * rank
    around = margins("NOTSET", pads, image, block, steps, gaps)
    counts = [
        (size + sum(pair) - gap * (width - 1) - 1) // step + 1
        for size, pair, width, step, gap in zip(image, around, block, steps, gaps, strict=True)
    ]
    channels, width = rows // math.prod(block), math.prod(block)
    columns = x.reshape((batch * channels, width, *counts))
    kernel = Tensor.eye(width, dtype=x.dtype, device=x.device).reshape((width, 1, *block))
    whole = columns.conv_transpose2d(kernel, None, stride=steps, dilation=gaps)
    ends = [
        (-before, size + before - end) for (before, _), size, end in zip(around, image, whole.shape[2:], strict=True)
    ]
    return whole.pad([(0, 0), (0, 0), *ends]).reshape((batch, channels, *image))


# --- pooling ---------------------------------------------------------------------------------------


@onnx_op("MaxPool")
def max_pool(
    x: Tensor, *, kernel_shape: list[int], auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: list[int] | None = None, pads: list[int] | None = None, storage_order: int = 0,
    strides: list[int] | None = None, call: Call,
) -> Any:  # fmt: skip
    """Positions count through the whole tensor, or with `storage_order` through each image by columns."""
    rank = len(kernel_shape)
    steps, gaps = strides or [1] * rank, dilations or [1] * rank
    around = flat(margins(auto_pad, pads, x.shape[2:], kernel_shape, steps, gaps))
    wanted = call.outputs > 1
    found = x.max_pool2d(kernel_shape, steps, gaps, around, bool(ceil_mode), return_indices=wanted)
    if not wanted:
        return found
    maxima, places = found
    size, images = math.prod(x.shape[2:]), math.prod(x.shape[:2])
    if storage_order:
        below, turned = 1, places.zeros_like()
        rest = places
        for length in reversed(x.shape[2:]):
            turned, rest = turned + rest % length * (size // below // length), rest // length
            below *= length
        places = turned
    starts = Tensor.arange(images, dtype=dtypes.int64, device=x.device).reshape((*x.shape[:2], *(1,) * rank)) * size
    return maxima, places.cast(dtypes.int64) + starts


@onnx_op("MaxUnpool", since=9)
def max_unpool(
    x: Tensor, places: Tensor, output_shape: Ints | None = None, *, kernel_shape: list[int],
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Tensor:  # fmt: skip
    """Positions count through the tensor that the pads describe, whatever the output's shape is."""
    rank = len(kernel_shape)
    around = margins("NOTSET", pads, (), kernel_shape, (), ())
    facts = zip(x.shape[2:], strides or [1] * rank, kernel_shape, around, strict=True)
    sizes = (*x.shape[:2], *[(size - 1) * step + width - sum(pair) for size, step, width, pair in facts])
    empty = Tensor.zeros(math.prod(sizes), dtype=x.dtype, device=x.device)
    whole = empty.scatter(0, places.flatten(), x.flatten()).reshape(sizes)
    return whole if output_shape is None else whole.pad([(0, b - a) for a, b in zip(sizes, output_shape, strict=True)])


@onnx_op("AveragePool")
def average_pool(
    x: Tensor, *, kernel_shape: list[int], auto_pad: str = "NOTSET", ceil_mode: int = 0, count_include_pad: int = 0,
    dilations: list[int] | None = None, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Tensor:  # fmt: skip
    rank = len(kernel_shape)
    steps, gaps = strides or [1] * rank, dilations or [1] * rank
    around = flat(margins(auto_pad, pads, x.shape[2:], kernel_shape, steps, gaps))
    return x.avg_pool2d(kernel_shape, steps, gaps, around, bool(ceil_mode), bool(count_include_pad))


@onnx_op("LpPool")
def lp_pool(
    x: Tensor, *, kernel_shape: list[int], auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: list[int] | None = None, p: float = 2, pads: list[int] | None = None, strides: list[int] | None = None,
) -> Tensor:  # fmt: skip
    """The p-norm of each window; what lies outside counts as zero."""
    rank = len(kernel_shape)
    steps, gaps = strides or [1] * rank, dilations or [1] * rank
    around = margins(auto_pad, pads, x.shape[2:], kernel_shape, steps, gaps)
    powers = x.abs() ** p
    # The mean over padding that counts, times the size of the window, is the sum of the window.
    padded = powers.pad([(0, 0), (0, 0), *around])
    if ceil_mode:
        reach = [gap * (width - 1) + 1 for width, gap in zip(kernel_shape, gaps, strict=True)]
        less = [-(size - span) % step for size, span, step in zip(padded.shape[2:], reach, steps, strict=True)]
        padded = padded.pad([(0, 0), (0, 0), *[(0, extra) for extra in less]])
    total = padded.avg_pool2d(kernel_shape, steps, gaps) * math.prod(kernel_shape)
    return (total ** (1 / p)).cast(x.dtype)


def _over_images(x: Tensor) -> tuple[int, ...]:
    return tuple(range(2, len(x.shape)))


@onnx_op("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    return x.mean(_over_images(x), keepdim=True)


@onnx_op("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    return x.max(_over_images(x), keepdim=True)


@onnx_op("GlobalLpPool")
def global_lp_pool(x: Tensor, *, p: float = 2) -> Tensor:
    return (x.abs() ** p).sum(_over_images(x), keepdim=True) ** (1 / p)
