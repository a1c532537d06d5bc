"""Conversions between types, for targets that lack one.

A float becomes an integer by cutting off its fraction; what does not fit saturates, NaN gives 0.  Every
conversion to a float rounds once: where two steps are needed the first rounds to odd, that is, an inexact
intermediate has an odd last digit, so the second step still sees on which side of a tie it was.
bfloat16 is the upper half of a float32; half and float32 are converted by moving bits, as floats of 8 bits are
(`lower/decompose_eight_bits.py`).
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import NARROW, DType, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.lower.build import Native, Rule, absolute, bitcast, both_halves, is_nan, sign_of, word
from lazulite.lower.decompose_eight_bits import eight_bits_from_float32, float32_from_eight_bits
from lazulite.lower.float_to_integer import truncated

_INDEX32 = (-(1 << 31), (1 << 31) - 1)


def cast(node: UOp, native: Native) -> UOp | None:
    """The value of the source in the node's type."""
    (x,), dtype = node.src, node.dtype
    if x.dtype is dtypes.bool:
        return x.where(UOp.const(dtype, 1), 0)
    if dtype is dtypes.bool:
        return wide_or_same(x).ne(0)
    if x.dtype.is_float:
        return _from_float(x, dtype)
    if dtype.is_float:
        return _from_integer(x, dtype, native)
    return None


def bits_of_bool(node: UOp, native: Native) -> UOp | None:
    """The bits of a bool, or a bool of bits: it is a byte of 0 or 1, and true for every other byte than 0."""
    (x,) = node.src
    if x.dtype is dtypes.bool:
        return bitcast(x.cast(dtypes.uint8), node.dtype)
    return bitcast(x, dtypes.uint8).ne(0) if node.dtype is dtypes.bool else None


def wide_or_same(x: UOp) -> UOp:
    """A narrow float as float32, anything else unchanged."""
    return x.cast(dtypes.float32) if x.dtype in NARROW else x


def _from_float(x: UOp, dtype: DType) -> UOp | None:
    source = x.dtype
    if source in NARROW:
        if dtype is not dtypes.float32:
            return x.cast(dtypes.float32).cast(dtype)
        if source.bits == 8:
            return float32_from_eight_bits(x)
        return float32_from_half(x) if source is dtypes.float16 else float32_from_bfloat16(x)
    if dtype.is_int:
        return truncated(x, dtype)
    if dtype not in NARROW:
        return None
    x = odd_float32(x) if source is dtypes.float64 else x
    if dtype.bits == 8:
        return eight_bits_from_float32(x, dtype)
    return half_from_float32(x) if dtype is dtypes.float16 else bfloat16_from_float32(x)


def _from_integer(x: UOp, dtype: DType, native: Native) -> UOp | None:
    if x.dtype is dtypes.index:
        fits = x.vmin >= _INDEX32[0] and x.vmax <= _INDEX32[1]
        return x.cast(dtypes.int32 if fits else dtypes.int64).cast(dtype)
    if x.dtype.bits < 64:
        step = dtypes.float32 if x.dtype.bits <= 16 else dtypes.float64
        return None if step is dtype else x.cast(step).cast(dtype)
    if dtype is not dtypes.float64:
        return odd_above_53_bits(x).cast(dtypes.float64).cast(dtype)
    low, high = both_halves(word(x))
    upper = bitcast(high, dtypes.int32) if x.dtype.kind == "int" else high
    return upper.cast(dtype) * 2.0**32 + low.cast(dtype)


def odd_above_53_bits(x: UOp) -> UOp:
    """A 64-bit integer that a double holds exactly: where x needs more digits, rounded to odd."""
    rest = x & 0x7FF
    rounded = (x & ~0x7FF) | rest.ne(0).where(UOp.const(x.dtype, 0x800), 0)
    fits = x < 1 << 53
    if x.dtype.kind == "int":
        fits = fits & (x >= -(1 << 53))
    return fits.where(x, rounded)


def odd_float32(x: UOp) -> UOp:
    """A double as a float32 that is odd where it is not exact."""
    nearest = x.cast(dtypes.float32)
    back = nearest.cast(dtypes.float64)
    bits = word(nearest)
    inexact_even = ((back < x) | (x < back)) & (bits & 1).eq(0)
    towards_x = (absolute(back) < absolute(x)).where(bits + 1, bits - 1)
    return bitcast(inexact_even.where(towards_x, bits), dtypes.float32)


def bfloat16_from_float32(x: UOp) -> UOp:
    """Round to nearest even; a NaN stays one."""
    bits = word(x)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    upper = is_nan(x).where(bits | 0x400000, rounded) >> 16
    return bitcast(upper.cast(dtypes.uint16), dtypes.bfloat16)


def float32_from_bfloat16(x: UOp) -> UOp:
    """The upper half of a float32, with nothing below; what was just cut off is masked in place."""
    bits = bitcast(x, dtypes.uint16)
    if bits.op is ops.CAST and bits.src[0].op is ops.SHR and bits.src[0].dtype is dtypes.uint32:
        shifted = bits.src[0]
        if shifted.src[1].is_const(16):
            return bitcast(shifted.src[0] & 0xFFFF0000, dtypes.float32)
    return bitcast(bits.cast(dtypes.uint32) << 16, dtypes.float32)


def float32_from_half(x: UOp) -> UOp:
    """The digits move 13 places; a product with 2**112 corrects the exponent, subnormals included."""
    bits = bitcast(x, dtypes.uint16).cast(dtypes.uint32)
    digits = (bits & 0x7FFF) << 13
    special = digits >= 0x7C00 << 13
    value = word(bitcast(digits, dtypes.float32) * 2.0**112)
    return bitcast(special.where(digits | 0x7F800000, value) | ((bits & 0x8000) << 16), dtypes.float32)


def half_from_float32(x: UOp) -> UOp:
    """Round to nearest even, from the value itself: subnormal, normal, too large and NaN by cases."""
    size = absolute(x)
    bits = word(size)
    # Adding 0.5 leaves the multiple of 2**-24, the least half, in the last bits of the sum.
    subnormal = word(size + 0.5) - UOp.const(dtypes.float32, 0.5).arg
    # The exponent's bias is 112 smaller; an overflow of the digits carries into the exponent, up to infinity.
    normal = (bits - (112 << 23) + 0xFFF + ((bits >> 13) & 1)) >> 13
    large = is_nan(x).where(UOp.const(dtypes.uint32, 0x7E00), 0x7C00)
    result = (size < 2.0**-14).where(subnormal, (size < 65536.0).where(normal, large))
    return bitcast((result | (sign_of(x) >> 16)).cast(dtypes.uint16), dtypes.float16)


RULES: dict[Op, Rule] = {ops.CAST: cast, ops.BITCAST: bits_of_bool}
