"""Rewrites a kernel until every elementwise operation is one that the target has.

Takes a `KERNEL` or `LOOP` graph and the question `native(node)`; gives an equal graph in which each
elementwise node is native or has no decomposition (the emitter then refuses it by name).  Lower by
default: a target lists what it has, everything else is written in simpler operations by the tables
of the `decompose_*` modules.  Values keep their meaning exactly, except for the elementary functions,
which keep the bounds of `transcendental` and `trigonometry`.

The walk is iterative and each node is visited once, sources first, so shared subexpressions stay shared.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp, nodes_of, toposort
from lazulite.lower import (
    decompose_cast,
    decompose_float,
    decompose_fma,
    decompose_integer,
    decompose_narrow,
    decompose_random,
    power,
    transcendental,
    trigonometry,
)
from lazulite.lower.build import Native, Rule

RULES: dict[Op, Rule] = {
    **decompose_cast.RULES,
    **decompose_float.RULES,
    **decompose_fma.RULES,
    **decompose_integer.RULES,
    **decompose_random.RULES,
    **power.RULES,
    **transcendental.RULES,
    **trigonometry.RULES,
}


def decompose(root: UOp, native: Native) -> UOp:
    """The graph below `root` in operations for which `native` is true.

    >>> from lazulite.ir.dtype import dtypes
    >>> x = UOp(ops.SCALAR, dtypes.int32, (), (0, None, None))
    >>> decompose(~x, lambda node: node.op is not ops.NOT) is x ^ -1
    True
    """
    nodes = nodes_of(root)
    first = next((place for place, node in enumerate(nodes)
                  if node.op in ops.ELEMENTWISE and expanded(node, native) is not None), None)  # fmt: skip
    if first is None:
        return root
    done = {node: node for node in nodes[:first]}
    for node in nodes[first:]:
        src = tuple([done[source] for source in node.src])
        rebuilt = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        simpler = expanded(rebuilt, native)
        if simpler is None:
            done[node] = done[rebuilt] = rebuilt
        else:
            done[node] = _lowered(rebuilt, simpler, native, done)
    return done[root]


def _lowered(root: UOp, simpler: UOp, native: Native, done: dict[UOp, UOp]) -> UOp:
    """What becomes of a node, the first step of which is given; `done` knows its sources, and takes in the rest."""
    expansions = {root: simpler}
    pending = [root, *reversed(toposort(simpler, enter=lambda n: n not in done))]
    while pending:
        node = pending.pop()
        if node in done:
            continue
        if node in expansions:
            done[node] = done[expansions[node]]
            continue
        src = tuple([done[source] for source in node.src])
        rebuilt = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        following = expanded(rebuilt, native)
        if following is None:
            done[node] = done[rebuilt] = rebuilt
        else:
            expansions[node] = following
            pending.append(node)
            pending += reversed(toposort(following, enter=lambda n: n not in done))
    return done[root]


def expanded(node: UOp, native: Native) -> UOp | None:
    """One step: the node in simpler operations; None if it is native or nothing is simpler."""
    if node.op not in ops.ELEMENTWISE or native(node):
        return None
    wider = decompose_narrow.widened(node)
    if wider is not None:
        return wider
    rule = RULES.get(node.op)
    return rule(node, native) if rule is not None else None
