"""Statements and reductions of a kernel in parts: once for each piece of a range that is cut.

`KERNEL` in, `KERNEL` out.  A range that is cut at a turn becomes two, whose names continue its own, and these may be
cut again.  A statement over it becomes one statement for each piece, a reduction combines those of the pieces, so a
sum over a range has the sum over the first piece on the left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, replace_ranges, transform
from lazulite.kernel.nest import by_order
from lazulite.kernel.steps import Name

_Cuts = Mapping[Name, int]
"""For each range that is cut, in the order in which they are, how many turns the first part has."""
_Table = dict[UOp, UOp]
"""What stands for ranges of the kernel."""


def parted(sink: UOp, cuts: _Cuts) -> UOp:
    """The kernel with every statement and every reduction over a range that is cut once for each part."""
    if not cuts:
        return sink
    sink = transform(sink, (ops.REDUCE,), lambda node: _part_reduction(node, {}, node.src[1:], cuts))
    stores = [part for store in sink.src for part in _part_store(store, {}, by_order(store.ranges), cuts)]
    return sink.replace(src=tuple(stores))


def _part_store(store: UOp, table: _Table, ranges: Sequence[UOp], cuts: _Cuts) -> list[UOp]:
    cut = _next_cut(ranges, cuts)
    if cut is None:
        return replace_ranges([store], table) if table else [store]
    return [part for half in _halves(cut, table, ranges, cuts) for part in _part_store(store, *half, cuts)]


def _part_reduction(node: UOp, table: _Table, ranges: Sequence[UOp], cuts: _Cuts) -> UOp:
    cut = _next_cut(ranges, cuts)
    if cut is not None:
        return UOp.apply(
            node.arg[0], *[_part_reduction(node, *half, cuts) for half in _halves(cut, table, ranges, cuts)]
        )
    return node.replace(src=(*replace_ranges([node.src[0]], table), *ranges)) if table else node


def _next_cut(ranges: Sequence[UOp], cuts: _Cuts) -> UOp | None:
    """Of these ranges the one that is cut first."""
    found = {r.arg[0]: r for r in ranges if r.arg[0] in cuts}
    return next((found[name] for name in cuts if name in found), None)


def _halves(cut: UOp, table: _Table, ranges: Sequence[UOp], cuts: _Cuts) -> Iterator[tuple[_Table, Sequence[UOp]]]:
    """For each part of a range what stands for the ranges of the kernel, and the ranges that there are then."""
    name, turns = cut.arg[0], cut.src[0].arg
    at = cuts[name]
    low, high = _loop((*name, 0), at), _loop((*name, 1), turns - at)
    for part, value in ((low, low), (high, index(at) + high)):
        values = replace_ranges(list(table.values()), {cut: value})
        yield {cut: value, **dict(zip(table, values, strict=True))}, [part if r is cut else r for r in ranges]


def _loop(name: Name, turns: int) -> UOp:
    return UOp(ops.RANGE, dtypes.index, (index(turns),), (name, "loop"))
