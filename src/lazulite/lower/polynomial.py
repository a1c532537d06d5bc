"""Float arithmetic for the elementary functions: multiply-adds, polynomials, powers of two.

`Floats` is one float type of one target: it knows whether a multiply-add is one instruction.  Where it
is not, polynomials use a product and a sum; nothing here relies on the single rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.lower.build import Native, bitcast, round_constant, signed


def _nothing(node: UOp) -> bool:
    return False


@dataclass(frozen=True)
class Whole:
    """An integer as a float, and as the low bits of a word."""

    value: UOp
    word: UOp


@dataclass(frozen=True)
class Floats:
    """A float type, whether its multiply-add is an instruction, and what else is."""

    dtype: DType
    fused: bool
    native: Native = _nothing

    def double(self) -> Floats:
        """float64 on the same target; processors have the multiply-add for both types or for none."""
        return Floats(dtypes.float64, self.fused, self.native)

    def const(self, value: float) -> UOp:
        return UOp.const(self.dtype, value)

    def _operand(self, value: UOp | float) -> UOp:
        return value if isinstance(value, UOp) else self.const(value)

    def multiply_add(self, x: UOp, y: UOp | float, z: UOp | float) -> UOp:
        """x * y + z, rounded once or twice."""
        y, z = self._operand(y), self._operand(z)
        return UOp.apply(ops.FMA, x, y, z) if self.fused else x * y + z

    def polynomial(self, x: UOp, coefficients: Sequence[float]) -> UOp:
        """The sum of coefficient k times x**k, by Horner's rule."""
        total = self.const(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = self.multiply_add(x, total, coefficient)
        return total

    def rounded(self, x: UOp, factor: float = 1.0) -> Whole:
        """x * factor as the nearest integer.

        The product must lie below a quarter of the mantissa's range.
        """
        magic = round_constant(self.dtype)
        shifted = x + magic if factor == 1.0 else self.multiply_add(x, factor, magic)
        return Whole(shifted - magic, bitcast(shifted, signed(self.dtype)))

    def power_of_two(self, exponent: UOp) -> UOp:
        """2**exponent of an integer as wide as the float, in the range of normal numbers.

        Bits above the exponent's are shifted out, so the exponent may be the word that `rounded` gives.
        """
        point = self.dtype.mantissa_bits
        return bitcast((exponent + ((1 << (self.dtype.exponent_bits - 1)) - 1)) << point, self.dtype)

    def scaled(self, x: UOp, exponent: Whole, *, normal: bool = False) -> UOp:
        """x * 2**exponent for an x around 1; `normal` promises that the power of two is a normal number.

        Without an instruction it takes two steps where one factor could not be written, with one rounding at
        most; halving the word halves the integer in its low bits.
        """
        node = UOp.apply(ops.SCALEB, x, exponent.value)
        if self.native(node):
            return node
        if normal:
            return x * self.power_of_two(exponent.word)
        half = exponent.word >> 1
        return x * self.power_of_two(half) * self.power_of_two(exponent.word - half)


def floats(dtype: DType, native: Native) -> Floats:
    """The arithmetic of a type on the target that `native` describes."""
    one = UOp.const(dtype, 1.0)
    return Floats(dtype, native(UOp(ops.FMA, dtype, (one, one, one))), native)


def clamped(x: UOp, low: float, high: float) -> UOp:
    """x kept between two numbers; NaN stays NaN."""
    x = (x < low).where(UOp.const(x.dtype, low), x)
    return (x > high).where(UOp.const(x.dtype, high), x)
