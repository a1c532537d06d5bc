"""Division by a known number without dividing, and division of INDEX expressions.

`floor_quotient` takes an integer value of any stored type and a Python number; it gives x // d with
the language's rounding (down) by a multiplication with a scaled reciprocal and a shift.  The bounds of
x choose the narrowest arithmetic that is exact for every possible x.  64-bit values of one lane keep
a `CDIV`, because scalar code generators have a 128-bit product and do better; vectors get the high
product from four 32-bit ones.

INDEX expressions are mathematical integers with bounds; they become a `CDIV` of operands that are not
negative, by adding a multiple of the divisor that the bounds call for.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.lower.build import bitcast, is_vector, unsigned

_KNOWN = 1 << 61
"""Bounds beyond this are not facts but the lack of any."""


def floor_quotient(x: UOp, divisor: int) -> UOp:
    """x // divisor of stored integers."""
    if divisor == 0:
        return UOp.const(x.dtype, 0)
    if divisor < 0:
        return -x if divisor == -1 else _by_negative(x, -divisor)
    if divisor & (divisor - 1) == 0:
        return x >> (divisor.bit_length() - 1)
    return _by_positive(x, divisor)


def _by_positive(x: UOp, divisor: int) -> UOp:
    """x // d for d > 0: the complement of a negative x divides like a positive number."""
    if x.dtype.kind == "uint" or x.vmin >= 0:
        return bitcast(_unsigned_quotient(bitcast(x, unsigned(x.dtype)), divisor, int(x.vmax)), x.dtype)
    mask = x >> (x.dtype.bits - 1)
    size = bitcast(x ^ mask, unsigned(x.dtype))
    quotient = _unsigned_quotient(size, divisor, max(int(x.vmax), ~int(x.vmin)))
    return bitcast(quotient, x.dtype) ^ mask


def _by_negative(x: UOp, size: int) -> UOp:
    """x // -d for d > 0: ~((x - 1) // d) for positive x, -x // d for the others, both without overflow."""
    positive = x > 0
    amount = bitcast(positive.where(x - 1, -x), unsigned(x.dtype))
    quotient = bitcast(_unsigned_quotient(amount, size, max(int(x.vmax) - 1, -int(x.vmin))), x.dtype)
    return positive.where(quotient ^ -1, quotient)


def reciprocal(divisor: int, largest: int) -> tuple[int, int]:
    """(m, s) with x // divisor == x * m >> s for all x up to `largest`, the least such s.

    m / 2**s exceeds 1 / divisor by less than 1 / (divisor * largest), too little to reach the next integer.

    >>> reciprocal(7, 255)
    (293, 11)
    """
    shift = divisor.bit_length() - 1
    while True:
        factor = -(-(1 << shift) // divisor)
        if (factor * divisor - (1 << shift)) * largest < 1 << shift:
            return factor, shift
        shift += 1


def _unsigned_quotient(x: UOp, divisor: int, largest: int) -> UOp:
    """x // divisor of an unsigned x that is at most `largest`."""
    if divisor & (divisor - 1) == 0:
        return x >> (divisor.bit_length() - 1)
    if divisor > largest:
        return UOp.const(x.dtype, 0)
    factor, shift = reciprocal(divisor, largest)
    for wide in (dtypes.uint32, dtypes.uint64):
        if factor * largest < 1 << wide.bits:
            return ((x.cast(wide) * factor) >> shift).cast(x.dtype)
    if x.dtype.bits == 64 and not is_vector(x):
        return UOp.apply(ops.CDIV, x, UOp.const(x.dtype, divisor))
    return _by_long_factor(x, factor, shift)


def _by_long_factor(x: UOp, factor: int, shift: int) -> UOp:
    """x * factor >> shift, where the product is wider than 64 bits and the factor may have a digit more than x."""
    bits = x.dtype.bits
    if shift < bits:
        factor, shift = factor << (bits - shift), bits
    if factor < 1 << bits:
        return _high_product(x, factor) >> (shift - bits)
    # The factor's highest digit adds x itself, halved on the way so that nothing overflows.
    part = _high_product(x, factor - (1 << bits))
    return (part + ((x - part) >> 1)) >> (shift - bits - 1)


def _high_product(x: UOp, factor: int) -> UOp:
    """The upper half of the product of an unsigned x of 32 or 64 bits and a number of that width."""
    if x.dtype is dtypes.uint32:
        return (x.cast(dtypes.uint64) * factor >> 32).cast(dtypes.uint32)
    low, high = x & 0xFFFFFFFF, x >> 32
    factor_low, factor_high = factor & 0xFFFFFFFF, factor >> 32
    crossing = low * factor_high
    middle = (low * factor_low >> 32) + (crossing & 0xFFFFFFFF) + high * factor_low
    return high * factor_high + (crossing >> 32) + (middle >> 32)


def index_quotient(x: UOp, y: UOp) -> UOp:
    """x // y of INDEX expressions, by divisions whose operands are not negative."""
    if y.op is not ops.CONST:
        return _guarded(y, _by_variable_index(x, y))
    divisor: int = y.arg
    if divisor == 0:
        return y
    if divisor < 0:
        x, divisor = x * -1, -divisor
    if divisor & (divisor - 1) == 0:
        return x >> (divisor.bit_length() - 1)
    raised, turns = _raised(x, divisor)
    if raised is None:
        return _rounded_down(x, UOp.const(dtypes.index, divisor))
    quotient = UOp.apply(ops.CDIV, raised, UOp.const(dtypes.index, divisor))
    return quotient + -turns if turns else quotient


def index_remainder(x: UOp, y: UOp) -> UOp:
    """x % y of INDEX expressions, with the sign of y."""
    if y.op is ops.CONST and y.arg > 0:
        raised, _ = _raised(x, y.arg)
        if raised is not None:
            return UOp.apply(ops.CMOD, raised, y)
    return _guarded(y, x + index_quotient(x, y) * y * -1)


def _raised(x: UOp, divisor: int) -> tuple[UOp | None, int]:
    """x + turns * divisor, which is not negative, and the turns; None where the bounds of x are unknown."""
    low = int(x.vmin)
    if low >= 0:
        return x, 0
    if low < -_KNOWN or x.vmax > _KNOWN:
        return None, 0
    turns = -(low // divisor)
    return x + turns * divisor, turns


def _rounded_down(x: UOp, size: UOp) -> UOp:
    """x // size for size > 0."""
    if x.vmin >= 0:
        return UOp.apply(ops.CDIV, x, size)
    below = x < 0
    quotient = UOp.apply(ops.CDIV, below.where(x * -1 + -1, x), size)
    return below.where(quotient * -1 + -1, quotient)


def _by_variable_index(x: UOp, y: UOp) -> UOp:
    if y.vmin < 0:
        below = y < 0
        x, y = below.where(x * -1, x), below.where(y * -1, y)
    return _rounded_down(x, y if y.vmin > 0 else y.maximum(1))


def _guarded(y: UOp, value: UOp) -> UOp:
    if y.vmin > 0 or y.vmax < 0:
        return value
    return y.eq(0).where(UOp.const(dtypes.index, 0), value)
