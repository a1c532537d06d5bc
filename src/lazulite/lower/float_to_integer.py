"""A float cut off to an integer in integer arithmetic, saturating: the meaning of CAST in every mode."""

from __future__ import annotations

from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.lower.build import is_nan, sign_of, word


def truncated(x: UOp, dtype: DType) -> UOp:
    """The integer part of x; the nearest end of the type beyond its range, 0 for NaN."""
    exponent = _exponent(x)
    negative = sign_of(x).ne(0)
    size = _integer_part(x, exponent).cast(dtype)
    if dtype.kind == "uint":
        low = UOp.const(dtype, 0)
        value = negative.where(low, size)
        beyond = exponent >= dtype.bits
    else:
        low = UOp.const(dtype, dtype.min)
        value = negative.where(-size, size)
        beyond = exponent >= dtype.bits - 1
    saturated = beyond.where(negative.where(low, dtype.max), value)
    return is_nan(x).where(UOp.const(dtype, 0), saturated)


def _exponent(x: UOp) -> UOp:
    """The power of two of the leading digit, as an int32."""
    mask = (1 << x.dtype.exponent_bits) - 1
    return ((word(x) >> x.dtype.mantissa_bits) & mask).cast(dtypes.int32) - (mask >> 1)


def _integer_part(x: UOp, exponent: UOp) -> UOp:
    """|x| without its fraction as a uint64; any bits from 2**64 on."""
    point = x.dtype.mantissa_bits
    digits = ((word(x) & ((1 << point) - 1)) | (1 << point)).cast(dtypes.uint64)
    left = (exponent - point).maximum(0).minimum(63).cast(dtypes.uint64)
    right = (point - exponent).maximum(0).minimum(63).cast(dtypes.uint64)
    return digits << left >> right
