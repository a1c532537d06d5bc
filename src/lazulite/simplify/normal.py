"""Building and bringing expressions into normal form.

`normal` builds one node over sources that are already normal; `normalise` treats whole graphs.  The
rules come from the modules of this package, which its `__init__` gathers in `SIMPLIFY`.  Invariant
that every rule keeps: its result is normal except perhaps at its root, so that `normal` has to try
rules at the root only.  Rules that build deeper results do so with `normal`.
"""

from __future__ import annotations

from typing import Any

from lazulite.ir import ops
from lazulite.ir.dtype import DType
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.rewrite.engine import LONGEST_CHAIN, endless, rewrite
from lazulite.rewrite.rule import RuleSet
from lazulite.rewrite.trace import Trace

SIMPLIFY = RuleSet("simplify")
"""Every value-preserving law."""


def normal(op: Op, dtype: DType, src: tuple[UOp, ...], arg: Any = None) -> UOp:
    """The normal form of a node whose sources are normal."""
    return settled(UOp(op, dtype, src, arg))


def settled(node: UOp) -> UOp:
    """The normal form of a node whose sources are normal."""
    table = SIMPLIFY.table()
    for _ in range(LONGEST_CHAIN):
        fired = SIMPLIFY.fire(node, table)
        if fired is None:
            return node
        rule, node = fired
    raise endless(rule.name)


def normalise(*roots: UOp, trace: Trace | None = None) -> list[UOp]:
    """The roots with every expression in normal form."""
    return rewrite(roots, SIMPLIFY, trace)


def shaped(value: UOp, root: UOp) -> UOp:
    """A value of rank 0 in the place of `root`: expanded to its shape where that has axes (`TENSOR`)."""
    shape = root.shape
    return value if value.shape == shape else UOp(ops.EXPAND, value.dtype, (value,), shape)
