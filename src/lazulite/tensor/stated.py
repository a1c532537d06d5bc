"""A value whose gradient is stated by a formula.

What a kernel written by hand computes has no gradient of its own.  `stated` gives it one: a rule over tensors that is
traced over stand-ins for the operands, so gradients of gradients follow from the formula.  What a rule gives for
operands of some shapes and types is traced once and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from typing import Any

from lazulite.ir import ops
from lazulite.ir.functions import Derivative, derivative_of
from lazulite.ir.size import varies
from lazulite.ir.uop import UOp

Rule = Callable[..., Sequence[Any]]
"""rule(operands.., upstream, value): a gradient, or None, for each operand."""
_ORDERS = 3
"""How often a stated value can be differentiated: a formula that uses the function itself is written out so often.
A second derivative in forward mode turns the first one round, which takes one more."""
_MOST = 512
_depth: ContextVar[int] = ContextVar("depth", default=0)
_traced: dict[Hashable, Derivative] = {}


def stated(value: Any, operands: Sequence[Any], rule: Rule) -> Any:
    """The value as a function of the operands with the gradient that the rule says."""
    depth = _depth.get()
    if depth == _ORDERS:
        return value
    like = [*operands, value, value]
    key = _key(rule, like, depth)
    derivative = _traced.get(key)
    if derivative is None:
        derivative = _traced_rule(rule, like, depth)
        if key is not None and len(_traced) < _MOST:
            _traced[key] = derivative
    sources = (value.uop, *[x.uop for x in operands])
    return value._derived(UOp(ops.FUNCTION, value.dtype, sources, derivative))


def _key(rule: Rule, like: Sequence[Any], depth: int) -> Hashable:
    """What the outcome of a rule follows from; None where it may hold more than numbers."""
    held = [cell.cell_contents for cell in getattr(rule, "__closure__", None) or ()]
    if not all(part is None or isinstance(part, bool | int | str) for part in held) or any(
        varies(x.shape) for x in like
    ):
        return None
    return getattr(rule, "__code__", rule), tuple(held), depth, tuple([(x.shape, x.dtype, x.device) for x in like])


def _traced_rule(rule: Rule, like: Sequence[Any], depth: int) -> Derivative:
    inner = [x._derived(UOp(ops.PARAM, x.dtype, (), (slot, x.shape, ""))) for slot, x in enumerate(like)]
    token = _depth.set(depth + 1)
    try:
        return derivative_of([None if part is None else part.uop for part in rule(*inner)])
    finally:
        _depth.reset(token)
