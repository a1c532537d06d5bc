"""Integer operations in terms of what processors do.

`//` and `%` round down, give 0 for the divisor 0 and wrap for `MIN // -1`: hardware does none of
these, and traps on two.  A division by a constant becomes a multiplication (`constant_division`); one
by a variable becomes a guarded `CDIV`, or for vectors of at most 32 bits a float division that is
always exact after rounding down.  Shifts by the width or more have a value in the language and none
in hardware.  No node made here can trap.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.lower.build import Native, Rule, is_vector, small_integer
from lazulite.lower.constant_division import floor_quotient, index_quotient, index_remainder


def floordiv(node: UOp, native: Native) -> UOp:
    """x // y."""
    x, y = node.src
    if node.dtype is dtypes.index:
        return index_quotient(x, y)
    if y.op is ops.CONST:
        return floor_quotient(x, y.arg)
    return _guard_zero(y, _float_quotient(x, y) if _divides_as_float(node) else _floored(x, y)[0])


def modulo(node: UOp, native: Native) -> UOp:
    """x % y, with the sign of y."""
    x, y = node.src
    if node.dtype is dtypes.index:
        return index_remainder(x, y)
    if y.op is ops.CONST:
        return _remainder_by_constant(x, y.arg)
    return _guard_zero(y, x - _float_quotient(x, y) * y if _divides_as_float(node) else _floored(x, y)[1])


def _remainder_by_constant(x: UOp, divisor: int) -> UOp:
    if divisor == 0:
        return UOp.const(x.dtype, 0)
    if divisor > 0 and divisor & (divisor - 1) == 0:
        return x & (divisor - 1)
    return x - floor_quotient(x, divisor) * divisor


def _guard_zero(divisor: UOp, value: UOp) -> UOp:
    """0 where the divisor is 0."""
    if divisor.vmin > 0 or divisor.vmax < 0:
        return value
    return divisor.eq(0).where(UOp.const(value.dtype, 0), value)


def _floored(x: UOp, y: UOp) -> tuple[UOp, UOp]:
    """x // y and x % y by a division that rounds towards zero; any value where y is 0.

    The divisor is 1 in the two cases that trap: the remainder is then 0 and MIN // -1 is MIN.
    """
    one = UOp.const(y.dtype, 1)
    if y.dtype.kind == "uint":
        safe = y if y.vmin > 0 else y.maximum(one)
        return UOp.apply(ops.CDIV, x, safe), UOp.apply(ops.CMOD, x, safe)
    safe = y if y.vmin > 0 else (y.eq(0) | (y.eq(-1) & x.eq(y.dtype.min))).where(one, y)
    quotient = UOp.apply(ops.CDIV, x, safe)
    remainder = x - quotient * safe
    if x.vmin >= 0 and y.vmin > 0:
        return quotient, remainder
    past = remainder.ne(0) & ((remainder ^ safe) < 0)
    return quotient - past.cast(y.dtype), past.where(remainder + safe, remainder)


def _divides_as_float(node: UOp) -> bool:
    return is_vector(node) and node.dtype.bits <= 32


def _float_quotient(x: UOp, y: UOp) -> UOp:
    """x // y by way of a float with more than twice the digits; any bits where y is 0.

    A quotient that is no integer differs from the nearest integer by at least 1 part in 2**bits, so
    the rounded quotient lies on the same side of every integer as the exact one.
    """
    wide = dtypes.float32 if x.dtype.bits <= 16 else dtypes.float64
    quotient = UOp.apply(ops.FLOOR, x.cast(wide) / y.cast(wide))
    return small_integer(quotient, x.dtype)


def shift_left(node: UOp, native: Native) -> UOp | None:
    """x << y; 0 where y is not below the width."""
    x, count = node.src
    if _count_fits(node):
        return None
    return _in_width(count).where(x << (count & (x.dtype.bits - 1)), 0)


def shift_right(node: UOp, native: Native) -> UOp | None:
    """x >> y; a count that is not below the width leaves only the sign."""
    x, count = node.src
    if _count_fits(node):
        return None
    last = x.dtype.bits - 1
    beyond = x >> last if x.dtype.kind == "int" else UOp.const(x.dtype, 0)
    return _in_width(count).where(x >> (count & last), beyond)


def _count_fits(node: UOp) -> bool:
    count = node.src[1]
    return node.dtype is dtypes.index or (count.vmin >= 0 and count.vmax < node.dtype.bits)


def _in_width(count: UOp) -> UOp:
    below = count < count.dtype.bits
    return below if count.vmin >= 0 else below & (count >= 0)


def complement(node: UOp, native: Native) -> UOp:
    """~x: every bit flipped."""
    (x,) = node.src
    return x ^ -1 if x.dtype.is_int else x ^ True


def dot_of_halves(node: UOp, native: Native) -> UOp:
    """The halves with their signs, multiplied and added in 32 bits: each product fits."""
    x, y = node.src
    return ((x << 16) >> 16) * ((y << 16) >> 16) + (x >> 16) * (y >> 16)


RULES: dict[Op, Rule] = {
    ops.DOT2: dot_of_halves,
    ops.FLOORDIV: floordiv,
    ops.MOD: modulo,
    ops.SHL: shift_left,
    ops.SHR: shift_right,
    ops.NOT: complement,
}
