"""Pooling: the maximum or mean of each window, and the way back.

Any number of last axes is pooled, one for each number of the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from lazulite.autograd.scatter import scattered
from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import counted, expanded, sizes_argument
from lazulite.tensor.picking import position_node
from lazulite.tensor.products import ProductMethods, around_each, each_axis


class PoolMethods(ProductMethods):
    """Pooling."""

    __slots__ = ()

    def max_pool2d(
        self, kernel_size: int | Sequence[int] = (2, 2), stride: int | Sequence[int] | None = None,
        dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:  # fmt: skip
        """The maximum of each window of the last axes, a tensor; padding never wins (B094).

        With `return_indices` also the int32 position of each maximum in the flattened pooled axes, of the first
        where several are equal: (maxima, positions).

        >>> Tensor([[[[1, 2], [3, 4]]]]).max_pool2d().tolist()
        [[[[4]]]]
        >>> [part.item() for part in Tensor([[1, 7], [3, 4]]).max_pool2d(return_indices=True)]
        [7, 1]
        """
        plan = _Pooling("max_pool2d", self.shape, kernel_size, stride, dilation, padding, ceil_mode)
        low = -math.inf if self.dtype.is_float else self.dtype.min
        x = self.pad(plan.around(), value=low)._windows("max_pool2d", plan.kernel, plan.stride, plan.dilation)
        rank = len(plan.kernel)
        maxima = x.max(tuple(range(-rank, 0)))
        if not return_indices:
            return maxima
        sizes = self.shape[len(self.shape) - rank :]
        count = UOp(ops.IOTA, dtypes.int32, (), math.prod(sizes))
        own = self._derived(UOp(ops.RESHAPE, dtypes.int32, (count,), sizes))
        cut = own.pad(plan.around()[-rank:], value=count.arg)._windows(
            "max_pool2d", plan.kernel, plan.stride, plan.dilation
        )
        chosen = x.eq(maxima.reshape((*maxima.shape, *(1,) * rank))) | x.ne(x)
        places = expanded(cut.uop, x.shape)
        found = self._derived(chosen.uop.where(places, UOp.const(dtypes.int32, count.arg)))
        return maxima, found.min(tuple(range(-rank, 0)))

    def max_unpool2d(
        self, indices: Self, kernel_size: int | Sequence[int] = (2, 2), stride: int | Sequence[int] | None = None,
        dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, output_size: Sequence[int] | None = None,
    ) -> Self:  # fmt: skip
        """The maxima of `max_pool2d` back at their positions, zeros elsewhere.

        `output_size` says how large the pooled axes were where the sizes alone do not.

        >>> Tensor([[5]]).max_unpool2d(Tensor([[1]])).tolist()
        [[0, 5], [0, 0]]
        """
        function = "max_unpool2d"
        if indices.shape != self.shape:
            raise ShapeError(function, f"values of shape {self.shape} need as many positions, got {indices.shape}")
        kernel = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
        rank = len(kernel)
        if len(self.shape) < rank:
            raise ShapeError(function, f"{self.shape} has fewer axes than the kernel {kernel}")
        steps, gaps, margins = [
            each_axis(function, given, rank) for given in (kernel if stride is None else stride, dilation, padding)
        ]
        facts = zip(self.shape[-rank:], steps, gaps, margins, kernel, strict=True)
        sizes = tuple([(n - 1) * step - 2 * margin + gap * (k - 1) + 1 for n, step, gap, margin, k in facts])
        if output_size is not None:
            sizes = sizes_argument(function, output_size)[-rank:]
        lead, count = self.shape[: len(self.shape) - rank], math.prod(self.shape[len(self.shape) - rank :])
        rows, places = self.reshape((-1, count)), indices.reshape((-1, count))
        positions = [counted(rows.shape, 0), position_node(function, places, math.prod(sizes))]
        # Maxima of overlapping windows are one element: it comes back once, however often it was chosen.
        empty = expanded(UOp.const(self.dtype, 0), (rows.shape[0], math.prod(sizes)))
        return self._derived(scattered(None, empty, positions, rows.uop)).reshape((*lead, *sizes))

    def avg_pool2d(
        self, kernel_size: int | Sequence[int] = (2, 2), stride: int | Sequence[int] | None = None,
        dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Self:  # fmt: skip
        """The mean of each window of the last axes.

        Padding counts as zeros, or not at all; what `ceil_mode` adds beyond the padding never counts (B095).
        With `divisor_override` the sum over that number.

        >>> Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]).avg_pool2d().tolist()
        [[[[2.5]]]]
        """
        plan = _Pooling("avg_pool2d", self.shape, kernel_size, stride, dilation, padding, ceil_mode)
        axes = tuple(range(-len(plan.kernel), 0))
        x = self._derived(self._floating())
        parts = x.pad(plan.around())._windows("avg_pool2d", plan.kernel, plan.stride, plan.dilation)
        if divisor_override is not None:
            if divisor_override == 0:
                raise ArgumentError("avg_pool2d", "divisor_override is not zero")
            return parts.sum(axes) / divisor_override
        if not any(map(sum, plan.around())):
            return parts.mean(axes)
        counted, beyond = (plan.padded, plan.beyond) if count_include_pad else (self.shape, plan.around())
        ones = self._derived(expanded(UOp.const(x.dtype, 1), counted)).pad(beyond)
        return parts.sum(axes) / ones._windows("avg_pool2d", plan.kernel, plan.stride, plan.dilation).sum(axes)


class _Pooling:
    """The arguments of a pooling, one number an axis, and what is added around the tensor."""

    def __init__(
        self, function: str, shape: tuple[int, ...], kernel: int | Sequence[int], stride: int | Sequence[int] | None,
        dilation: int | Sequence[int], padding: int | Sequence[int], ceil_mode: bool,
    ) -> None:  # fmt: skip
        self.kernel: tuple[int, ...] = (kernel, kernel) if isinstance(kernel, int) else sizes_argument(function, kernel)
        rank = len(self.kernel)
        if len(shape) < rank:
            raise ShapeError(function, f"{shape} has fewer axes than the kernel {self.kernel}")
        self.stride = each_axis(function, self.kernel if stride is None else stride, rank)
        self.dilation = each_axis(function, dilation, rank)
        self.padding = around_each(function, padding, rank, len(shape))
        self.padded = tuple([size + before + after for size, (before, after) in zip(shape, self.padding, strict=True)])
        more = [self._more(axis, shape, ceil_mode) for axis in range(-rank, 0)]
        self.beyond = [(0, 0)] * (len(shape) - rank) + [(0, extra) for extra in more]
        """What `ceil_mode` adds behind the padding."""

    def _more(self, axis: int, shape: tuple[int, ...], ceil_mode: bool) -> int:
        """Elements missing for a last partial window; it must begin inside the tensor or its front padding."""
        reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1
        size, step = self.padded[axis], self.stride[axis]
        if not ceil_mode or step < 1:
            return 0
        count = -(-(size - reach) // step) + 1
        if (count - 1) * step >= shape[axis] + self.padding[axis][0]:
            count -= 1
        return max((count - 1) * step + reach - size, 0) if count > 0 else 0

    def around(self) -> list[tuple[int, int]]:
        pairs = zip(self.padding, self.beyond, strict=True)
        return [(before, after + extra) for (before, after), (_, extra) in pairs]
