"""Sums and products of half and bfloat16 accumulate in float32 and round once, at the end.

The one place where a value is kept wider than its type.  Takes a `REDUCE` node of any language; runs
before schedule steps are applied, so a reduction that is parted, and the loops of each part, are in float32.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.lower.decompose_narrow import NARROW, wide


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


def widen_reductions(root: UOp) -> UOp:
    """The graph with every narrow reduction widened."""
    done: dict[UOp, UOp] = {}
    for node in toposort(root):
        src = tuple([done[source] for source in node.src])
        rebuilt = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        wider = widen_reduction(rebuilt)
        done[node] = rebuilt if wider is None else wider
    return done[root]
