"""The multiply-add of float64 with one rounding, without an FMA instruction and without a library.

The factors are brought to [1, 2) and the addend to the product's scale (an addend so far away that only
its presence matters is moved nearer), where nothing can overflow or underflow.  There the exact sum
is three floats; all but the first are added with rounding to odd, so one rounding is left.  A result that
will be subnormal gets it at its own last place, by adding and subtracting a power of two that has its
last digit there (Boldo and Melquiond 2008, "Emulation of FMA and correctly rounded sums").
"""

from __future__ import annotations

from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.lower.build import absolute, bitcast, flip_sign, sign_of, word
from lazulite.lower.double_word import odd_sum, two_product, two_sum

_FAR = 130
"""Beyond this many binary places the smaller of product and addend is less than any rounding error."""
_BIAS, _POINT, _LEAST = 1023, 52, -1022


def fused_double(x: UOp, y: UOp, z: UOp) -> UOp:
    """x * y + z rounded once, for every double."""
    (x_part, x_scale), (y_part, y_scale), (z_part, z_scale) = _normalised(x), _normalised(y), _normalised(z)
    distance = z_scale - (x_scale + y_scale)
    near = distance.maximum(-_FAR).minimum(_FAR)
    scale = (distance > _FAR).where(z_scale - _FAR, x_scale + y_scale)
    leading, rest = _exact_sum(x_part, y_part, z_part * _power_of_two(near))
    value = _rounded(leading, rest, (_LEAST - scale).minimum(200))
    return _unless_special(x, y, z, _scaled(value, scale))


def _normalised(x: UOp) -> tuple[UOp, UOp]:
    """x as a float in [1, 2), with its sign, times a power of two."""
    small = absolute(x) < 2.0**_LEAST
    bits = word(small.where(x * 2.0**54, x))
    exponent = bitcast((bits >> _POINT) & 0x7FF, dtypes.int64)
    scale = exponent - small.where(UOp.const(dtypes.int64, _BIAS + 54), _BIAS)
    part = (bits & ~(0x7FF << _POINT)) | (_BIAS << _POINT)
    return bitcast(part, dtypes.float64), scale


def _power_of_two(exponent: UOp) -> UOp:
    """2**exponent of an int64 in the range of normal doubles."""
    return bitcast((exponent + _BIAS) << _POINT, dtypes.float64)


def _exact_sum(x: UOp, y: UOp, z: UOp) -> tuple[UOp, UOp]:
    """x * y + z as a leading float and the rest, which is rounded to odd."""
    product, error = two_product(x, y, fused=False)
    middle, low = two_sum(z, error)
    leading, high_rest = two_sum(product, middle)
    return leading, odd_sum(low, high_rest)


def _rounded(leading: UOp, rest: UOp, least: UOp) -> UOp:
    """leading + rest rounded to a float, or to a multiple of 2**(least - 52) where it is below 2**least."""
    wall = _power_of_two(least.maximum(_LEAST)) * 1.5
    wall = (absolute(leading) < wall * (2.0 / 3.0)).where(wall, 0.0)
    top, cut = two_sum(wall, leading)
    value = (top + odd_sum(cut, rest)) - wall
    exact = leading + rest
    vanished = value.eq(0.0) & exact.ne(0.0)
    return vanished.where(flip_sign(UOp.const(dtypes.float64, 0.0), sign_of(exact)), value)


def _scaled(x: UOp, scale: UOp) -> UOp:
    """x * 2**scale in four steps, none of which leaves the range before the result does."""
    quarter = scale.maximum(-2400).minimum(2400) >> 2
    rest = scale.maximum(-2400).minimum(2400) - quarter * 3
    step = _power_of_two(quarter)
    return x * step * step * step * _power_of_two(rest)


def _unless_special(x: UOp, y: UOp, z: UOp, value: UOp) -> UOp:
    """The value where all operands are finite and none is zero; else what one plain step gives."""
    product = x * y
    nothing = x.eq(0.0) | y.eq(0.0)
    finite = (absolute(x) < float("inf")) & (absolute(y) < float("inf")) & (absolute(z) < float("inf"))
    plain = (z.eq(0.0) & ~nothing & finite).where(product, product + z)
    return (finite & z.ne(0.0) & ~nothing).where(value, plain)
