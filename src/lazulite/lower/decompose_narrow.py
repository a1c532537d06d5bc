"""Arithmetic of half, bfloat16 and floats of 8 bits in float32.

Every operation rounds to its own type, fused or not: operands become float32 (exact), the operation
runs there, and its result is rounded back.  Two roundings equal one here, because float32 has more than
twice the digits of any of them plus two, for `+ - * /` and the square root; the functions are bounded in
float32 and then rounded.  A written multiply-add needs more and is `decompose_fma`'s.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import NARROW, dtypes
from lazulite.ir.uop import UOp

# Operations on bits or on values as they are, and those with rules of their own.
_WITHOUT_ARITHMETIC = frozenset({ops.CAST, ops.BITCAST, ops.WHERE, ops.NEG, ops.FMA})


def widened(node: UOp) -> UOp | None:
    """The operation in float32, rounded back; None where no operand is narrow or nothing is computed.

    >>> x, y = (UOp(ops.SCALAR, dtypes.bfloat16, (), (slot, None, None)) for slot in (0, 1))
    >>> widened(x * y) is (x.cast(dtypes.float32) * y.cast(dtypes.float32)).cast(dtypes.bfloat16)
    True
    """
    if node.op is ops.NEG and node.dtype.specials == "unsigned":
        return (-wide(node.src[0])).cast(node.dtype)  # zero has no sign to change
    if node.op in _WITHOUT_ARITHMETIC or node.op not in ops.ELEMENTWISE or node.src[0].dtype not in NARROW:
        return None
    result = UOp.apply(node.op, *[wide(source) for source in node.src])
    return result.cast(node.dtype)


def wide(x: UOp) -> UOp:
    """The same value in float32."""
    return UOp.const(dtypes.float32, x.value) if x.op is ops.CONST else x.cast(dtypes.float32)
