"""Forward-mode differentiation: how values change when what they were computed from changes.

Takes and gives `TENSOR` graphs.  A rule takes a node, its sources and their tangents (None where a source
does not change) and gives the node's tangent.  What is linear moves its tangents as it moves its values.
For an elementwise op a gradient rule is its slope, so that rule serves in both directions.  A kernel with a
gradient of its own is turned round: its gradient is linear in what reaches it, and the gradient of that is
the tangent.  No tangent is kept for integers and bools.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lazulite.autograd.backward import History, contributions, fitted, gradient, no_history, sources_below
from lazulite.autograd.rules import GRADIENTS, reduced, spread, total, zeros
from lazulite.base.errors import GradientError
from lazulite.ir import ops
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp

Tangents = Sequence[UOp | None]
Rule = Callable[[UOp, tuple[UOp, ...], Tangents], UOp | None]


def tangents(roots: Sequence[UOp], given: Mapping[UOp, UOp], expand: History = no_history) -> list[UOp | None]:
    """The tangent of each root where those of some nodes are given; None where no path of floats leads there.

    `expand` may give the expression that a BUFFER was computed from.
    """
    known: dict[UOp, UOp | None] = dict(given)
    sources = sources_below(roots, expand)
    needed = _needed(roots, sources)
    for node, below in sources.items():
        if node in needed and node not in known:
            parts = [known.get(source) for source in below]
            moves = node.dtype.is_float and any(part is not None for part in parts)
            known[node] = _tangent(node, below, parts) if moves else None
    return [known[root] for root in roots]


def _needed(roots: Sequence[UOp], sources: dict[UOp, tuple[UOp, ...]]) -> set[UOp]:
    """The nodes whose tangents others are made of: how the value of a FUNCTION came about does not matter."""
    needed = set(roots)
    for node in reversed(sources):
        if node in needed:
            needed.update(sources[node][1 if node.op is ops.FUNCTION else 0 :])
    return needed


def _tangent(node: UOp, below: tuple[UOp, ...], parts: Tangents) -> UOp | None:
    if node.op is ops.BUFFER:  # its expression's
        return parts[0]
    rule = TANGENTS.get(node.op)
    if rule is None:
        raise GradientError(
            "jvp", f"{node.op.name} has no derivative, but the result depends on the argument through it",
            hint="detach() the part that is not to be differentiated",
        )  # fmt: skip
    return rule(node, below, parts)


# --- rules ---------------------------------------------------------------------------------------


def _moved(node: UOp, below: tuple[UOp, ...], parts: Tangents) -> UOp | None:
    """The op applied to the tangent: for what is linear in its one operand."""
    return UOp(node.op, node.dtype, tuple([part for part in parts if part is not None]), node.arg)


def _by_slopes(node: UOp, below: tuple[UOp, ...], parts: Tangents) -> UOp | None:
    """Each operand's slope times its tangent: what the gradient rule makes of the tangent."""
    found: UOp | None = None
    for position, part in enumerate(parts):
        if part is None:
            continue
        share = GRADIENTS[node.op](spread(part, node.shape), node, *below)
        share = share[position] if isinstance(share, tuple) else share
        if share is not None:
            share = spread(share, node.shape)
            found = share if found is None else found + share
    return found


def _nothing(node: UOp, below: tuple[UOp, ...], parts: Tangents) -> UOp | None:
    return None


def _reduced(node: UOp, below: tuple[UOp, ...], parts: Tangents) -> UOp | None:
    """The sum of the tangents, each by the weight that the gradient gives its element."""
    (part,), (op, axes) = parts, node.arg
    assert part is not None
    if op is not ops.ADD:
        weights = GRADIENTS[ops.REDUCE](spread(UOp.const(node.dtype, 1), node.shape), node, *below)
        assert isinstance(weights, UOp)
        part = weights.ne(0).where(weights * part, 0)
    return reduced(ops.ADD, part, axes)


def _gathered(node: UOp, below: tuple[UOp, ...], parts: Tangents) -> UOp | None:
    assert parts[0] is not None
    return UOp(ops.GATHER, node.dtype, (parts[0], *below[1:]))


def _written(node: UOp, below: tuple[UOp, ...], parts: Tangents) -> UOp | None:
    both = [zeros(source) if part is None else part for source, part in zip(below, parts, strict=True)]
    return UOp(ops.WRITE, node.dtype, tuple(both), node.arg)


def _turned_round(node: UOp, below: tuple[UOp, ...], parts: Tangents) -> UOp | None:
    """The gradient of a gradient for what reaches it."""
    upstream = UOp(ops.PARAM, node.dtype, (), (-1, node.shape, ""))
    products = [
        total(fitted(share, source) * part)
        for share, source, part in zip(contributions(node, below, upstream), below, parts, strict=True)
        if share is not None and part is not None
    ]
    if not products:
        return None
    return gradient(sum(products[1:], products[0]), [upstream])[0]


TANGENTS: dict[Op, Rule] = {
    **dict.fromkeys(ops.ELEMENTWISE & GRADIENTS.keys(), _by_slopes),
    **dict.fromkeys([*ops.MOVEMENT, ops.CAST, ops.COPY], _moved),
    ops.BITCAST: _nothing,
    ops.DETACH: _nothing,
    ops.REDUCE: _reduced,
    ops.GATHER: _gathered,
    ops.WRITE: _written,
    ops.LAUNCH: _turned_round,
    ops.FUNCTION: _turned_round,
}
"""The rule of every op that a tangent can meet; an op without one raises there."""
