"""Renumbering: one form for graphs that differ only in storages and in how ranges are numbered.

A BUFFER becomes a PARAM, with slots by first visit; distinct slots that a graph has already are its
interface and stay.  Scratch memory is counted by first visit, ranges by their relative order.  Keys
and printed text are made from this form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lazulite.ir import ops
from lazulite.ir.size import rebound, sizes_exist, variables_in
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
    leaves, sized = _leaves(order)
    if any(map(_is_named, leaves)) or len({leaf.arg[0] for leaf in leaves}) < len(leaves):
        slots = {leaf: slot for slot, leaf in enumerate(leaves)}
        table = {leaf: _slotted(leaf, slots) for leaf in leaves}
    else:
        table = {}
        leaves.sort(key=lambda leaf: leaf.arg[0])
    scratch = [node for node in order if node.op is ops.SCRATCH]
    table |= {node: node.replace(arg=(number, *node.arg[1:])) for number, node in enumerate(scratch)}
    table |= _ordered_ranges(order)
    table = {node: renamed for node, renamed in table.items() if node is not renamed}
    if sized and table:
        return _with_sizes(order, roots, table), leaves
    return (substitute(roots, table) if table else list(roots)), leaves


def _leaves(order: Sequence[UOp]) -> tuple[list[UOp], bool]:
    """Memory and scalars, and whether there are some in sizes that vary."""
    leaves: dict[UOp, None] = {}
    sized = False
    for node in order:
        if sizes_exist():
            variables = list(variables_in(node.arg))
            sized |= bool(variables)
            leaves |= dict.fromkeys(variables)
        if node.op in _SLOTTED:
            leaves[node] = None
    return list(leaves), sized


def _is_named(leaf: UOp) -> bool:
    """Whether a leaf has something else than a slot: a storage, or the name of a variable."""
    return leaf.op is ops.BUFFER or isinstance(leaf.arg[0], str)


def _slotted(leaf: UOp, slots: Mapping[UOp, int]) -> UOp:
    slot = slots[leaf]
    if leaf.op is ops.SCALAR:
        return leaf.replace(arg=(slot, *leaf.arg[1:3]))
    shape, device = leaf.arg[-2:]
    return UOp(ops.PARAM, leaf.dtype, (), (slot, rebound(shape, lambda size: _slotted(size, slots)), device))


def _with_sizes(order: Sequence[UOp], roots: Sequence[UOp], table: Mapping[UOp, UOp]) -> list[UOp]:
    """As `substitute`, and in the sizes that vary too."""
    done = dict(table)
    for node in order:
        if node not in done:
            arg = rebound(node.arg, lambda leaf: table.get(leaf, leaf))
            done[node] = UOp(node.op, node.dtype, tuple([done[s] for s in node.src]), arg)
    return [done[root] for root in roots]


def _ordered_ranges(order: Sequence[UOp]) -> dict[UOp, UOp]:
    """Each range with its place among all as its order; equal orders stay in order of first visit."""
    ranges = [node for node in order if node.op is ops.RANGE]
    places = {node: place for place, node in enumerate(sorted(ranges, key=lambda r: r.arg[0]))}
    table: dict[UOp, UOp] = {}
    for node in ranges:  # an extent may vary over ranges further out, which come first
        extent = substitute(node.src, table)
        table[node] = UOp(ops.RANGE, node.dtype, tuple(extent), ((places[node],), node.arg[1]))
    return table
