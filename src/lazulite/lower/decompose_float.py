"""Maximum, minimum, negation and rounding of floats by comparisons and bits.

NaN propagates through maximum and minimum, and 0.0 is larger than -0.0; processors' own instructions
keep neither rule.  Rounding adds and subtracts the number above which floats have no fraction; the sign
is put back so that -0.0 and small negative numbers keep theirs.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.lower.build import Native, Rule, absolute, bitcast, flip_sign, is_nan, sign_bit, sign_of, word
from lazulite.lower.polynomial import clamped, floats


def maximum(node: UOp, native: Native) -> UOp:
    """The larger of x and y."""
    x, y = node.src
    if node.dtype is dtypes.bool:
        return x | y
    if not node.dtype.is_float:
        return (x < y).where(y, x)
    return _choose(x, y, first_wins=(y < x), of_equals=word(x) & word(y))


def minimum(node: UOp, native: Native) -> UOp:
    """The smaller of x and y."""
    x, y = node.src
    if node.dtype is dtypes.bool:
        return x & y
    if not node.dtype.is_float:
        return (x < y).where(x, y)
    return _choose(x, y, first_wins=(x < y), of_equals=word(x) | word(y))


def _choose(x: UOp, y: UOp, first_wins: UOp, of_equals: UOp) -> UOp:
    """x where it wins, y where it does not, NaN if either is; equal floats differ only in a zero's sign."""
    ordered = x.eq(y).where(bitcast(of_equals, x.dtype), first_wins.where(x, y))
    return (is_nan(x) | is_nan(y)).where(x + y, ordered)


def negative(node: UOp, native: Native) -> UOp:
    """-x; of floats, the sign bit flipped."""
    (x,) = node.src
    if not x.dtype.is_float:
        return UOp.const(x.dtype, 0) - x
    return bitcast(word(x) ^ sign_bit(x.dtype), x.dtype)


def round_half_even(node: UOp, native: Native) -> UOp:
    """The nearest integer, ties to even."""
    (x,) = node.src
    return flip_sign(_rounded_size(absolute(x)), sign_of(x))


def truncate(node: UOp, native: Native) -> UOp:
    """The integer part."""
    (x,) = node.src
    size = absolute(x)
    nearest = _rounded_size(size)
    return flip_sign((size < nearest).where(nearest - 1.0, nearest), sign_of(x))


def floor(node: UOp, native: Native) -> UOp:
    """The largest integer not above x."""
    (x,) = node.src
    nearest = round_half_even(node, native)
    return (x < nearest).where(nearest - 1.0, nearest)


def number(choose: Op) -> Rule:
    """The larger or smaller number, which is the other operand of a NaN."""

    def expand(node: UOp, native: Native) -> UOp:
        x, y = node.src
        return is_nan(x).where(y, is_nan(y).where(x, UOp.apply(choose, x, y)))

    return expand


def scale(node: UOp, native: Native) -> UOp:
    """x * 2**n, in three factors of which the first two are 1 unless n lies beyond the normal powers of two.

    A step down stops short of the least power by the digits of the type: it makes no number subnormal that the
    next one does not make zero, so only the last product rounds.
    """
    x, n = node.src
    f = floats(node.dtype, native)
    most = (1 << (node.dtype.exponent_bits - 1)) - 1
    least = 1 - most
    step = float(least + node.dtype.mantissa_bits + 1)
    left = clamped(UOp.apply(ops.FLOOR, n), least + 2 * step, 3.0 * most)
    for _ in range(2):
        part = (left > most).where(f.const(most), (left < least).where(f.const(step), 0.0))
        x, left = x * f.power_of_two(f.rounded(part).word), left - part
    return is_nan(n).where(n, x * f.power_of_two(f.rounded(left).word))


def _rounded_size(size: UOp) -> UOp:
    """A float that is not negative, rounded; from 2**mantissa_bits on every float is an integer."""
    limit = 2.0**size.dtype.mantissa_bits
    return (size < limit).where(size + limit - limit, size)


RULES: dict[Op, Rule] = {
    ops.MAX: maximum,
    ops.MIN: minimum,
    ops.MAXNUM: number(ops.MAX),
    ops.MINNUM: number(ops.MIN),
    ops.NEG: negative,
    ops.ROUND: round_half_even,
    ops.TRUNC: truncate,
    ops.FLOOR: floor,
    ops.SCALEB: scale,
}
