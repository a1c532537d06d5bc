"""Arithmetic and the operators of a tensor.

Every method takes a tensor, a Python scalar (weak: it takes the tensor's type) or whatever
`Tensor` can be made from, brings both to their common type and shape, and gives a lazy tensor.
Errors: `ShapeError` where shapes do not broadcast, `DTypeError` where the operation has no meaning
for the type, `OverflowError` where a Python integer does not fit.
"""

from __future__ import annotations

import math
from typing import Any, Self

from lazulite.base.errors import ArgumentError, DTypeError
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import expanded, float_dtype, plain_scalar
from lazulite.tensor.logic import LogicMethods


class MathMethods(LogicMethods):
    """Arithmetic, and every operator."""

    __slots__ = ()

    def add(self, x: Any, reverse: bool = False) -> Self:
        """The sum; `or` of bools.

        >>> Tensor([1, 2]).add(3).tolist()
        [4, 5]
        """
        return self._binary(ops.ADD, "add", x, reverse)

    def sub(self, x: Any, reverse: bool = False) -> Self:
        """The difference; DTypeError for bools.

        >>> (10 - Tensor([1, 2])).tolist()
        [9, 8]
        """
        return self._binary(ops.SUB, "sub", x, reverse)

    def mul(self, x: Any, reverse: bool = False) -> Self:
        """The product; `and` of bools.

        >>> Tensor([1, 2]).mul(3).tolist()
        [3, 6]
        """
        return self._binary(ops.MUL, "mul", x, reverse)

    def div(self, x: Any, reverse: bool = False, rounding_mode: str | None = None) -> Self:
        """The quotient, a float; an integer where `rounding_mode` is "floor" or "trunc" and both are integers.

        >>> Tensor([1, 2]).div(2).tolist()
        [0.5, 1.0]
        >>> Tensor([-7]).div(2, rounding_mode="trunc").tolist()
        [-3]
        """
        if rounding_mode == "floor":
            return self.floordiv(x, reverse)
        if rounding_mode not in (None, "trunc"):
            raise ArgumentError("div", f"rounding_mode is None, 'floor' or 'trunc', not {rounding_mode!r}")
        left, right = self._matched("div", x)
        if reverse:
            left, right = right, left
        if rounding_mode is None or left.dtype.is_float:
            dtype = float_dtype(left.dtype)
            quotient = UOp.apply(ops.DIV, left.cast(dtype), right.cast(dtype))
            return self._derived(UOp.apply(ops.TRUNC, quotient) if rounding_mode else quotient)
        left, right = _number(left), _number(right)
        down = left // right
        inexact = (down * right).ne(left) & (left < 0).ne(right < 0) & right.ne(0)
        return self._derived(down + inexact.cast(down.dtype))

    def floordiv(self, x: Any, reverse: bool = False) -> Self:
        """The quotient rounded down.  For integers x // 0 is 0; floats follow `/`.

        >>> (Tensor([7, -7]) // 2).tolist()
        [3, -4]
        """
        left, right = map(_number, self._matched("floordiv", x))
        if reverse:
            left, right = right, left
        if left.dtype.is_float:
            return self._derived(UOp.apply(ops.FLOOR, left / right))
        return self._derived(left // right)

    def mod(self, x: Any, reverse: bool = False) -> Self:
        """The remainder with the sign of the divisor.  For integers x % 0 is 0, for floats NaN.

        >>> (Tensor([7, -7]) % 4).tolist()
        [3, 1]
        """
        left, right = map(_number, self._matched("mod", x))
        if reverse:
            left, right = right, left
        if not left.dtype.is_float:
            return self._derived(left % right)
        rest = _remainder(left, right)
        below = (rest < 0).ne(right < 0) & rest.ne(0)
        return self._derived(below.where(rest + right, rest))

    def fmod(self, x: Any) -> Self:
        """The remainder with the sign of the dividend; exact, of float64 as long as the quotient is below 2^312.

        >>> Tensor([7.0, -7.0]).fmod(4).tolist()
        [3.0, -3.0]
        """
        left, right = map(_number, self._matched("fmod", x))
        if left.dtype.is_float:
            return self._derived(_remainder(left, right))
        rest = left % right
        above = (rest < 0).ne(left < 0) & rest.ne(0)
        return self._derived(above.where(rest - right, rest))

    def neg(self) -> Self:
        """The negative; unsigned integers wrap, bools raise DTypeError.

        >>> Tensor([1.0, -2.0]).neg().tolist()
        [-1.0, 2.0]
        """
        self._accept(ops.NEG, "neg", self.dtype)
        return self._derived(-self.uop)

    def pow(self, x: Any, reverse: bool = False) -> Self:
        """The power, with the special cases of IEEE 754.

        Integers to an integer power stay integers and wrap; a negative Python exponent raises DTypeError, and
        negative exponents in a tensor give the power rounded towards zero.

        >>> (Tensor([2, 3]) ** 2).tolist()
        [4, 9]
        >>> (Tensor([2.0, 4.0]) ** 0.5).tolist()[1]
        2.0
        """
        exponent = None if reverse else plain_scalar(x)
        if isinstance(exponent, int) and not self.dtype.is_float:
            return self._derived(self._integer_power(int(exponent)))
        base, power = self._matched("pow", x)
        if reverse:
            base, power = power, base
        if base.dtype.is_float:
            return self._derived(_float_power(base, power))
        return self._derived(_power_of_integers(_number(base), _number(power)))

    def _integer_power(self, exponent: int) -> UOp:
        """Repeated squaring."""
        if exponent < 0:
            raise DTypeError(
                "pow", f"integers have no power of {exponent}", about={"base": self}, hint="cast the base to a float"
            )
        square = _number(self.uop)
        result = UOp.const(square.dtype, 1)
        while exponent:
            if exponent & 1:
                result = square if result.is_const(1) else result * square
            exponent >>= 1
            square = square * square if exponent else square
        return expanded(result, self.shape)

    def maximum(self, x: Any) -> Self:
        """The larger of both; NaN where either is NaN.  Equal operands share the gradient.

        >>> Tensor([1.0, 5.0]).maximum(3).tolist()
        [3.0, 5.0]
        """
        return self._binary(ops.MAX, "maximum", x)

    def minimum(self, x: Any) -> Self:
        """The smaller of both; NaN where either is NaN.  Equal operands share the gradient.

        >>> Tensor([1.0, 5.0]).minimum(3).tolist()
        [1.0, 3.0]
        """
        return self._binary(ops.MIN, "minimum", x)

    # --- operators ------------------------------------------------------------------------------

    def __add__(self, x: Any) -> Self:
        return self._binary(ops.ADD, "add", x)

    def __radd__(self, x: Any) -> Self:
        return self._binary(ops.ADD, "add", x, reverse=True)

    def __sub__(self, x: Any) -> Self:
        return self._binary(ops.SUB, "sub", x)

    def __rsub__(self, x: Any) -> Self:
        return self._binary(ops.SUB, "sub", x, reverse=True)

    def __mul__(self, x: Any) -> Self:
        return self._binary(ops.MUL, "mul", x)

    def __rmul__(self, x: Any) -> Self:
        return self._binary(ops.MUL, "mul", x, reverse=True)

    def __truediv__(self, x: Any) -> Self:
        return self.div(x)

    def __rtruediv__(self, x: Any) -> Self:
        return self.div(x, reverse=True)

    def __floordiv__(self, x: Any) -> Self:
        return self.floordiv(x)

    def __rfloordiv__(self, x: Any) -> Self:
        return self.floordiv(x, reverse=True)

    def __mod__(self, x: Any) -> Self:
        return self.mod(x)

    def __rmod__(self, x: Any) -> Self:
        return self.mod(x, reverse=True)

    def __pow__(self, x: Any) -> Self:
        return self.pow(x)

    def __rpow__(self, x: Any) -> Self:
        return self.pow(x, reverse=True)

    def __neg__(self) -> Self:
        return self.neg()

    def __pos__(self) -> Self:
        return self

    # --- in place: the tensor's storage gets the new value, also through a view ------------------

    def __iadd__(self, x: Any) -> Self:
        return self.assign(self.add(x))

    def __isub__(self, x: Any) -> Self:
        return self.assign(self.sub(x))

    def __imul__(self, x: Any) -> Self:
        return self.assign(self.mul(x))

    def __itruediv__(self, x: Any) -> Self:
        return self.assign(self.div(x))

    def __ifloordiv__(self, x: Any) -> Self:
        return self.assign(self.floordiv(x))

    def __imod__(self, x: Any) -> Self:
        return self.assign(self.mod(x))

    def __ipow__(self, x: Any) -> Self:
        return self.assign(self.pow(x))


# --- as nodes ----------------------------------------------------------------------------------


def _number(node: UOp) -> UOp:
    """Bools count as integers."""
    return node.cast(dtypes.default_int) if node.dtype is dtypes.bool else node


_QUOTIENT_BITS, _MOST_STEPS = 52, 6
"""How many bits of a quotient a step of a division takes, and how many steps there are: enough for float32."""


def _steps_of_division(dtype: DType, divisor: UOp) -> int:
    """How many steps take all bits of the largest quotient."""
    known = float(divisor.value) if divisor.op is ops.CONST else 0.0
    smallest = math.frexp(known)[1] - 1 if known and math.isfinite(known) else 1 - dtype.bias - dtype.mantissa_bits
    return min(max(-((smallest - dtype.largest_exponent - 1) // _QUOTIENT_BITS), 1), _MOST_STEPS)


def _remainder(x: UOp, y: UOp) -> UOp:
    """x - trunc(x / y) * y of floats with the sign of x, by long division in float64.

    Each step is exact: what a part of the quotient leaves has no more digits than the divisor.  A part that was
    rounded up leaves a rest of the other sign, which is put right at the end.  Only float64 has quotients of more
    bits than all steps take; their remainder means nothing.
    """
    left, right = x.cast(dtypes.float64), y.cast(dtypes.float64)
    rest = left
    for step in reversed(range(_steps_of_division(x.dtype, y))):
        divisor = right * 2.0 ** (_QUOTIENT_BITS * step)
        turns = UOp.apply(ops.TRUNC, rest / divisor)
        left_over = UOp.apply(ops.FMA, -turns, divisor, rest)
        rest = turns.eq(0).where(rest, left_over)  # no turn of an infinite divisor takes nothing
    negative = left < 0
    beyond = (rest < 0).ne(negative) & rest.ne(0)
    rest = beyond.where(rest + (right < 0).ne(negative).where(-right, right), rest)
    return rest.eq(0).where(left * 0, rest).cast(x.dtype)


_SMALL_POWERS = (1.0, 2.0, 3.0, 4.0, -1.0)


def _float_power(base: UOp, power: UOp) -> UOp:
    """POW, or products where they are at least as exact."""
    exponent = power.value if power.op is ops.CONST else None
    if exponent not in _SMALL_POWERS or base.op is ops.CONST:
        return UOp.apply(ops.POW, base, power)
    if exponent == -1:
        return 1 / base
    square = base if exponent == 1 else base * base
    return square if exponent in (1, 2) else square * (base if exponent == 3 else square)


def _power_of_integers(base: UOp, power: UOp) -> UOp:
    """One square and one choice for each bit of the exponent."""
    dtype = base.dtype
    result, square = UOp.const(dtype, 1), base
    for bit in range(dtype.bits):
        result = (power >> bit & 1).ne(0).where(result * square, result)
        square = square * square
    if dtype.kind == "uint":
        return result
    alternating = (power & 1).ne(0).where(base, UOp.const(dtype, 1))
    truncated = base.eq(-1).where(alternating, base.eq(1).cast(dtype))
    return (power < 0).where(truncated, result)
