"""The windows of images as columns, and columns added up to images.

Takes and gives tensors.  The way back is the gradient of the way there, which is movement and sums only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lazulite.autograd.backward import gradient
from lazulite.base.errors import ShapeError
from lazulite.ir import ops
from lazulite.ir.uop import UOp

if TYPE_CHECKING:
    from lazulite.tensor.tensor import Tensor


def window_columns(
    x: Tensor, kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Tensor:
    """(N, C, ..) as (N, C * elements of a window, windows)."""
    lead = x.ndim - len(kernel)
    padded = x.pad([(0, 0)] * lead + [(margin, margin) for margin in padding])
    windows = padded._windows("unfold", kernel, stride, dilation)
    count, out = len(kernel), windows.shape[lead : lead + len(kernel)]
    order = (*range(lead), *range(lead + count, lead + 2 * count), *range(lead, lead + count))
    return windows.permute(order).reshape((x.shape[0], math.prod([*x.shape[1:lead], *kernel]), math.prod(out)))


def added_columns(
    columns: Tensor, sizes: Sequence[int], kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:  # fmt: skip
    """(N, C * elements of a window, windows) added up to (N, C, sizes ..)."""
    channels = columns.shape[1] // max(math.prod(kernel), 1)
    image = UOp(ops.PARAM, columns.dtype, (), (0, (columns.shape[0], channels, *sizes), columns.device))
    there = window_columns(columns._derived(image), kernel, dilation, padding, stride)
    if there.shape != columns.shape:
        raise ShapeError(
            "fold", f"windows of an image of size {tuple(sizes)} make columns {there.shape}, got {columns.shape}",
            about={"columns": columns},
        )  # fmt: skip
    (back,) = gradient(there.uop, [image], columns.uop)
    assert back is not None
    return columns._derived(back)
