"""Functions of two values beyond arithmetic: angles, lengths, neighbours, common divisors.

Operands meet as in `tensor.math`.  Float functions compute in float64 and round once, so results are right to
the last place of narrower types.  Definitions and special values are those of IEEE 754 and C, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import Any, Self

from lazulite.base.errors import DTypeError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import expanded, float_dtype
from lazulite.tensor.inverse import InverseMethods, arctangent

UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


class PairMethods(InverseMethods):
    """Functions of two values."""

    __slots__ = ()

    def _two(self, function: str, other: Any) -> tuple[UOp, UOp]:
        """Both operands in the type of a result that is a float."""
        left, right = self._matched(function, other)
        dtype = float_dtype(left.dtype)
        return left.cast(dtype), right.cast(dtype)

    def _integers(self, function: str, other: Any) -> tuple[UOp, UOp]:
        left, right = self._matched(function, other)
        if not left.dtype.is_int:
            raise DTypeError(function, f"takes integers, not {left.dtype.name}", about={"operand": self})
        return left, right

    # --- angles and lengths ---------------------------------------------------------------------------

    def atan2(self, other: Any) -> Self:
        """The angle from -pi to pi of the point (x=`other`, y=this), zeros keeping their sign.

        >>> round(Tensor([1.0]).atan2(-1.0).item(), 6)
        2.356194
        """
        left, right = self._two("atan2", other)
        return self._derived(_angle(left.cast(dtypes.float64), right.cast(dtypes.float64)).cast(left.dtype))

    def hypot(self, other: Any) -> Self:
        """sqrt(x^2 + y^2) without overflow on the way; infinite if either is.

        >>> Tensor([3.0]).hypot(4.0).item()
        5.0
        """
        left, right = self._two("hypot", other)
        x, y = _size(left.cast(dtypes.float64)), _size(right.cast(dtypes.float64))
        if left.dtype is not dtypes.float64:
            length = UOp.apply(ops.SQRT, x * x + y * y)
        else:
            high, low = UOp.apply(ops.MAX, x, y), UOp.apply(ops.MIN, x, y)
            plain = high.eq(0) | high.eq(low)
            ratio = plain.where(UOp.const(x.dtype, 0), low / plain.where(UOp.const(x.dtype, 1), high))
            length = high.eq(low).where(high * math.sqrt(2), high * UOp.apply(ops.SQRT, ratio * ratio + 1))
        infinite = x.eq(math.inf) | y.eq(math.inf)
        return self._derived(infinite.where(UOp.const(x.dtype, math.inf), length).cast(left.dtype))

    # --- quotients and powers -------------------------------------------------------------------------

    def float_power(self, exponent: Any) -> Self:
        """The power, computed and given in float64.

        >>> Tensor([2, 3]).float_power(2).tolist()
        [4.0, 9.0]
        """
        left, right = self._matched("float_power", exponent)
        return self._derived(left.cast(dtypes.float64)).pow(self._derived(right.cast(dtypes.float64)))

    def xlogy(self, other: Any) -> Self:
        """x log(y); 0 where x is 0, unless y is NaN.

        >>> Tensor([0.0, 2.0]).xlogy(Tensor([0.0, 1.0])).tolist()
        [0.0, 0.0]
        """
        x, y = self._two("xlogy", other)
        nothing = x.eq(0) & y.eq(y)
        product = x * UOp.apply(ops.LOG, nothing.where(UOp.const(y.dtype, 1), y))
        return self._derived(nothing.where(UOp.const(x.dtype, 0), product))

    def logaddexp2(self, other: Any) -> Self:
        """log2(2**x + 2**y), without overflow.

        >>> Tensor([1000.0]).logaddexp2(1000.0).item()
        1001.0
        """
        x, y = self._two("logaddexp2", other)
        high, low = (x < y).where(y, x), (x < y).where(x, y)
        gap = high.eq(low).where(UOp.const(x.dtype, 0), low - high).cast(dtypes.float64)
        grown = UOp.apply(ops.LOG2, UOp.apply(ops.EXP2, gap) + 1)
        return self._derived((high.cast(dtypes.float64) + grown).cast(x.dtype))

    def ldexp(self, other: Any) -> Self:
        """x * 2**n for integers n, rounded once.

        >>> Tensor([0.5, 3.0]).ldexp(Tensor([3, -1])).tolist()
        [4.0, 1.5]
        """
        left, right = self._two("ldexp", other)
        x, n = left.cast(dtypes.float64), right.cast(dtypes.float64)
        low = UOp.apply(ops.FLOOR, n / 2)  # in two steps, so that no factor leaves the range of float64
        grown = x * UOp.apply(ops.EXP2, low) * UOp.apply(ops.EXP2, n - low)
        return self._derived((x.eq(0) | x.ne(x)).where(x, grown).cast(left.dtype))

    # --- choice ---------------------------------------------------------------------------------------

    def fmax(self, other: Any) -> Self:
        """The larger of both; a number beside a NaN.

        >>> Tensor([1.0, float("nan")]).fmax(Tensor([2.0, 3.0])).tolist()
        [2.0, 3.0]
        """
        left, right = self._matched("fmax", other)
        return self._derived(_number_of(left, right, UOp.apply(ops.MAX, left, right)))

    def fmin(self, other: Any) -> Self:
        """The smaller of both; a number beside a NaN.

        >>> Tensor([1.0, float("nan")]).fmin(Tensor([2.0, 3.0])).tolist()
        [1.0, 3.0]
        """
        left, right = self._matched("fmin", other)
        return self._derived(_number_of(left, right, UOp.apply(ops.MIN, left, right)))

    def heaviside(self, values: Any) -> Self:
        """0 below zero, 1 above, and `values` at zero; NaN stays.

        >>> Tensor([-1.0, 0.0, 2.0]).heaviside(0.5).tolist()
        [0.0, 0.5, 1.0]
        """
        x, at_zero = self._matched("heaviside", values)
        step = (x > 0).where(UOp.const(x.dtype, 1), UOp.const(x.dtype, 0))
        known = x.eq(0).where(at_zero, step)
        return self._derived(x.ne(x).where(x, known) if x.dtype.is_float else known)

    def logical_xor(self, x: Any) -> Self:
        """Where exactly one is not zero.

        >>> Tensor([0, 2]).logical_xor(1).tolist()
        [True, False]
        """
        left, right = self._matched("logical_xor", x)
        return self._derived(left.cast(dtypes.bool).ne(right.cast(dtypes.bool)))

    # --- neighbours and divisors ------------------------------------------------------------------------

    def nextafter(self, other: Any) -> Self:
        """The next value of the type on the way to the other; the other where both are equal.

        >>> Tensor([1.0]).nextafter(2.0).item() == 1.0 + 2.0**-23
        True
        """
        x, y = self._matched("nextafter", other)
        if not x.dtype.is_float:
            raise DTypeError("nextafter", f"takes floats, not {x.dtype.name}", about={"operand": self})
        word = UNSIGNED[x.dtype.itemsize]
        sign = UOp.const(word, 1 << (x.dtype.bits - 1))
        bits = UOp(ops.BITCAST, word, (expanded(x, y.shape) if x.shape == () else x,))
        outwards = (x < y).eq(x > 0)
        stepped = outwards.where(bits + 1, bits - 1)
        from_zero = (y > 0).where(UOp.const(word, 1), sign + 1)
        moved = UOp(ops.BITCAST, x.dtype, (expanded(x.eq(0).where(from_zero, stepped), bits.shape),))
        lost = x.ne(x) | y.ne(y)
        return self._derived(lost.where(x + y, x.eq(y).where(y, moved)))

    def gcd(self, other: Any) -> Self:
        """The greatest common divisor of integers, not negative; gcd(0, 0) is 0.

        >>> Tensor([12, 0]).gcd(Tensor([18, 5])).tolist()
        [6, 5]
        """
        return self._derived(_common_divisor(*self._integers("gcd", other)))

    def lcm(self, other: Any) -> Self:
        """The least common multiple of integers, not negative; 0 if either is 0.  Overflow wraps.

        >>> Tensor([4, 0]).lcm(Tensor([6, 5])).tolist()
        [12, 0]
        """
        x, y = self._integers("lcm", other)
        divisor = _common_divisor(x, y)
        return self._derived(_size(x // divisor * y))


# --- as nodes ------------------------------------------------------------------------------------


def _size(x: UOp) -> UOp:
    return x.maximum(-x) if x.dtype.kind != "uint" else x


def _number_of(x: UOp, y: UOp, chosen: UOp) -> UOp:
    """What was chosen, or the operand beside a NaN."""
    return x.ne(x).where(y, y.ne(y).where(x, chosen)) if x.dtype.is_float else chosen


def _angle(y: UOp, x: UOp) -> UOp:
    """The angle of a point, from the arctangent of the smaller over the larger coordinate."""
    across, along = _size(y), _size(x)
    steep = across > along
    low, high = steep.where(along, across), steep.where(across, along)
    diagonal = low.eq(high) & high.ne(0)
    plain = high.eq(0) | high.eq(math.inf)
    one = UOp.const(x.dtype, 1)
    ratio = plain.where(UOp.const(x.dtype, 0), low / plain.where(one, high))
    first = arctangent(ratio)
    first = (diagonal & high.eq(math.inf)).where(UOp.const(x.dtype, math.pi / 4), first)
    first = steep.where(math.pi / 2 - first, first)
    left = (x < 0) | (x.eq(0) & (one / x < 0))
    angle = left.where(math.pi - first, first)
    below = (y < 0) | (y.eq(0) & (one / y < 0))
    lost = x.ne(x) | y.ne(y)
    return lost.where(x + y, below.where(-angle, angle))


def _common_divisor(x: UOp, y: UOp) -> UOp:
    """Euclid's algorithm: as many steps as two Fibonacci numbers of this width take; no divisor is zero."""
    dtype = x.dtype
    larger, smaller = [_size(node).cast(UNSIGNED[dtype.itemsize]) for node in (x, y)]
    for _ in range(math.ceil(dtype.bits * math.log(2) / math.log((1 + math.sqrt(5)) / 2)) + 1):
        ended = smaller.eq(0)
        larger, smaller = ended.where(larger, smaller), larger % UOp.apply(ops.MAX, smaller, UOp.const(larger.dtype, 1))
    return larger.cast(dtype)
