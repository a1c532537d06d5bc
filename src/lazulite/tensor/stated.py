"""A value whose gradient is stated by a formula.

What a kernel written by hand computes has no gradient of its own.  `stated` gives it one: a rule over tensors that is
traced once, over stand-ins for the operands, so gradients of gradients follow from the formula.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from lazulite.ir import ops
from lazulite.ir.functions import function_of
from lazulite.ir.uop import UOp

Rule = Callable[..., Sequence[Any]]
"""rule(operands.., upstream, value): a gradient, or None, for each operand."""
_ORDERS = 2
"""How often a stated value can be differentiated: a formula that uses the function itself is written out so often."""
_depth: ContextVar[int] = ContextVar("depth", default=0)


def stated(value: Any, operands: Sequence[Any], rule: Rule) -> Any:
    """The value as a function of the operands with the gradient that the rule says."""
    depth = _depth.get()
    if depth == _ORDERS:
        return value
    like = [*operands, value, value]
    inner = [x._derived(UOp(ops.PARAM, x.dtype, (), (slot, x.shape, ""))) for slot, x in enumerate(like)]
    token = _depth.set(depth + 1)
    try:
        gradients = [None if part is None else part.uop for part in rule(*inner)]
    finally:
        _depth.reset(token)
    return value._derived(function_of(value.uop, [x.uop for x in operands], gradients))
