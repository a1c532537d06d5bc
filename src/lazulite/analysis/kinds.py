"""What kind of work a `TENSOR` node is, and what an element of it costs.

Costs are in units of one vector instruction per element; they rank alternatives (recompute or
store), they predict no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lazulite.ir import ops
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp

LEAVES = frozenset({ops.PARAM, ops.BUFFER, ops.CONST, ops.SCALAR, ops.IOTA, ops.AFTER})
"""What a kernel reads without computing it.  An AFTER is memory as the stores of a plan leave it."""
OPAQUE = frozenset({ops.COPY, ops.LAUNCH})
HERE = "here"
"""The `arg` of a COPY that stays on its device: the value is computed straight into memory of its own.  Without an
`arg` a COPY first has its source computed into memory, and then copies that."""

_DEAR: dict[Op, int] = {
    ops.DIV: 4, ops.SQRT: 4, ops.FLOORDIV: 8, ops.MOD: 8, ops.EXP: 8, ops.EXP2: 8, ops.LOG: 10, ops.LOG2: 10,
    ops.SIN: 20, ops.COS: 20, ops.TAN: 24, ops.TANH: 10, ops.ERF: 16, ops.POW: 30, ops.THREEFRY: 60,
}  # fmt: skip

_GATHER_COST = 4
"""A load from anywhere; what it loads from lies in memory."""


def crosses(node: UOp) -> bool:
    """Whether this is a COPY to another device."""
    return node.op is ops.COPY and node.arg not in ("", HERE)


def is_elementwise(node: UOp) -> bool:
    """One element of the result from one element of each source (a BITCAST of equal width included)."""
    if node.op is ops.BITCAST:
        return node.dtype.itemsize == node.src[0].dtype.itemsize
    return node.op in ops.ELEMENTWISE


def own_cost(node: UOp) -> int:
    """The cost of one element of an elementwise node, its sources apart."""
    return _DEAR.get(node.op, 0 if node.op in (ops.CAST, ops.BITCAST) else 1)


@dataclass(frozen=True, slots=True)
class Facts:
    """What fusion wants to know about a node without looking below it again."""

    chain_cost: int
    """The cost of recomputing one element from the nearest leaves, reductions and values that are likely to be
    stored, because several nodes read them and they are not cheap."""
    above_reduce: bool
    """Whether this is an epilogue: work that nothing else reads leads down to a reduction of no fewer elements."""
    depth: int
    """How many reductions lie on the longest path below, this node included."""


_CAP = 1 << 20
FEW_ROWS = 16
"""Fewer results than this do not keep all threads busy."""
LONG = 1 << 20
"""A reduction over so many elements is worth a second kernel, if that lets threads share it."""
CHEAP = 6
"""Recomputing a chain of this cost is better than a trip through memory."""


def gather_facts(order: Sequence[UOp]) -> dict[UOp, Facts]:
    """The facts of every node of a topological order."""
    facts: dict[UOp, Facts] = {}
    below: dict[UOp, int] = {}  # what a reader adds to its cost for reading the node
    readers = _reader_counts(order)
    for node in order:
        depth = 0 if node.op in LEAVES else max([facts[source].depth for source in node.src], default=0)
        cost, epilogue = 0, False
        if node.op is ops.REDUCE:
            depth, epilogue = depth + 1, True
        elif node.op is ops.GATHER:
            cost = sum([below[source] for source in node.src[1:]]) + _GATHER_COST
        elif node.op not in LEAVES and node.op not in OPAQUE:
            cost = sum([below[source] for source in node.src]) + (own_cost(node) if is_elementwise(node) else 0)
            alone = any(facts[s].above_reduce and readers[s] == 1 for s in node.src)
            epilogue = alone and node.op is not ops.EXPAND
        facts[node] = Facts(cost, epilogue, depth)
        below[node] = 0 if cost > CHEAP and readers[node] > 1 else min(cost, _CAP)
    return facts


def _reader_counts(order: Sequence[UOp]) -> dict[UOp, int]:
    """How many nodes read each node; comparisons, whose results are small, do not count beside others."""
    counts = dict.fromkeys(order, 0)
    for node in order:
        if node.op not in ops.COMPARISONS:
            for source in dict.fromkeys(node.src):
                counts[source] += 1
    return {node: max(count, 1) for node, count in counts.items()}
