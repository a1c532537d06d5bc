"""Merge neighbouring ranges that memory is walked through as if they were one.

`KERNEL` in, `KERNEL` out.  Ranges i and j become one where every index holds them as the same
multiple of `i * extent(j) + j` and nothing else asks for them: then vectors run across the border
between rows, and a remainder occurs once in the whole tensor instead of once a row.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, toposort


def flatten(sink: UOp, among: Iterable[UOp] | None = None) -> UOp:
    """The kernel with every such pair (`among` these) merged; the merged range has the order of the outer one."""
    orders = None if among is None else {r.arg[0] for r in among}
    while orders is None or len(orders) > 1:
        nodes = toposort(sink, enter=None if orders is None else lambda node: _varies(node, orders))
        pair = _mergeable(sink, nodes, orders)
        if pair is None:
            return sink
        sink = _merge(nodes, *pair)
    return sink


def _varies(node: UOp, orders: Container[object]) -> bool:
    """Whether ranges of these orders may occur below a node: a nest that fills memory is walked only then."""
    return node.op is not ops.AFTER or any(r.arg[0] in orders for r in node.ranges)


def _mergeable(sink: UOp, nodes: Sequence[UOp], orders: Container[object] | None) -> tuple[UOp, UOp] | None:
    whole = (n for n in nodes if n.op is ops.RANGE and n.arg[1] == "loop" and n.src[0].op is ops.CONST)
    ranges = sorted((r for r in whole if orders is None or r.arg[0] in orders), key=lambda r: r.arg[0])
    if len(ranges) < 2:
        return None
    forms = [linear(n.src[1]) for n in nodes if n.op in (ops.LOAD, ops.STORE)]
    fixed = _used_otherwise(nodes, forms)
    closers = {r: [n for n in nodes if n.op is ops.REDUCE and r in n.src[1:]] for r in ranges}
    free = [r for r in ranges if r not in fixed]
    for outer in free:
        for inner in free:
            if inner is not outer and _as_one(outer, inner, forms) and closers[outer] == closers[inner]:
                if not closers[outer] and any((outer in s.ranges) != (inner in s.ranges) for s in sink.src):
                    continue
                return outer, inner
    return None


def _used_otherwise(nodes: Sequence[UOp], forms: list[Linear]) -> set[UOp]:
    """Ranges that occur outside of the linear part of an index."""
    fixed: set[UOp] = set()
    for form in forms:
        for term in form.terms:
            if term.op is not ops.RANGE:
                fixed |= term.ranges
    for node in nodes:
        if node.op is ops.RANGE:
            fixed |= node.src[0].ranges
        if node.dtype is not dtypes.index and node.op not in (ops.LOAD, ops.STORE, ops.REDUCE):
            fixed |= {r for s in node.src if s.dtype is dtypes.index for r in s.ranges}
        if node.op is ops.FOR:  # a copy into scratch memory: its loops are there already
            fixed.add(node.src[0])
    return fixed


def _as_one(outer: UOp, inner: UOp, forms: list[Linear]) -> bool:
    extent = inner.src[0].value
    return all(form.terms.get(outer, 0) == extent * form.terms.get(inner, 0) for form in forms)


def _merge(nodes: Sequence[UOp], outer: UOp, inner: UOp) -> UOp:
    extent = int(outer.src[0].value) * int(inner.src[0].value)
    merged = outer.replace(src=(index(extent),))
    done: dict[UOp, UOp] = {}
    for node in nodes:
        src = tuple([done.get(s, s) for s in node.src])
        if node.op in (ops.LOAD, ops.STORE):
            src = (src[0], _merged_index(node.src[1], done, outer, inner, merged), *src[2:])
        elif node.op is ops.REDUCE and inner in node.src[1:]:
            src = (src[0], *[merged if r is outer else r for r in node.src[1:] if r is not inner])
        done[node] = node if src == node.src else node.replace(src=src)
    return done[nodes[-1]]


def _merged_index(node: UOp, done: dict[UOp, UOp], outer: UOp, inner: UOp, merged: UOp) -> UOp:
    form = linear(node)
    if outer not in form.terms and inner not in form.terms:
        return done.get(node, node)
    total = index(form.constant)
    for term, factor in form.terms.items():
        if term is not outer:
            part = merged if term is inner else done.get(term, term)
            product = part if factor == 1 else part * factor
            total = product if total.is_const(0) else product + total
    return total
