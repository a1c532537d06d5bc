"""x to the power y: 2**(y * log2 |x|), then the signs and special cases of IEEE 754.

The logarithm's error is multiplied by up to 150 in float32 and 1074 in float64, so it is computed with
as many more digits: for float32 in float64, for float64 as a double word.
"""

from __future__ import annotations

import math

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.lower.build import Native, Rule, absolute, flip_sign, is_nan, sign_of
from lazulite.lower.coefficients import POWER_EXPONENTIAL, POWER_LOGARITHM, POWER_TAIL
from lazulite.lower.double_word import DoubleWord, fast_two_sum, two_product
from lazulite.lower.polynomial import Floats, clamped, floats
from lazulite.lower.transcendental import exponential, split_exponent, split_normal

# 2 / log(2), 2 / (3 log(2)) and 2 / (5 log(2)), the first coefficients of log2 in (m - 1) / (m + 1), as double words.
_SERIES = (
    (2.8853900817779268, 4.0710547481862066e-17),
    (0.9617966939259756, 5.0577616648125907e-17),
    (0.5770780163555853, 5.2551030481378675e-17),
)
_LN2 = (0.6931471805599453, 2.3190468138462996e-17)


def power(node: UOp, native: Native) -> UOp:
    """x ** y."""
    x, y = node.src
    f = floats(node.dtype, native)
    size = absolute(x)
    if node.dtype is dtypes.float32:
        # Larger exponents give 0, 1 or infinity all the same, and an infinite one would make 0 * inf.
        near = clamped(y, -(2.0**40), 2.0**40)
        value = _in_double(f.double(), size, near)
    else:
        value = _in_double_words(f, size, clamped(y, -(2.0**70), 2.0**70))
    return _special_cases(x, y, size, value)


def _special_cases(x: UOp, y: UOp, size: UOp, value: UOp) -> UOp:
    """The power from that of |x|, which is right for finite |x| above 0."""
    infinity, nan, one = (UOp.const(x.dtype, v) for v in (math.inf, math.nan, 1.0))
    at_zero = size.eq(0.0)
    extreme = at_zero.eq(y < 0.0).where(infinity, 0.0)
    value = (at_zero | size.eq(infinity)).where(extreme, value)
    whole, half = y.eq(UOp.apply(ops.FLOOR, y)), y * 0.5
    odd = whole & half.ne(UOp.apply(ops.FLOOR, half))
    sign = sign_of(x)
    value = flip_sign(value, odd.where(sign, 0))
    invalid = ((x < 0.0) & size.ne(infinity) & ~whole) | is_nan(x) | is_nan(y)
    return (x.eq(1.0) | y.eq(0.0)).where(one, invalid.where(nan, value))


def _in_double(f: Floats, size: UOp, y: UOp) -> UOp:
    """size**y of float32 numbers."""
    exponent, fraction = split_normal(f, size.cast(f.dtype))
    s = fraction / (fraction + 2.0)
    logarithm = f.multiply_add(s, f.polynomial(s * s, POWER_LOGARITHM), exponent)
    product = clamped(y.cast(f.dtype) * logarithm, -200.0, 200.0)
    whole = f.rounded(product)
    fraction = f.polynomial(product - whole.value, POWER_EXPONENTIAL)
    return f.scaled(fraction, whole, normal=True).cast(dtypes.float32)


def _in_double_words(f: Floats, size: UOp, y: UOp) -> UOp:
    """size**y of float64 numbers."""
    high, low = _log2(f, size)
    product, error = two_product(y, high, f.fused)
    near = clamped(product, -1100.0, 1100.0)
    whole = f.rounded(near)
    fraction = near - whole.value
    rest = near.eq(product).where(f.multiply_add(y, low, error), 0.0)
    r = f.multiply_add(fraction, _LN2[0], f.multiply_add(fraction, _LN2[1], rest * _LN2[0]))
    return f.scaled(exponential(f, r), whole)


def _log2(f: Floats, size: UOp) -> DoubleWord:
    """log2 with about 70 digits: the first three terms of the series as double words, the tail as a double."""
    exponent, fraction = split_exponent(f, size)
    s = _quotient(f, fraction, fast_two_sum(f.const(2.0), fraction))
    square = _product(f, s, s)
    tail = square[0] * f.polynomial(square[0], POWER_TAIL)
    series = fast_two_sum(f.const(_SERIES[2][0]), tail)
    series = (series[0], series[1] + _SERIES[2][1])
    for high, low in (_SERIES[1], _SERIES[0]):
        series = _product(f, square, series)
        total, cut = fast_two_sum(f.const(high), series[0])
        series = (total, cut + (series[1] + low))
    logarithm = _product(f, s, series)
    total, cut = fast_two_sum(exponent, logarithm[0])
    return total, cut + logarithm[1]


def _product(f: Floats, x: DoubleWord, y: DoubleWord) -> DoubleWord:
    high, low = two_product(x[0], y[0], f.fused)
    return fast_two_sum(high, low + (x[0] * y[1] + x[1] * y[0]))


def _quotient(f: Floats, x: UOp, y: DoubleWord) -> DoubleWord:
    """x / y: the rounded quotient, and what its product with y leaves of x."""
    quotient = x / y[0]
    product, error = two_product(quotient, y[0], f.fused)
    return quotient, (((x - product) - error) - quotient * y[1]) / y[0]


RULES: dict[Op, Rule] = {ops.POW: power}
