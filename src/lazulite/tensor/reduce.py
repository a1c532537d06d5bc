"""Reductions: sums, extrema, moments, and what is made of them.

`axis` (or `dim`) is an axis, several, or None for all; reduced axes go, or stay with size 1 with
`keepdim` (or `keepdims`).  Sums of integers have at least 32 bits; sums of narrow floats accumulate in
float32 and round once.  NaN propagates.  `AxisError` names an axis that is not there.
"""

from __future__ import annotations

import math
from typing import Self

from lazulite.base.errors import ShapeError
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.size import Size
from lazulite.ir.uop import UOp
from lazulite.tensor.base import (
    Axes,
    Base,
    DTypeLike,
    as_dtype,
    constant,
    detached,
    expanded,
    float_dtype,
    one_axis,
    some_axes,
    wide_dtype,
)

Moments = tuple[UOp, UOp, UOp]


class ReduceMethods(Base):
    """Reductions along axes."""

    __slots__ = ()

    def _axes(self, function: str, axis: Axes, dim: Axes) -> tuple[int, ...]:
        return some_axes(function, dim if axis is None else axis, len(self.shape))

    def _reduced(self, op: Op, node: UOp, axes: tuple[int, ...], keep: bool) -> Self:
        return self._derived(_settled(reduced(op, node, axes), axes, keep))

    # --- sums and products --------------------------------------------------------------------------

    def sum(
        self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None,
        *, dim: Axes = None, keepdims: bool = False,
    ) -> Self:  # fmt: skip
        """The sum.  Integers and bools give at least 32 bits; `dtype` widens or narrows the sum.

        >>> Tensor([[1, 2], [3, 4]]).sum(axis=0).tolist()
        [4, 6]
        """
        axes = self._axes("sum", axis, dim)
        node = self.uop.cast(sum_dtype(self.dtype) if dtype is None else as_dtype("sum", dtype))
        return self._reduced(ops.ADD, node, axes, keepdim or keepdims)

    def prod(
        self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None,
        *, dim: Axes = None, keepdims: bool = False,
    ) -> Self:  # fmt: skip
        """The product, in the type that `sum` has.

        >>> Tensor([2, 3, 4]).prod().item()
        24
        """
        axes = self._axes("prod", axis, dim)
        node = self.uop.cast(sum_dtype(self.dtype) if dtype is None else as_dtype("prod", dtype))
        return self._reduced(ops.MUL, node, axes, keepdim or keepdims)

    def mean(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None, keepdims: bool = False) -> Self:
        """The mean, a float.  Integers are summed in 64 bits (O04), narrow floats in float32 (B076).

        >>> Tensor([1, 2]).mean().item()
        1.5
        """
        axes = self._axes("mean", axis, dim)
        average = _mean(self.uop, axes).cast(float_dtype(self.dtype))
        return self._derived(_settled(average, axes, keepdim or keepdims))

    # --- extrema ------------------------------------------------------------------------------------

    def max(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None, keepdims: bool = False) -> Self:
        """The largest element, NaN if there is one.  Ties share the gradient.  ShapeError where there is none.

        >>> Tensor([[1, 5], [3, 4]]).max(axis=1).tolist()
        [5, 4]
        """
        axes = self._nonempty("max", axis, dim)
        return self._reduced(ops.MAX, self.uop, axes, keepdim or keepdims)

    def min(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None, keepdims: bool = False) -> Self:
        """The smallest element, NaN if there is one.  Ties share the gradient.  ShapeError where there is none.

        >>> Tensor([[1, 5], [3, 4]]).min(axis=1).tolist()
        [1, 3]
        """
        axes = self._nonempty("min", axis, dim)
        return self._reduced(ops.MIN, self.uop, axes, keepdim or keepdims)

    def argmax(
        self, axis: int | None = None, keepdim: bool = False, *, dim: int | None = None, keepdims: bool = False
    ) -> Self:
        """The int32 position of the first largest element, of the first NaN if there is one (B056, B061).

        >>> Tensor([2, 7, 7]).argmax().item()
        1
        """
        return self._position("argmax", ops.MAX, dim if axis is None else axis, keepdim or keepdims)

    def argmin(
        self, axis: int | None = None, keepdim: bool = False, *, dim: int | None = None, keepdims: bool = False
    ) -> Self:
        """The int32 position of the first smallest element, of the first NaN if there is one.

        >>> Tensor([7, 2, 2]).argmin().item()
        1
        """
        return self._position("argmin", ops.MIN, dim if axis is None else axis, keepdim or keepdims)

    def _nonempty(self, function: str, axis: Axes, dim: Axes) -> tuple[int, ...]:
        axes = self._axes(function, axis, dim)
        if 0 in [self.shape[axis] for axis in axes]:
            raise ShapeError(function, f"no element to choose from in {self.shape}", about={"tensor": self})
        return axes

    def _position(self, function: str, op: Op, axis: int | None, keep: bool) -> Self:
        if axis is not None:
            axis = one_axis(function, axis, len(self.shape))
        x, axes = self.uop, self._nonempty(function, axis, None)
        if axis is None and len(x.shape) != 1:
            x, axes = UOp(ops.RESHAPE, x.dtype, (x,), (math.prod(x.shape),)), (0,)
        at, size = axes[0], x.shape[axes[0]]
        places = UOp(ops.IOTA, dtypes.int32, (), size)
        column = UOp(ops.RESHAPE, places.dtype, (places,), (size,) + (1,) * (len(x.shape) - at - 1))
        chosen = x.eq(expanded(reduced(op, x, axes), x.shape))
        chosen = chosen | x.ne(x) if x.dtype.is_float else chosen
        first = reduced(ops.MIN, chosen.where(expanded(column, x.shape), size), axes)
        if axis is None:
            return self._derived(_settled(first, axes, False) if not keep else _ones_shaped(first, len(self.shape)))
        return self._derived(_settled(first, axes, keep))

    def any(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None, keepdims: bool = False) -> Self:
        """Whether some element is not zero.

        >>> Tensor([[0, 1], [0, 0]]).any(axis=1).tolist()
        [True, False]
        """
        axes = self._axes("any", axis, dim)
        return self._reduced(ops.OR, self.uop.cast(dtypes.bool), axes, keepdim or keepdims)

    def all(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None, keepdims: bool = False) -> Self:
        """Whether no element is zero.

        >>> Tensor([[1, 1], [0, 1]]).all(axis=1).tolist()
        [True, False]
        """
        axes = self._axes("all", axis, dim)
        return self._reduced(ops.AND, self.uop.cast(dtypes.bool), axes, keepdim or keepdims)

    # --- moments ------------------------------------------------------------------------------------

    def var(
        self,
        axis: Axes = None,
        keepdim: bool = False,
        correction: float = 1,
        *,
        dim: Axes = None,
        keepdims: bool = False,
        unbiased: bool | None = None,
    ) -> Self:
        """The variance with n - `correction` degrees of freedom, computed around a shifted mean in two passes.

        `unbiased` stands for a correction of 1 or 0.

        >>> Tensor([1.0, 2.0, 3.0]).var().item()
        1.0
        """
        return self.var_mean(axis, keepdim, correction, dim=dim, keepdims=keepdims, unbiased=unbiased)[0]

    def std(
        self,
        axis: Axes = None,
        keepdim: bool = False,
        correction: float = 1,
        *,
        dim: Axes = None,
        keepdims: bool = False,
        unbiased: bool | None = None,
    ) -> Self:
        """The square root of the variance; that of a half may exist where the variance is infinite (B077).

        >>> Tensor([1.0, 2.0, 3.0]).std().item()
        1.0
        """
        return self.std_mean(axis, keepdim, correction, dim=dim, keepdims=keepdims, unbiased=unbiased)[0]

    def var_mean(
        self,
        axis: Axes = None,
        keepdim: bool = False,
        correction: float = 1,
        *,
        dim: Axes = None,
        keepdims: bool = False,
        unbiased: bool | None = None,
    ) -> tuple[Self, Self]:
        """The variance and the mean.

        >>> [x.item() for x in Tensor([1.0, 3.0]).var_mean()]
        [2.0, 2.0]
        """
        if isinstance(axis, bool):  # PyTorch's form without axes
            axis, unbiased = None, axis
        axes = self._axes("var_mean", axis, dim)
        _, mean, variance = moments(self.uop, axes, correction if unbiased is None else int(unbiased))
        return self._settled_pair(variance, mean, axes, keepdim or keepdims)

    def std_mean(
        self,
        axis: Axes = None,
        keepdim: bool = False,
        correction: float = 1,
        *,
        dim: Axes = None,
        keepdims: bool = False,
        unbiased: bool | None = None,
    ) -> tuple[Self, Self]:
        """The standard deviation and the mean.

        >>> [x.item() for x in Tensor([1.0, 3.0]).std_mean(correction=0)]
        [1.0, 2.0]
        """
        if isinstance(axis, bool):  # PyTorch's form without axes
            axis, unbiased = None, axis
        axes = self._axes("std_mean", axis, dim)
        _, mean, variance = moments(self.uop, axes, correction if unbiased is None else int(unbiased))
        return self._settled_pair(UOp.apply(ops.SQRT, variance), mean, axes, keepdim or keepdims)

    def _settled_pair(self, spread: UOp, mean: UOp, axes: tuple[int, ...], keep: bool) -> tuple[Self, Self]:
        dtype = float_dtype(self.dtype)
        first, second = [self._derived(_settled(node.cast(dtype), axes, keep)) for node in (spread, mean)]
        return first, second

    # --- softmax and relatives ------------------------------------------------------------------------

    def softmax(self, axis: int = -1, dtype: DTypeLike | None = None, *, dim: int | None = None) -> Self:
        """exp(x) over its sum along an axis, without overflow.

        >>> Tensor([1.0, 1.0]).softmax().tolist()
        [0.5, 0.5]
        """
        result, lowered, axes = self._lowered("softmax", dtype, axis if dim is None else dim)
        grown = UOp.apply(ops.EXP, lowered)
        total = reduced(ops.ADD, grown, axes)
        return self._derived((grown * expanded(1 / total, grown.shape)).cast(result))

    def softmin(self, axis: int = -1, dtype: DTypeLike | None = None) -> Self:
        """softmax of the negative.

        >>> Tensor([1.0, 1.0]).softmin().tolist()
        [0.5, 0.5]
        """
        return self._derived(-self._floating()).softmax(axis, dtype)

    def log_softmax(self, axis: int = -1, dtype: DTypeLike | None = None, *, dim: int | None = None) -> Self:
        """The logarithm of softmax, exact also where softmax is zero.

        >>> Tensor([0.0, 1000.0]).log_softmax().tolist()
        [-1000.0, 0.0]
        """
        result, lowered, axes = self._lowered("log_softmax", dtype, axis if dim is None else dim)
        total = reduced(ops.ADD, UOp.apply(ops.EXP, lowered), axes)
        return self._derived((lowered - expanded(UOp.apply(ops.LOG, total), lowered.shape)).cast(result))

    def logsumexp(self, axis: Axes = None, keepdim: bool = False, *, dim: Axes = None, keepdims: bool = False) -> Self:
        """log(sum(exp(x))), without overflow; infinite elements give what they must, and no elements -inf.

        >>> Tensor([1000.0, -1000.0]).logsumexp().item()
        1000.0
        """
        axes, x = self._axes("logsumexp", axis, dim), self.uop.cast(wide_dtype(self.dtype))
        top = detached(reduced(ops.MAX, x, axes))
        finite = (top < math.inf) & (top > -math.inf)
        shift = finite.where(top, UOp.const(top.dtype, 0))
        total = reduced(ops.ADD, UOp.apply(ops.EXP, x - expanded(shift, x.shape)), axes)
        result = (UOp.apply(ops.LOG, total) + shift).cast(float_dtype(self.dtype))
        return self._derived(_settled(result, axes, keepdim or keepdims))

    def _lowered(self, function: str, dtype: DTypeLike | None, axis: int) -> tuple[DType, UOp, tuple[int, ...]]:
        """The type of the result, and the value below its maximum in the wide type."""
        result = float_dtype(self.dtype if dtype is None else as_dtype(function, dtype))
        axes = self._axes(function, axis, None)
        return result, _below_maximum(self.uop.cast(wide_dtype(result)), axes), axes


