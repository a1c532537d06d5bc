"""Conversions between float32 and the floats of 8 bits, by moving bits.

Takes and gives nodes; the format is that of the type: digits, bias, and which codes are special.  Rounding is to
nearest even.  What is too large becomes infinity where the format has one (e5m2), and NaN where not.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.lower.build import absolute, bitcast, is_nan, sign_of, word

_DIGITS, _BIAS = 23, 127
"""Of float32."""
_NAN, _INFINITY = 0x7FC00000, 0x7F800000


def float32_from_eight_bits(x: UOp) -> UOp:
    """The digits move up; a product with a power of two corrects the exponent, subnormals included."""
    kind = x.dtype
    bits = bitcast(x, dtypes.uint8).cast(dtypes.uint32)
    moved = (bits & 0x7F) << (_DIGITS - kind.mantissa_bits)
    value = word(bitcast(moved, dtypes.float32) * 2.0 ** (_BIAS - kind.bias))
    if kind.specials == "ieee":
        special = (bits & 0x7F).eq(_infinity(kind)).where(UOp.const(dtypes.uint32, _INFINITY), _NAN)
        value = ((bits & 0x7F) >= _infinity(kind)).where(special, value)
    elif kind.specials == "finite":
        value = (bits & 0x7F).eq(0x7F).where(UOp.const(dtypes.uint32, _NAN), value)
    result = value | ((bits & 0x80) << 24)
    if kind.specials == "unsigned":
        result = bits.eq(0x80).where(UOp.const(dtypes.uint32, _NAN), result)
    return bitcast(result, dtypes.float32)


def eight_bits_from_float32(x: UOp, kind: DType) -> UOp:
    """Round to nearest even, from the value itself: subnormal, normal, and too large or NaN by cases."""
    size = absolute(x)
    bits = word(size)
    moved = _DIGITS - kind.mantissa_bits
    # Adding a power of two leaves the multiple of the least value in the last bits of the sum.
    power = 2.0 ** (1 - kind.bias - kind.mantissa_bits + _DIGITS)
    subnormal = word(size + power) - UOp.const(dtypes.float32, power).arg
    # The exponent's bias is smaller; an overflow of the digits carries into the exponent.
    lowered = bits - ((_BIAS - kind.bias) << _DIGITS)
    normal = (lowered + ((1 << (moved - 1)) - 1) + ((bits >> moved) & 1)) >> moved
    beyond = UOp.const(dtypes.uint32, {"ieee": _infinity(kind), "finite": 0x7F, "unsigned": 0x80}[kind.specials])
    normal = UOp.apply(ops.MIN, normal, beyond)
    result = (size < 2.0 ** (kind.largest_exponent + 1)).where(normal, beyond)
    result = (size < 2.0 ** (1 - kind.bias)).where(subnormal, result)
    sign = sign_of(x) >> 24
    if kind.specials == "ieee":
        result = is_nan(x).where(UOp.const(dtypes.uint32, 0x7E), result)
    if kind.specials == "unsigned":
        sign = result.eq(0).where(UOp.const(dtypes.uint32, 0), sign)
    return bitcast((result | sign).cast(dtypes.uint8), kind)


def _infinity(kind: DType) -> int:
    """The code from which on all is infinity and NaN."""
    return ((1 << kind.exponent_bits) - 1) << kind.mantissa_bits
