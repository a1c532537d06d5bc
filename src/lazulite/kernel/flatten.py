"""Merge neighbouring ranges that memory is walked through as if they were one.

`KERNEL` in, `KERNEL` out.  Ranges i and j become one where every index holds them as the same
multiple of `i * extent(j) + j` and nothing else asks for them: then vectors run across the border
between rows, and a remainder occurs once in the whole tensor instead of once a row.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence, Set

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, nodes_of, toposort
from lazulite.kernel.nest import by_order
from lazulite.simplify.terms import multiple, plus


class _Walk:
    """Ranges that are walked through as one, outermost first: how far each index moves with one turn, and with all."""

    __slots__ = ("extent", "members", "spans", "steps")

    def __init__(self, members: tuple[UOp, ...], extent: int, steps: list[int]) -> None:
        self.members, self.extent, self.steps = members, extent, steps
        self.spans = [extent * step for step in steps]


def flatten(sink: UOp, among: Iterable[UOp] | None = None) -> UOp:
    """The kernel with every such pair (`among` these) merged; the merged range has the order of the outer one."""
    orders = None if among is None else {r.arg[0] for r in among}
    if orders is not None and len(orders) < 2:
        return sink
    nodes = nodes_of(sink) if orders is None else _nodes_over(orders, sink)
    loops = [n for n in nodes if n.op is ops.RANGE and n.arg[1] == "loop" and n.src[0].op is ops.CONST]
    ranges = by_order(loops if orders is None else [r for r in loops if r.arg[0] in orders])
    if len(ranges) < 2:
        return sink
    forms = [linear(place) for place in {n.src[1]: None for n in nodes if n.op is ops.LOAD or n.op is ops.STORE}]
    walks = [_Walk((r,), r.src[0].arg, [form.terms.get(r, 0) for form in forms]) for r in ranges]
    if not any(True for _ in _pairs(walks)):
        return sink
    merged = [walk for walk in _merged(walks, _Uses(sink, nodes, forms)) if len(walk.members) > 1]
    return _rewritten(nodes, merged) if merged else sink


def _nodes_over(orders: Container[object], sink: UOp) -> list[UOp]:
    """The nodes below which ranges of these orders may occur: a nest that fills memory is walked only then."""

    def varies(node: UOp) -> bool:
        return node.op is not ops.AFTER or any(r.arg[0] in orders for r in node.ranges)

    return toposort(sink, enter=varies)


def _pairs(walks: Sequence[_Walk]) -> Iterator[tuple[_Walk, _Walk]]:
    """Those that memory is walked through as if they were one: the outer one goes on where the inner one ends."""
    return ((outer, inner) for outer in walks for inner in walks if outer.steps == inner.spans and inner is not outer)


class _Uses:
    """Where a kernel speaks of ranges, which decides what becomes one."""

    def __init__(self, sink: UOp, nodes: Sequence[UOp], forms: Sequence[Linear]) -> None:
        self.stores = sink.src
        self.fixed = _used_otherwise(nodes, forms)
        self.reductions = [node for node in nodes if node.op is ops.REDUCE]

    def allow(self, outer: UOp, inner: UOp) -> bool:
        """Whether nothing tells two ranges apart: they are reduced in the same places, or are in the same stores."""
        if outer in self.fixed or inner in self.fixed:
            return False
        closers = [[node for node in self.reductions if r in node.src[1:]] for r in (outer, inner)]
        if closers[0] != closers[1]:
            return False
        return bool(closers[0]) or all((outer in s.ranges) == (inner in s.ranges) for s in self.stores)


def _merged(walks: Sequence[_Walk], uses: _Uses) -> Sequence[_Walk]:
    """The walks with one in place of every two, as long as there are some."""
    while True:
        found = next((p for p in _pairs(walks) if uses.allow(p[0].members[0], p[1].members[0])), None)
        if found is None:
            return walks
        outer, inner = found
        joined = _Walk((*outer.members, *inner.members), outer.extent * inner.extent, inner.steps)
        walks = [joined if walk is outer else walk for walk in walks if walk is not inner]


def _used_otherwise(nodes: Sequence[UOp], forms: Sequence[Linear]) -> set[UOp]:
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


def _rewritten(nodes: Sequence[UOp], walks: Iterable[_Walk]) -> UOp:
    """The kernel with one range for each of these walks."""
    first: dict[UOp, UOp] = {}
    last: dict[UOp, UOp] = {}
    gone: set[UOp] = set()
    for walk in walks:
        one = walk.members[0].replace(src=(index(walk.extent),))
        first[walk.members[0]] = last[walk.members[-1]] = one
        gone.update(walk.members[1:])
    members, done = first.keys() | gone, dict[UOp, UOp]()
    for node in nodes:
        src = node.src if done.keys().isdisjoint(node.src) else tuple([done.get(s, s) for s in node.src])
        if node.op is ops.LOAD or node.op is ops.STORE:
            src = (src[0], _merged_index(node.src[1], done, members, last), *src[2:])
        elif node.op is ops.REDUCE and not gone.isdisjoint(node.src[1:]):
            src = (src[0], *[first.get(r, r) for r in node.src[1:] if r not in gone])
        if src != node.src:
            done[node] = UOp(node.op, node.dtype, src, node.arg)
    return done.get(nodes[-1], nodes[-1])


def _merged_index(node: UOp, done: dict[UOp, UOp], members: Set[UOp], last: dict[UOp, UOp]) -> UOp:
    """The index with the merged range instead of the innermost one of each walk."""
    form = linear(node)
    if members.isdisjoint(form.terms):
        return done.get(node, node)
    total = index(form.constant)
    for term, factor in form.terms.items():
        part = last.get(term) if term in members else done.get(term, term)
        if part is not None:
            total = plus(multiple(part, factor), total)
    return total
