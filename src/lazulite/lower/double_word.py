"""Sums and products of floats together with what rounding cut off.

A double word is an unevaluated sum of two floats, the second at most half a unit in the last place of
the first.  Every operation here is exact unless it overflows or its low part underflows.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.uop import UOp
from lazulite.lower.build import bitcast, word

DoubleWord = tuple[UOp, UOp]


def two_sum(x: UOp, y: UOp) -> DoubleWord:
    """x + y and its rounding error."""
    total = x + y
    y_part = total - x
    return total, (x - (total - y_part)) + (y - y_part)


def fast_two_sum(x: UOp, y: UOp) -> DoubleWord:
    """x + y and its rounding error, where |x| is at least |y| or x is 0."""
    total = x + y
    return total, y - (total - x)


def split(x: UOp) -> DoubleWord:
    """Two floats of half the digits whose sum is x; overflows near the largest float."""
    scaled = x * float((1 << (x.dtype.mantissa_bits // 2 + 1)) + 1)
    high = scaled - (scaled - x)
    return high, x - high


def two_product(x: UOp, y: UOp, fused: bool) -> DoubleWord:
    """x * y and its rounding error, by one FMA or by four products of halves."""
    product = x * y
    if fused:
        return product, UOp.apply(ops.FMA, x, y, -product)
    (x_high, x_low), (y_high, y_low) = split(x), split(y)
    return product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def odd_sum(x: UOp, y: UOp) -> UOp:
    """x + y, where it is inexact the neighbouring float with an odd last digit."""
    total, error = two_sum(x, y)
    bits = word(total)
    inexact_even = ((error < 0.0) | (error > 0.0)) & (bits & 1).eq(0)
    outwards = (error < 0.0).eq(total < 0.0)
    return bitcast(inexact_even.where(outwards.where(bits + 1, bits - 1), bits), total.dtype)
