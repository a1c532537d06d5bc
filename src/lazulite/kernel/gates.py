"""What a reduction combines only where a gate is true.

Takes the value of a `REDUCE` in `KERNEL` or `LOOP`.  A choice between a value and the identity of the
reduction is that value under a gate; a window that leaves an image, its gradient, and a remainder of a split
all come in this form.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp


def split_gate(op: Op, value: UOp) -> tuple[UOp | None, UOp]:
    """The gate, None where there is none, and the value behind it.

    >>> from lazulite.ir.dtype import dtypes
    >>> x, g = UOp(ops.SCALAR, dtypes.float32, (), (0, None, None)), UOp(ops.SCALAR, dtypes.bool, (), (1, None, None))
    >>> split_gate(ops.ADD, g.where(x, 0.0)) == (g, x)
    True
    >>> split_gate(ops.MUL, g.where(x, 0.0))[0] is None
    True
    """
    gate: UOp | None = None
    while value.op is ops.WHERE and op.identity is not None and value.src[2].is_const(op.identity(value.dtype)):
        gate = value.src[0] if gate is None else gate & value.src[0]
        value = value.src[1]
    return gate, value
