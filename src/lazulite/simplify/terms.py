"""The canonical order of terms: sums, products and conjunctions in the nesting order of their ranges.

Terms that vary with outer ranges only come first, so that the partial sums over them can be
computed outside the inner loops; a constant comes last.  Ties are broken by structure, never by
identity or address, so equal programs give equal text in every process.

Takes: parts of an expression.  Gives: them in order, and `sum_of`, the normal form of a linear
expression.  Invariant: `sum_of(linear(node))` is the same node for equal linear forms, and every
prefix of the chain of additions it builds is itself in normal form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lazulite.ir import ops
from lazulite.ir.bounds import Linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index

ZERO = index(0)
Key = tuple[Any, ...]
_MOST_NODES = 64
"""Expressions larger than this are not compared by structure; they keep the order they came in."""


def nesting(node: UOp) -> Key:
    """The orders of the ranges of an expression, the innermost first; smaller is further out."""
    if node.op is ops.RANGE:
        return (node.arg[0],)
    return tuple(sorted([r.arg[0] for r in node.ranges], reverse=True))


def in_order(nodes: Iterable[UOp]) -> list[UOp]:
    """The nodes sorted outermost first."""
    nodes = list(nodes)
    if len(nodes) < 2:
        return nodes
    keys: list[Key] = [(nesting(node), node.op.number) for node in nodes]
    if len(set(keys)) < len(keys):
        keys = [(*key, structure(node)) for key, node in zip(keys, nodes, strict=True)]
    return [nodes[place] for place in sorted(range(len(nodes)), key=keys.__getitem__)]


def structure(root: UOp) -> Key:
    """A key that orders small expressions by what they look like; one key for all large ones."""
    positions: dict[UOp, int] = {}
    listed: list[Key] = []
    pending = [root]
    while pending:
        node = pending.pop()
        if node in positions:
            listed.append((-1, positions[node], "", 0))
            continue
        if len(positions) == _MOST_NODES:
            return ((0, 0, "large", 0),)
        positions[node] = len(positions)
        listed.append((node.op.number, node.dtype.number, repr(node.arg), len(node.src)))
        pending += node.src
    return tuple(listed)


def sum_of(form: Linear) -> UOp:
    """The linear expression as a chain of additions in canonical order."""
    constant, total = form.constant, None
    variable = []
    for term, factor in form.terms.items():
        low, high = term.bounds
        if low == high:
            constant += int(low) * factor
        else:
            variable.append(term)
    for term in in_order(variable):
        part = multiple(term, form.terms[term])
        total = part if total is None else UOp(ops.ADD, dtypes.index, (total, part))
    if total is None:
        return index(constant)
    return UOp(ops.ADD, dtypes.index, (total, index(constant))) if constant else total


def plus(left: UOp, right: UOp) -> UOp:
    """The sum of two parts of an index, in this order."""
    if right is ZERO:
        return left
    return right if left is ZERO else UOp(ops.ADD, dtypes.index, (left, right))


def multiple(term: UOp, factor: int) -> UOp:
    """A term that is no sum, `factor` times."""
    return term if factor == 1 else UOp(ops.MUL, dtypes.index, (term, index(factor)))