# --- as nodes: reduced axes keep size 1 ------------------------------------------------------------


def reduced(op: Op, node: UOp, axes: tuple[int, ...]) -> UOp:
    """The reduction; the axes stay with size 1."""
    return UOp(ops.REDUCE, node.dtype, (node,), (op, axes)) if axes else node


def _settled(node: UOp, axes: tuple[int, ...], keep: bool) -> UOp:
    """Without the reduced axes, unless they are kept."""
    if keep or not axes:
        return node
    left = tuple([size for axis, size in enumerate(node.shape) if axis not in axes])
    return UOp(ops.RESHAPE, node.dtype, (node,), left)


def _ones_shaped(node: UOp, rank: int) -> UOp:
    return UOp(ops.RESHAPE, node.dtype, (node,), (1,) * rank)


def sum_dtype(dtype: DType) -> DType:
    """At least 32 bits for integers."""
    if dtype.is_float:
        return dtype
    return dtypes.promote(dtype, dtypes.uint32 if dtype.kind == "uint" else dtypes.int32)


def _count(node: UOp, axes: tuple[int, ...]) -> int:
    return math.prod(node.shape[axis] for axis in axes)


def as_float(count: float, dtype: DType) -> UOp:
    """A number of elements as a constant, or as what varies."""
    return constant(dtype, count if isinstance(count, Size) else float(count))


