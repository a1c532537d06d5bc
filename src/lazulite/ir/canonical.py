"""Renumbering: one form for graphs that differ only in storages and in how ranges are numbered.

A BUFFER becomes a PARAM, with slots by first visit; distinct slots that a graph has already are its
interface and stay.  Scratch memory is counted by first visit, ranges by their relative order.  Keys
and printed text are made from this form.
"""

from __future__ import annotations

from collections.abc import Sequence

from lazulite.ir import ops
from lazulite.ir.uop import UOp, substitute, toposort

_SLOTTED = frozenset({ops.PARAM, ops.BUFFER, ops.SCALAR})


def canonical(root: UOp) -> UOp:
    """The graph in its one form.

    >>> from lazulite.ir.dtype import dtypes
    >>> canonical(UOp(ops.BUFFER, dtypes.int32, (), (831, 2, (4,), "CPU"))).arg
    (0, (4,), 'CPU')
    """
    return canonical_with(root)[0][0]


def canonical_with(*roots: UOp) -> tuple[list[UOp], list[UOp]]:
    """The roots renumbered together, and the leaves in the order of their slots."""
    order = toposort(*roots)
    leaves = [node for node in order if node.op in _SLOTTED]
    if any(leaf.op is ops.BUFFER for leaf in leaves) or len({leaf.arg[0] for leaf in leaves}) < len(leaves):
        table = {leaf: _slotted(leaf, slot) for slot, leaf in enumerate(leaves)}
    else:
        table = {}
        leaves.sort(key=lambda leaf: leaf.arg[0])
    scratch = [node for node in order if node.op is ops.SCRATCH]
    table |= {node: node.replace(arg=(number, *node.arg[1:])) for number, node in enumerate(scratch)}
    table |= _ordered_ranges(order)
    table = {node: renamed for node, renamed in table.items() if node is not renamed}
    return (substitute(roots, table) if table else list(roots)), leaves


def _slotted(leaf: UOp, slot: int) -> UOp:
    if leaf.op is ops.BUFFER:
        return UOp(ops.PARAM, leaf.dtype, (), (slot, *leaf.arg[2:]))
    return leaf.replace(arg=(slot, *leaf.arg[1:]))


def _ordered_ranges(order: Sequence[UOp]) -> dict[UOp, UOp]:
    """Each range with its place among all as its order; equal orders stay in order of first visit."""
    ranges = [node for node in order if node.op is ops.RANGE]
    places = {node: place for place, node in enumerate(sorted(ranges, key=lambda r: r.arg[0]))}
    table: dict[UOp, UOp] = {}
    for node in ranges:  # an extent may vary over ranges further out, which come first
        extent = substitute(node.src, table)
        table[node] = UOp(ops.RANGE, node.dtype, tuple(extent), ((places[node],), node.arg[1]))
    return table
