"""Multiply-add with one rounding where there is no instruction for it.

The product of two float32 (half, bfloat16) values is exact in float64; the sum is rounded to odd there,
so that the rounding to the narrow type sees on which side of a tie it was.  float64 splits its operands
instead (`wide_multiply_add`).  Integers wrap alike in one step and in two.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.lower.build import Native, Rule
from lazulite.lower.double_word import odd_sum
from lazulite.lower.wide_multiply_add import fused_double


def multiply_add(node: UOp, native: Native) -> UOp:
    """x * y + z, rounded once."""
    x, y, z = node.src
    if not node.dtype.is_float:
        return x * y + z
    if node.dtype is dtypes.float64:
        return fused_double(x, y, z)
    x, y, z = (value.cast(dtypes.float64) for value in (x, y, z))
    return odd_sum(x * y, z).cast(node.dtype)


RULES: dict[Op, Rule] = {ops.FMA: multiply_add}
