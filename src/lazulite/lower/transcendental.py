"""The exponential, the logarithm, the hyperbolic tangent and the error function, in plain arithmetic.

Takes a node of float32 or float64 (half and bfloat16 were widened before) and gives its value by range
reduction and a polynomial: no tables, no branches, no calls, so it vectorises like any expression.  Errors
are below 2 units in the last place over the whole range, subnormal arguments and results included; the
special values are IEEE's.  `power` and `trigonometry` hold the rest of the family.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.lower.build import Native, Rule, absolute, bitcast, flip_sign, sign_of, signed
from lazulite.lower.coefficients import (
    ERROR_LARGE,
    ERROR_LIMIT,
    ERROR_SMALL,
    EXPONENTIAL,
    LOGARITHM,
    TANGENT_LIMIT,
    TANGENT_SMALL,
)
from lazulite.lower.double_word import two_product
from lazulite.lower.polynomial import Floats, Whole, floats

LOG2_E = 1.4426950408889634
# Each constant in two parts.  The first of log(2) has few enough digits that its product with any
# exponent is exact; the others are the nearest float and the rest.
LN2_EXACT: dict[DType, tuple[float, float]] = {
    dtypes.float32: (0.693359375, -0.00021219444170128554),
    dtypes.float64: (0.693147180559663, 2.8235290563031577e-13),
}
_LN2 = {dtypes.float32: (0.6931471824645996, -1.9046542121259336e-09),
        dtypes.float64: (0.6931471805599453, 2.3190468138462996e-17)}  # fmt: skip
_LOG2_E = {dtypes.float32: (1.4426950216293335, 1.925963033500011e-08),
           dtypes.float64: (LOG2_E, 2.0355273740931033e-17)}  # fmt: skip


def _least_exponent(dtype: DType) -> int:
    """The power of two of the smallest normal number."""
    return 2 - (1 << (dtype.exponent_bits - 1))


# --- exponentials ------------------------------------------------------------------------------


def exp(f: Floats, x: UOp) -> UOp:
    """e**x = 2**k * e**r with |r| <= log(2) / 2."""
    low = (_least_exponent(f.dtype) - f.dtype.mantissa_bits - 2) * math.log(2)
    high = (1 << (f.dtype.exponent_bits - 1)) * math.log(2) + 1
    vanishes, x = _without_underflow(x, low)
    exponent, r = reduced_exponential(f, (x > high).where(f.const(high), x))
    return vanishes.where(f.const(0.0), f.scaled(exponential(f, r), exponent))


def _without_underflow(x: UOp, low: float) -> tuple[UOp, UOp]:
    """Whether the power of x is zero, and x with 0 where it is: a product that underflows takes ten times as long,
    and masked scores, whose exponentials vanish, are common."""
    vanishes = x < low
    return vanishes, vanishes.where(UOp.const(x.dtype, 0.0), x)


def exp2(f: Floats, x: UOp) -> UOp:
    """2**x = 2**k * e**r; the fraction of x is exact, r is its product with log(2) in two parts."""
    vanishes, x = _without_underflow(x, _least_exponent(f.dtype) - f.dtype.mantissa_bits - 2.0)
    greatest = (1 << (f.dtype.exponent_bits - 1)) + 1.0
    x = (x > greatest).where(f.const(greatest), x)
    exponent = f.rounded(x)
    fraction = x - exponent.value
    high, rest = _LN2[f.dtype]
    r = f.multiply_add(fraction, high, fraction * rest)
    return vanishes.where(f.const(0.0), f.scaled(exponential(f, r), exponent))


def reduced_exponential(f: Floats, x: UOp) -> tuple[Whole, UOp]:
    """k and r with x = k * log(2) + r, k an integer."""
    exponent = f.rounded(x, LOG2_E)
    high, rest = LN2_EXACT[f.dtype]
    return exponent, f.multiply_add(exponent.value, -rest, f.multiply_add(exponent.value, -high, x))


def exponential(f: Floats, r: UOp) -> UOp:
    """e**r for |r| <= log(2) / 2."""
    return f.polynomial(r, (1.0, 1.0, *EXPONENTIAL[f.dtype]))


def tanh(f: Floats, x: UOp) -> UOp:
    """A polynomial for small |x|; 1 - 2 / (e**(2 |x|) + 1) for large, up to where it rounds to 1."""
    size = absolute(x)
    square = size * size
    small = f.multiply_add(size * square, f.polynomial(square, TANGENT_SMALL[f.dtype]), size)
    doubled = (size > 20.0).where(f.const(40.0), size + size)
    exponent, r = reduced_exponential(f, doubled)
    power = f.scaled(exponential(f, r), exponent, normal=True)
    large = 1.0 - f.const(2.0) / (power + 1.0)
    return flip_sign((size < TANGENT_LIMIT).where(small, large), sign_of(x))


def erf(f: Floats, x: UOp) -> UOp:
    """A polynomial for small |x|, 1 - e**(another one) for large."""
    size = absolute(x)
    small = f.multiply_add(size, f.polynomial(size * size, ERROR_SMALL[f.dtype]), size)
    limit = 4.0 if f.dtype is dtypes.float32 else 6.0
    near = (size > limit).where(f.const(limit), size)
    power = f.polynomial(near, ERROR_LARGE[f.dtype])
    if f.dtype is dtypes.float64:
        power = power - near * near
    exponent, r = reduced_exponential(f, power)
    large = 1.0 - f.scaled(exponential(f, r), exponent, normal=True)
    return flip_sign((size < ERROR_LIMIT).where(small, large), sign_of(x))


# --- logarithms --------------------------------------------------------------------------------


def log(f: Floats, x: UOp) -> UOp:
    """k * log(2) + log(m) with x = 2**k * m."""
    exponent, fraction = split_exponent(f, x)
    high, low = LN2_EXACT[f.dtype]
    rest = f.multiply_add(exponent, low, _log_rest(f, fraction))
    return _of_positive(x, f.multiply_add(exponent, high, fraction + rest))


def log2(f: Floats, x: UOp) -> UOp:
    """k + log2(m) with x = 2**k * m."""
    exponent, fraction = split_exponent(f, x)
    high, low = _LOG2_E[f.dtype]
    rest = f.multiply_add(_log_rest(f, fraction), high, fraction * low)
    if f.fused:
        return _of_positive(x, exponent + f.multiply_add(fraction, high, rest))
    product, error = two_product(fraction, f.const(high), fused=False)
    return _of_positive(x, exponent + (product + (rest + error)))


def split_exponent(f: Floats, x: UOp) -> tuple[UOp, UOp]:
    """k as a float and m - 1, which is exact, with x = 2**k * m and m from sqrt(1/2) to sqrt(2); x > 0."""
    lift = f.dtype.mantissa_bits
    subnormal = x < 2.0 ** _least_exponent(f.dtype)
    exponent, rest = split_normal(f, subnormal.where(x * 2.0**lift, x))
    return subnormal.where(exponent - float(lift), exponent), rest


def split_normal(f: Floats, x: UOp) -> tuple[UOp, UOp]:
    """The same for an x that is not subnormal."""
    dtype, point = f.dtype, f.dtype.mantissa_bits
    bits = bitcast(x, signed(dtype))
    exponent = (bits - dtype.to_bits(dtype.round(math.sqrt(0.5)))) >> point
    return exponent.cast(dtype), bitcast(bits - (exponent << point), dtype) - 1.0


def _log_rest(f: Floats, x: UOp) -> UOp:
    """log(1 + x) - x for 1 + x from sqrt(1/2) to sqrt(2)."""
    square, coefficients = x * x, LOGARITHM[f.dtype]
    half = square * 0.5
    if f.dtype is dtypes.float32:
        return f.multiply_add(square * x, f.polynomial(x, coefficients), -half)
    s = x / (x + 2.0)
    tail = f.multiply_add(s * s, f.polynomial(s * s, coefficients), half)
    return f.multiply_add(s, tail, -half)


def _of_positive(x: UOp, value: UOp) -> UOp:
    """The value where 0 < x < inf; -inf at zero, NaN below, inf and NaN as they are."""
    infinity = UOp.const(x.dtype, math.inf)
    special = x.eq(0.0).where(-infinity, (x < 0.0).where(UOp.const(x.dtype, math.nan), x))
    return ((x > 0.0) & (x < infinity)).where(value, special)


def _rule(function: Callable[[Floats, UOp], UOp]) -> Rule:
    def expand(node: UOp, native: Native) -> UOp:
        return function(floats(node.dtype, native), node.src[0])

    return expand


RULES: dict[Op, Rule] = {
    ops.EXP: _rule(exp),
    ops.EXP2: _rule(exp2),
    ops.LOG: _rule(log),
    ops.LOG2: _rule(log2),
    ops.TANH: _rule(tanh),
    ops.ERF: _rule(erf),
}
