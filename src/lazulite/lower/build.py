"""Small builders that the decompositions share: words of bits, constants of a word, exact splits.

A decomposition is written as if for one element; a node's lanes are its free lane ranges, so the
same expression serves scalar and vector code.  Takes and gives UOps of the `KERNEL` and `LOOP`
languages; no builder here changes a value's free ranges.
"""

from __future__ import annotations

from collections.abc import Callable

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp

Native = Callable[[UOp], bool]
"""Whether the target has an instruction (or the emitter a spelling) for a node."""
Rule = Callable[[UOp, Native], UOp | None]
"""A node that is not native, in simpler operations; None where nothing is simpler."""

_UNSIGNED = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}
_SIGNED = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}


def unsigned(dtype: DType) -> DType:
    """The unsigned integer type as wide as this type."""
    return _UNSIGNED[dtype.bits]


def signed(dtype: DType) -> DType:
    """The signed integer type as wide as this type."""
    return _SIGNED[dtype.bits]


def bitcast(x: UOp, dtype: DType) -> UOp:
    """The bits of x read as another type of the same width; casts of casts and of constants vanish.

    >>> x = UOp.const(dtypes.float32, 1.0)
    >>> hex(bitcast(x, dtypes.uint32).value)
    '0x3f800000'
    """
    while x.op is ops.BITCAST:
        x = x.src[0]
    if x.dtype is dtype:
        return x
    if x.op is ops.CONST:
        return UOp.const(dtype, dtype.from_bits(x.dtype.to_bits(x.value)))
    return UOp(ops.BITCAST, dtype, (x,))


def word(x: UOp) -> UOp:
    """The bits of x as an unsigned integer of its width."""
    return bitcast(x, unsigned(x.dtype))


def sign_bit(dtype: DType) -> int:
    """The highest bit of a word of this type."""
    return 1 << (dtype.bits - 1)


def absolute(x: UOp) -> UOp:
    """|x| of a float: the sign bit cleared, for NaN and zeros too."""
    return bitcast(word(x) & (sign_bit(x.dtype) - 1), x.dtype)


def sign_of(x: UOp) -> UOp:
    """The sign bit of a float, as a word with all other bits zero."""
    return word(x) & sign_bit(x.dtype)


def flip_sign(x: UOp, sign: UOp) -> UOp:
    """x with its sign changed where the word `sign` has its highest bit (and no other) set."""
    return bitcast(word(x) ^ sign, x.dtype)


def is_nan(x: UOp) -> UOp:
    return x.ne(x)


def both_halves(x: UOp) -> tuple[UOp, UOp]:
    """The low and the high 32 bits of a uint64, each as a uint32."""
    return x.cast(dtypes.uint32), (x >> 32).cast(dtypes.uint32)


def joined(low: UOp, high: UOp) -> UOp:
    """The uint64 with these low and high 32 bits."""
    return low.cast(dtypes.uint64) | (high.cast(dtypes.uint64) << 32)


def is_vector(node: UOp) -> bool:
    """Whether the node's value has more than one lane."""
    return any(r.arg[1] == "lane" for r in node.ranges)


def round_constant(dtype: DType) -> float:
    """The float that, added to an x below a quarter of it, leaves x rounded to an integer in the low bits.

    >>> round_constant(dtypes.float32) == 1.5 * 2**23
    True
    """
    return 1.5 * 2.0**dtype.mantissa_bits


def small_integer(x: UOp, dtype: DType) -> UOp:
    """A float that holds an integer, as that integer modulo the width of `dtype`; no check, no saturation.

    For a `dtype` of up to 16 bits and |x| below 2**22 in float32, 32 bits and 2**51 in float64.
    """
    return bitcast(x + round_constant(x.dtype), signed(x.dtype)).cast(dtype)
