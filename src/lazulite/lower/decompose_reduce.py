"""Reductions in terms of what the target does in one instruction a turn.

Sums and products of half and bfloat16 accumulate in float32 and round once, at the end: the one place where a
value is kept wider than its type.  The maximum of floats becomes that of the numbers among them, and a note
whether all are numbers, where the target has an instruction for the former.  Takes a `REDUCE` node of any
language; runs before schedule steps are applied, so they hold for what a reduction becomes.
"""

from __future__ import annotations

import math

from lazulite.ir import ops
from lazulite.ir.dtype import NARROW, dtypes
from lazulite.ir.uop import UOp, transform
from lazulite.lower.build import Native
from lazulite.lower.decompose_narrow import wide


def widen_reduction(node: UOp) -> UOp | None:
    """The same reduction with a float32 accumulator; None if the node is no such reduction.

    >>> x = UOp(ops.PARAM, dtypes.float16, (), (0, (4,), "CPU"))
    >>> total = UOp(ops.REDUCE, dtypes.float16, (x,), (ops.ADD, (0,)))
    >>> widen_reduction(total).src[0].dtype
    dtypes.float32
    """
    if node.op is not ops.REDUCE or node.dtype not in NARROW:
        return None
    value = wide(node.src[0])
    return UOp(ops.REDUCE, dtypes.float32, (value, *node.src[1:]), node.arg).cast(node.dtype)


_NUMBERS = {ops.MAX: ops.MAXNUM, ops.MIN: ops.MINNUM}


def part_extreme(node: UOp, native: Native) -> UOp | None:
    """The extreme of the numbers, NaN if there is a NaN; None if the node is no such reduction.

    >>> x = UOp(ops.PARAM, dtypes.float32, (), (0, (4,), "CPU"))
    >>> parted = part_extreme(UOp(ops.REDUCE, dtypes.float32, (x,), (ops.MAX, (0,))), lambda node: True)
    >>> [part.arg[0] for part in parted.src if part.op is ops.REDUCE]
    [AND, MAXNUM]
    """
    if node.op is not ops.REDUCE or node.arg[0] not in _NUMBERS or not node.dtype.is_float:
        return None
    value, op = node.src[0], _NUMBERS[node.arg[0]]
    if not native(UOp.apply(op, value, value)):
        return None
    numbers = node.replace(arg=(op, *node.arg[1:]))
    identity = node.arg[0].identity
    if identity is not None and any(r.src[0].vmin < 1 for r in node.src[1:]):  # perhaps there are no numbers
        numbers = UOp.apply(op, numbers, UOp.const(node.dtype, identity(node.dtype)))
    whole = UOp(ops.REDUCE, dtypes.bool, (value.eq(value), *node.src[1:]), (ops.AND, *node.arg[1:]))
    return whole.where(numbers, UOp.const(node.dtype, math.nan))


def _decomposed(node: UOp, native: Native) -> UOp:
    wider = widen_reduction(node)
    reduction = node if wider is None else wider.src[0]
    parted = part_extreme(reduction, native)
    return (reduction if parted is None else parted).cast(node.dtype)


def decompose_reductions(root: UOp, native: Native) -> UOp:
    """The graph with every reduction widened or parted that has to be."""
    return transform(root, (ops.REDUCE,), lambda node: _decomposed(node, native))
