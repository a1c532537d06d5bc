"""Sums of products: matrix products, convolution, normalisation.

A product is written as what it is, a broadcast multiplication and a sum, in the form in which the
compiler finds a contraction.  Narrow floats are multiplied and summed in float32 and rounded once;
integers are summed in at least 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from lazulite.base.errors import DTypeError, ShapeError
from lazulite.ir import dtype as types
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.arrange import ArrangeMethods, window_count, windows
from lazulite.tensor.base import Axes, DTypeLike, as_dtype, expanded, float_dtype, sizes_argument, some_axes
from lazulite.tensor.convert import ConvertMethods
from lazulite.tensor.math import MathMethods
from lazulite.tensor.reduce import ReduceMethods, moments, reduced


class ProductMethods(MathMethods, ArrangeMethods, ReduceMethods, ConvertMethods):
    """Matrix products and what is built on them."""

    __slots__ = ()

    def matmul(self, x: Any, reverse: bool = False, dtype: DTypeLike | None = None) -> Self:
        """The matrix product over the last axis of the left and the second last of the right side.

        A vector is a row on the left and a column on the right; further axes are batches and broadcast.

        >>> (Tensor([[1, 2], [3, 4]]) @ Tensor([1, 1])).tolist()
        [3, 7]
        """
        other = self._tensor("matmul", x)
        return other.matmul(self, dtype=dtype) if reverse else self._product("matmul", other, dtype)

    def dot(self, w: Any, dtype: DTypeLike | None = None) -> Self:
        """`matmul` by its other name.

        >>> Tensor([1, 2]).dot(Tensor([3, 4])).item()
        11
        """
        return self._product("dot", self._tensor("dot", w), dtype)

    def __matmul__(self, x: Any) -> Self:
        return self.matmul(x)

    def __rmatmul__(self, x: Any) -> Self:
        return self.matmul(x, reverse=True)

    def __imatmul__(self, x: Any) -> Self:
        return self.assign(self.matmul(x))

    def _product(self, function: str, other: Self, dtype: DTypeLike | None) -> Self:
        left, right = self.shape, other.shape
        rule = "The last axis of the left side must equal the second last of the right side."
        if not left or not right:
            raise ShapeError(function, f"needs an axis on both sides, got {left} @ {right}", rule=rule)
        m, n = left[-1], right[max(len(right) - 2, 0)]
        if m != n:
            raise ShapeError(
                function,
                f"inner sizes must be equal, got {m} and {n} in {left} @ {right}",
                about={"left": self, "right": other},
                rule=rule,
            )
        result = product_dtype(types.promote(self.dtype, other.dtype), function, dtype)
        x, y = [t.uop.cast(wide_product(result)) for t in (self, other)]
        x = _inserted(x, len(left) - 1) if len(right) > 1 else x
        y = _columns_last(y) if len(right) > 1 else y
        y = _inserted(y, len(right) - 2) if min(len(left), len(right)) > 1 else y
        shape = _broadcast(function, self, other, x.shape, y.shape)
        terms = expanded(x, shape) * expanded(y, shape)
        return self._derived(_without_last(reduced(ops.ADD, terms, (len(shape) - 1,)), 1).cast(result))

    def dot2(self, other: Any) -> Self:
        """The sum of the products of the two signed 16-bit halves of int32 elements; it wraps around.

        Where the processor has an instruction for it (`pmaddwd`), it is one. DTypeError for another type.

        >>> Tensor([(3 << 16) + 2]).dot2(Tensor([(10 << 16) + 5])).tolist()
        [40]
        """
        x, y = self._matched("dot2", other)
        if x.dtype is not dtypes.int32:
            raise DTypeError("dot2", f"int32 elements are needed, got {x.dtype.name}", about={"left": self})
        return self._derived(UOp.apply(ops.DOT2, x, y))

    def linear(self, weight: Self, bias: Self | None = None, dtype: DTypeLike | None = None) -> Self:
        """self @ weight + bias; a weight of one axis multiplies elementwise.

        >>> Tensor([[1.0, 2.0]]).linear(Tensor([[1.0], [1.0]]), Tensor([0.5])).tolist()
        [[3.5]]
        """
        scaled = self * weight if len(weight.shape) == 1 else self._product("linear", weight, dtype)
        return scaled if bias is None else scaled + bias

    # --- windows ------------------------------------------------------------------------------------

    def conv2d(
        self, weight: Self, bias: Self | None = None, groups: int = 1, stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0, dtype: DTypeLike | None = None,
    ) -> Self:  # fmt: skip
        """The cross-correlation of (batch, channels, ..) with (outputs, channels / groups, kernel ..).

        Any number of spatial axes.  `padding` is one size, one for each axis, or a (before, after) pair for each
        axis, flat, the last axis first.

        >>> Tensor.ones(1, 1, 3, 3).conv2d(Tensor.ones(1, 1, 2, 2)).tolist()
        [[[[4.0, 4.0], [4.0, 4.0]]]]
        """
        kernel = weight.shape[2:]
        self._check_convolution(weight, groups)
        result = product_dtype(types.promote(self.dtype, weight.dtype), "conv2d", dtype)
        x = self.cast(wide_product(result)).pad(around_each("conv2d", padding, len(kernel), len(self.shape)))
        steps, gaps = [each_axis("conv2d", given, len(kernel)) for given in (stride, dilation)]
        x = x._windows("conv2d", kernel, steps, gaps)
        batch, channels, out = x.shape[0], x.shape[1], x.shape[2 : 2 + len(kernel)]
        grouped = x.reshape((batch, groups, 1, channels // groups, *out, *kernel))
        order = (0, 1, 2, *range(4, 4 + len(out)), 3, *range(4 + len(out), 4 + 2 * len(out)))
        outputs = weight.shape[0] // groups
        factors = weight.cast(x.dtype).reshape((groups, outputs, *(1,) * len(out), channels // groups, *kernel))
        terms = grouped.permute(order) * factors
        axes = tuple(range(len(terms.shape) - len(kernel) - 1, len(terms.shape)))
        summed = _without_last(reduced(ops.ADD, terms.uop, axes), len(axes)).cast(result)
        y = self._derived(summed).reshape((batch, groups * outputs, *out))
        return y if bias is None else y + bias.reshape((-1, *(1,) * len(kernel)))

    def _check_convolution(self, weight: Self, groups: int) -> None:
        rank, (x, w) = len(weight.shape) - 2, (self.shape, weight.shape)
        if rank < 1 or len(x) != len(w) or groups < 1 or x[1] != w[1] * groups or w[0] % groups:
            raise ShapeError(
                "conv2d",
                f"input {x}, weight {w} and {groups} groups do not fit",
                about={"input": self, "weight": weight},
                rule="Input (N, C, ..), weight (O, C / groups, kernel ..); groups divide C and O.",
            )

    def _windows(self, function: str, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> Self:
        """The last axes as windows (..) and then the offsets in them (..)."""
        node, rank = self.uop, len(kernel)
        for axis, size, step, gap in zip(range(-rank, 0), kernel, stride, dilation, strict=True):
            at = len(self.shape) + axis
            if size < 1 or step < 1 or gap < 1 or window_count(self.shape[at], size, step, gap) < 1:
                raise ShapeError(
                    function,
                    f"no window of size {size} (stride {step}, dilation {gap}) in axis {at} of {self.shape}",
                    about={"tensor": self},
                )
        first = len(self.shape) - rank
        for number, (size, step, gap) in enumerate(zip(kernel, stride, dilation, strict=True)):
            node = windows(node, first + 2 * number, size, step, gap)
        offsets = range(first, first + 2 * rank, 2)
        order = (*range(first), *[axis + 1 for axis in offsets], *offsets)
        return self._derived(UOp(ops.PERMUTE, node.dtype, (node,), order))

    # --- normalisation ------------------------------------------------------------------------------

    def layernorm(self, axis: Axes = -1, eps: float = 1e-05) -> Self:
        """The value minus its mean over the axes, over its standard deviation (without correction).

        >>> Tensor([40000.0, 40002.0]).layernorm(eps=0).tolist()
        [-1.0, 1.0]
        """
        axes = some_axes("layernorm", axis, len(self.shape))
        deviation, _, variance = moments(self.uop, axes, correction=0)
        scale = 1 / UOp.apply(ops.SQRT, variance + eps)
        return self._derived((deviation * expanded(scale, deviation.shape)).cast(float_dtype(self.dtype)))

    def batchnorm(
        self, weight: Self | None, bias: Self | None, mean: Self, invstd: Self, axis: int | tuple[int, ...] = 1
    ) -> Self:
        """(x - mean) * invstd * weight + bias, where all four run along `axis`.

        >>> x, one = Tensor([[3.0], [5.0]]), Tensor([1.0])
        >>> x.batchnorm(one, None, Tensor([4.0]), one).tolist()
        [[-1.0], [1.0]]
        """
        axes = some_axes("batchnorm", axis, len(self.shape))
        shape = tuple([size if each in axes else 1 for each, size in enumerate(self.shape)])
        y = self - mean.reshape(shape)
        y = y * (invstd if weight is None else invstd * weight).reshape(shape)
        return y if bias is None else y + bias.reshape(shape)


# --- types and shapes of products ----------------------------------------------------------------


def product_dtype(common: DType, function: str, dtype: DTypeLike | None) -> DType:
    if dtype is not None:
        return as_dtype(function, dtype)
    if common.is_float:
        return common
    return types.promote(common, dtypes.uint32 if common.kind == "uint" else dtypes.int32)


def wide_product(result: DType) -> DType:
    return types.promote(result, dtypes.float32) if result.is_float else result


def _inserted(node: UOp, axis: int) -> UOp:
    return UOp(ops.RESHAPE, node.dtype, (node,), (*node.shape[:axis], 1, *node.shape[axis:]))


def _columns_last(node: UOp) -> UOp:
    """The last two axes exchanged: (.., k, m) as (.., m, k)."""
    rank = len(node.shape)
    return UOp(ops.PERMUTE, node.dtype, (node,), (*range(rank - 2), rank - 1, rank - 2))


def _without_last(node: UOp, count: int) -> UOp:
    return UOp(ops.RESHAPE, node.dtype, (node,), node.shape[: len(node.shape) - count])


def _broadcast(
    function: str, left: Any, right: Any, first: tuple[int, ...], second: tuple[int, ...]
) -> tuple[int, ...]:
    rank = max(len(first), len(second))
    x, y = [(1,) * (rank - len(shape)) + shape for shape in (first, second)]
    if any(1 not in (a, b) and a != b for a, b in zip(x, y, strict=True)):
        raise ShapeError(
            function,
            f"batch axes do not broadcast in {left.shape} @ {right.shape}",
            about={"left": left, "right": right},
        )
    return tuple([b if a == 1 else a for a, b in zip(x, y, strict=True)])


def each_axis(function: str, given: int | Sequence[int], rank: int) -> tuple[int, ...]:
    """One number for each of the axes."""
    numbers = (given,) * rank if isinstance(given, int) else sizes_argument(function, given)
    numbers = numbers * rank if len(numbers) == 1 else numbers
    if len(numbers) != rank:
        raise ShapeError(function, f"{numbers} does not give one number for each of {rank} axes")
    return numbers


def around_each(function: str, padding: int | Sequence[int], rank: int, total: int) -> list[tuple[int, int]]:
    """(before, after) for each axis, the leading ones unpadded."""
    if not isinstance(padding, int) and len(padding) == 2 * rank and rank:
        pairs = list(zip(padding[::2], padding[1::2], strict=True))[::-1]
    else:
        pairs = [(size, size) for size in each_axis(function, padding, rank)]
    return [(0, 0)] * (total - rank) + pairs