def _mean(node: UOp, axes: tuple[int, ...]) -> UOp:
    """The mean in the wide type; integers are summed exactly in 64 bits."""
    wide = wide_dtype(node.dtype)
    if not node.dtype.is_float:
        node = node.cast(dtypes.uint64 if node.dtype is dtypes.uint64 else dtypes.int64)
        return reduced(ops.ADD, node, axes).cast(wide) / as_float(_count(node, axes), wide)
    return reduced(ops.ADD, node.cast(wide), axes) / as_float(_count(node, axes), wide)


def moments(node: UOp, axes: tuple[int, ...], correction: float) -> Moments:
    """Deviations, mean and variance in the wide type.

    Everything is measured from the first element of each group, which has no influence on the gradient:
    a large common offset costs no digits, and a constant group has exactly no deviation.
    """
    x = node.cast(wide_dtype(node.dtype))
    if _count(x, axes) == 0:
        nothing = reduced(ops.ADD, x, axes) / 0
        return x, nothing, nothing
    box = tuple([(0, 1 if axis in axes else size) for axis, size in enumerate(x.shape)])
    first = detached(UOp(ops.SHRINK, x.dtype, (x,), box))
    lowered = x - expanded(first, x.shape)
    shift = _mean(lowered, axes)
    deviation = lowered - expanded(shift, x.shape)
    freedom = as_float(max(_count(x, axes) - correction, 0), x.dtype)
    return deviation, first + shift, reduced(ops.ADD, deviation * deviation, axes) / freedom


def _below_maximum(x: UOp, axes: tuple[int, ...]) -> UOp:
    """x minus its maximum along the axes; the shift has no influence on what is made of it."""
    if 0 in x.shape:
        return x
    return x - expanded(detached(reduced(ops.MAX, x, axes)), x.shape)
