"""Functions of one value each: roots, exponentials, trigonometry, rounding, and tests for special values.

Functions whose result is no integer take integers and bools as floats of the default type.
"""

from __future__ import annotations

import math
from typing import Any, Self

from lazulite.base.errors import ArgumentError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.tensor.base import detached, expanded
from lazulite.tensor.math import MathMethods


class FunctionMethods(MathMethods):
    """Elementwise functions."""

    __slots__ = ()

    def _function(self, op: Op) -> Self:
        return self._derived(UOp.apply(op, self._floating()))

    def _rounding(self, op: Op) -> Self:
        return self._function(op) if self.dtype.is_float else self._derived(self.uop)

    # --- roots, exponentials, logarithms ----------------------------------------------------------

    def sqrt(self) -> Self:
        """The square root, correctly rounded; NaN below zero.

        >>> Tensor([4.0, 9.0]).sqrt().tolist()
        [2.0, 3.0]
        """
        return self._function(ops.SQRT)

    def rsqrt(self) -> Self:
        """One over the square root.

        >>> Tensor([4.0]).rsqrt().tolist()
        [0.5]
        """
        return self._derived(1 / UOp.apply(ops.SQRT, self._floating()))

    def reciprocal(self) -> Self:
        """One over the value.

        >>> Tensor([4.0]).reciprocal().tolist()
        [0.25]
        """
        return self._derived(1 / self._floating())

    def square(self) -> Self:
        """The value times itself.

        >>> Tensor([3, -4]).square().tolist()
        [9, 16]
        """
        return self * self

    def exp(self) -> Self:
        """e to the power of the value.

        >>> Tensor([0.0]).exp().tolist()
        [1.0]
        """
        return self._function(ops.EXP)

    def exp2(self) -> Self:
        """2 to the power of the value.

        >>> Tensor([3.0]).exp2().tolist()
        [8.0]
        """
        return self._function(ops.EXP2)

    def log(self) -> Self:
        """The natural logarithm; -inf at zero, NaN below.

        >>> Tensor([1.0]).log().tolist()
        [0.0]
        """
        return self._function(ops.LOG)

    def log2(self) -> Self:
        """The logarithm to base 2.

        >>> Tensor([8.0]).log2().tolist()
        [3.0]
        """
        return self._function(ops.LOG2)

    def log10(self) -> Self:
        """The logarithm to base 10.

        >>> round(Tensor([1000.0]).log10().item(), 5)
        3.0
        """
        return self._derived(UOp.apply(ops.LOG2, self._floating()) * math.log10(2))

    def logaddexp(self, other: Any) -> Self:
        """log(exp(self) + exp(other)), without overflow.

        >>> Tensor([1000.0]).logaddexp(-1000.0).tolist()
        [1000.0]
        """
        left, right = self._matched("logaddexp", other)
        x, y = self._derived(left)._floating(), self._derived(right)._floating()
        high, low = (x < y).where(y, x), (x < y).where(x, y)
        gap = high.eq(low).where(UOp.const(x.dtype, 0), low - high)  # two equal infinities have no difference
        return self._derived(high + log1p_of_fraction(UOp.apply(ops.EXP, gap)))

    # --- trigonometry and hyperbolic functions ----------------------------------------------------

    def sin(self) -> Self:
        """The sine of an angle in radians.

        >>> Tensor([0.0]).sin().tolist()
        [0.0]
        """
        return self._function(ops.SIN)

    def cos(self) -> Self:
        """The cosine of an angle in radians.

        >>> Tensor([0.0]).cos().tolist()
        [1.0]
        """
        return self._function(ops.COS)

    def tan(self) -> Self:
        """The tangent of an angle in radians.

        >>> Tensor([0.0]).tan().tolist()
        [0.0]
        """
        return self._function(ops.TAN)

    def tanh(self) -> Self:
        """The hyperbolic tangent.

        >>> Tensor([0.0]).tanh().tolist()
        [0.0]
        """
        return self._function(ops.TANH)

    def erf(self) -> Self:
        """The error function.

        >>> Tensor([0.0]).erf().tolist()
        [0.0]
        """
        return self._function(ops.ERF)

    # --- sign and rounding --------------------------------------------------------------------------

    def abs(self) -> Self:
        """The absolute value; the smallest integer of a type stays what it is.

        >>> Tensor([-1.5, 2.0]).abs().tolist()
        [1.5, 2.0]
        """
        x = self.uop
        return self._derived(x.maximum(-x) if x.dtype.kind in ("int", "float") else x)

    def __abs__(self) -> Self:
        return self.abs()

    def sign(self) -> Self:
        """-1, 0 or 1; a zero keeps its sign, NaN stays NaN.

        >>> Tensor([-3.0, 0.0, 2.0]).sign().tolist()
        [-1.0, 0.0, 1.0]
        """
        x = self.uop
        if x.dtype is dtypes.bool:
            return self._derived(x)
        rest = UOp.apply(ops.FLOOR, x) if x.dtype.is_float else x  # 0, -0 or NaN, and flat
        below = (x < 0).where(UOp.const(x.dtype, -1), rest) if x.dtype.kind != "uint" else rest
        return self._derived((x > 0).where(UOp.const(x.dtype, 1), below))

    def copysign(self, other: Any) -> Self:
        """This magnitude with the sign of the other, zeros included.

        >>> Tensor([1.0, 2.0]).copysign(-0.0).tolist()
        [-1.0, -2.0]
        """
        left, right = self._matched("copysign", other)
        x, y = self._derived(left)._floating(), self._derived(right)._floating()
        minus = (y < 0) | (y.eq(0) & (1 / y < 0))
        size = x.maximum(-x)
        return self._derived(minus.where(-size, size))

    def floor(self) -> Self:
        """The largest integer not above.

        >>> Tensor([1.5, -1.5]).floor().tolist()
        [1.0, -2.0]
        """
        return self._rounding(ops.FLOOR)

    def ceil(self) -> Self:
        """The smallest integer not below.

        >>> Tensor([1.5, -1.5]).ceil().tolist()
        [2.0, -1.0]
        """
        return -(-self).floor() if self.dtype.is_float else self._derived(self.uop)

    def trunc(self) -> Self:
        """The integer part.

        >>> Tensor([1.5, -1.5]).trunc().tolist()
        [1.0, -1.0]
        """
        return self._rounding(ops.TRUNC)

    def round(self, decimals: int = 0) -> Self:
        """The nearest integer, ties to even (B064), or the nearest multiple of 10**-decimals.

        >>> Tensor([0.5, 1.5, 2.5]).round().tolist()
        [0.0, 2.0, 2.0]
        """
        if not decimals or not self.dtype.is_float:
            return self._rounding(ops.ROUND)
        x, scale = self.uop.cast(dtypes.float64), 10.0 ** abs(decimals)
        rounded = UOp.apply(ops.ROUND, x * scale if decimals > 0 else x / scale)
        scaled = rounded / scale if decimals > 0 else rounded * scale
        finite = (x < math.inf) & (x > -math.inf)
        return self._derived(finite.where(scaled, x).cast(self.dtype))

    def clip(self, min_: Any = None, max_: Any = None) -> Self:
        """The value, but not below `min_` nor above `max_`; NaN stays.  A float bound makes integers floats.

        >>> Tensor([1, 5, 9]).clip(2, 6).tolist()
        [2, 5, 6]
        """
        if min_ is None and max_ is None:
            raise ArgumentError("clip", "give a lower or an upper bound")
        raised: Self = self if min_ is None else self.maximum(min_)
        return raised if max_ is None else raised.minimum(max_)

    def clamp(self, min_: Any = None, max_: Any = None) -> Self:
        """`clip` by its other name.

        >>> Tensor([1, 5, 9]).clamp(max_=6).tolist()
        [1, 5, 6]
        """
        return self.clip(min_, max_)

    def lerp(self, end: Any, weight: Any) -> Self:
        """The value `weight` of the way from this to `end`.

        >>> Tensor([0.0, 10.0]).lerp(Tensor([4.0, 20.0]), 0.5).tolist()
        [2.0, 15.0]
        """
        way = self._tensor("lerp", end) - self
        return self + way.mul(weight)

    # --- special values -----------------------------------------------------------------------------

    def isnan(self) -> Self:
        """Where the value is NaN.

        >>> Tensor([1.0, float("nan")]).isnan().tolist()
        [False, True]
        """
        return self._derived(self.uop.ne(self.uop))

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Self:
        """Where the value is infinite, with a choice of signs.

        >>> Tensor([1.0, float("-inf")]).isinf().tolist()
        [False, True]
        """
        x = self._floating()
        found = UOp.const(dtypes.bool, False)
        for wanted, limit in ((detect_positive, math.inf), (detect_negative, -math.inf)):
            found = found | x.eq(limit) if wanted else found
        return self._derived(expanded(found, x.shape))

    def isfinite(self) -> Self:
        """Where the value is neither infinite nor NaN.

        >>> Tensor([1.0, float("inf"), float("nan")]).isfinite().tolist()
        [True, False, False]
        """
        x = self._floating()
        return self._derived((x < math.inf) & (x > -math.inf))

    def isclose(self, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Self:
        """Where |self - other| <= atol + rtol * |other|; equal infinities are close (B062).

        >>> Tensor([1.0, 2.0]).isclose(1.0).tolist()
        [True, False]
        """
        left, right = self._matched("isclose", other)
        x, y = self._derived(left)._floating(), self._derived(right)._floating()
        gap, size = (x - y).maximum(y - x), y.maximum(-y)
        near = x.eq(y) | ((gap <= size * rtol + atol) & (size < math.inf))
        return self._derived(near | (x.ne(x) & y.ne(y)) if equal_nan else near)

    def allclose(self, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Self:
        """Whether all elements are close in the sense of `isclose`: one bool.

        >>> Tensor([1.0, 2.0]).allclose(Tensor([1.0, 2.0])).item()
        True
        """
        near = self.isclose(other, rtol, atol, equal_nan).uop
        whole = UOp(ops.REDUCE, near.dtype, (near,), (ops.AND, tuple(range(len(near.shape)))))
        return self._derived(UOp(ops.RESHAPE, near.dtype, (whole,), ()))


def expm1(x: UOp) -> UOp:
    """exp(x) - 1 without cancellation: tanh(x/2) (exp(x) + 1)."""
    return UOp.apply(ops.TANH, x * 0.5) * (UOp.apply(ops.EXP, x) + 1)


def log1p_of_fraction(x: UOp) -> UOp:
    """log(1 + x) for x from 0 to 1: what the sum lost is added back, as a constant for the gradient."""
    total = x + 1
    lost = (x - (total - 1)) / total
    return UOp.apply(ops.LOG, total) + detached(lost)
