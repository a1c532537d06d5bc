"""How an intermediate is cut into blocks, one for each turn of ranges that its writer and a reader share.

Takes stores and loads of the `KERNEL` language, gives a `Cut`, or None where the two do not walk memory in the
same blocks.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.uop import UOp, toposort
from lazulite.simplify.terms import sum_of


@dataclass(frozen=True, slots=True)
class Cut:
    """How an intermediate is cut: the reader's range for each shared range of its producer, and what is left."""

    shared: Mapping[UOp, UOp]
    elements: int
    """The size of a block."""
    turns: int
    strides: Mapping[int, int]
    """How far apart in a block lies what lay so far apart in memory."""

    def within(self, form: Linear, ranges: Collection[UOp]) -> UOp:
        """The place in the block of the turn of these ranges."""
        rest = {t: self.strides.get(f, f) for t, f in form.terms.items() if t not in ranges}
        return sum_of(Linear(form.constant, rest))


def cut_of(store: UOp, loads: Sequence[UOp], reader: UOp, *, across: bool = False) -> Cut | None:
    """The longest common cut into blocks: of the outermost ranges, or `across`, of any."""
    written = _dense(linear(store.src[1]))
    if written is None or any(store.op is not ops.STORE for store in reader.src):
        return None
    outer = frozenset[UOp].intersection(*[store.src[1].ranges | adds_over(store) for store in reader.src])
    shared: dict[UOp, UOp] = {}
    forms = [linear(load.src[1]) for load in loads]
    for r, stride in written.items():
        partner = _partner(r, stride, forms, outer)
        if partner is not None and partner not in shared.values():
            shared[r] = partner
        elif not across:
            break
    known = _shared_by_others(reader)
    inside = frozenset(shared.values())
    if (
        not shared
        or (known and known != inside)
        or not all(_is_outermost(inside - adds_over(s), s) for s in reader.src)
    ):
        return None
    inner = {stride: r for r, stride in written.items() if r not in shared}
    size = math.prod(map(extent_of, inner.values()))
    strides = _packed(inner)
    if any(load.dtype is not store.src[2].dtype for load in loads):
        return None
    axes = None if all(old == new for old, new in strides.items()) else inner
    if not all(_reads_whole_blocks(form, inside, size, axes) for form in forms):
        return None
    return Cut(shared, size, math.prod(map(extent_of, shared)), strides)


def _packed(inner: Mapping[int, UOp]) -> dict[int, int]:
    """The strides of ranges by those that they had with others between them."""
    strides, size = {}, 1
    for stride in sorted(inner):
        strides[stride] = size
        size *= extent_of(inner[stride])
    return strides


def _is_outermost(ranges: frozenset[UOp], store: UOp) -> bool:
    """Whether memory is written block after block."""
    form = linear(store.src[1])
    least = min(form.terms.get(r, 0) for r in ranges)
    return least > 0 and all(t.op is ops.RANGE and (t in ranges or f < least) for t, f in form.terms.items())


def _dense(form: Linear) -> dict[UOp, int] | None:
    """The ranges of a row-major index over ranges alone, by stride, outermost first."""
    strides = dict(sorted(form.terms.items(), key=lambda item: -item[1]))
    stride = 1
    for r, factor in reversed(strides.items()):
        if r.op is not ops.RANGE or factor != stride:
            return None
        stride *= extent_of(r)
    return None if form.constant else strides


def _partner(r: UOp, stride: int, forms: Sequence[Linear], outer: frozenset[UOp]) -> UOp | None:
    """The range that walks all reads as this one walks the writes."""
    for candidate in sorted(outer, key=lambda o: o.arg[0]):
        if _are_alike(candidate, r) and all(form.terms.get(candidate) == stride for form in forms):
            return candidate
    return None


def _reads_whole_blocks(form: Linear, shared: Collection[UOp], size: int, axes: Mapping[int, UOp] | None) -> bool:
    """Whether a read stays in the block of its turn and walks it as a plain array, or axis by axis."""
    rest = Linear(form.constant, {t: f for t, f in form.terms.items() if t not in shared})
    if axes is None:
        walked = _dense(rest)
        return walked is not None and math.prod(map(extent_of, walked)) == size
    found = {f: extent_of(t) for t, f in rest.terms.items() if t.op is ops.RANGE}
    alike = len(found) == len(rest.terms) and not rest.constant
    return alike and found == {stride: extent_of(r) for stride, r in axes.items()}


def _shared_by_others(reader: UOp) -> frozenset[UOp]:
    """The ranges around the statements that a kernel has already."""
    filled = [n for n in toposort(reader) if n.op is ops.AFTER and n.src[1].op is not ops.RANGE]
    return frozenset[UOp]().union(*[node.ranges for node in filled])


def adds_over(store: UOp) -> frozenset[UOp]:
    """The ranges whose turns add something to a result, one after the other."""
    memory, _, value = store.src[:3]
    before = value.src[0] if value.op is ops.ADD else value
    left = before.src[0] if before.op is ops.LOAD else before
    return frozenset(left.src[1:]) if left.op is ops.AFTER and left.src[0] is memory else frozenset()


def _are_alike(r: UOp, other: UOp) -> bool:
    """Whether both have the same number of turns, which is known: blocks of rows without a number are not formed."""
    return r.src[0] is other.src[0] and r.src[0].op is ops.CONST


def extent_of(r: UOp) -> int:
    return int(r.vmax) + 1


def cut_beside(store: UOp, other: UOp, loads: Sequence[UOp], loads_of_other: Sequence[UOp]) -> Cut | None:
    """The blocks of a result in terms of the ranges of another kernel, which walks the same rows of what both read."""
    written, theirs = _dense(linear(store.src[1])), _dense(linear(other.src[0].src[1]))
    if written is None or theirs is None:
        return None
    shared: dict[UOp, UOp] = {}
    for r, partner in zip(written, theirs, strict=False):
        walks = {linear(load.src[1]).terms.get(r) for load in loads}
        if walks == {None}:
            break
        alike = walks == {linear(load.src[1]).terms.get(partner) for load in loads_of_other} and len(walks) == 1
        if not alike or not _are_alike(r, partner):
            return None
        shared[r] = partner
    inner = {stride: r for r, stride in written.items() if r not in shared}
    known = _shared_by_others(other)
    if not shared or ((known or len(other.src) > 1) and known != frozenset(shared.values())):
        return None
    return Cut(shared, math.prod(map(extent_of, inner.values())), math.prod(map(extent_of, shared)), _packed(inner))


def cut_added_up(store: UOp, other: UOp, loads: Sequence[UOp], loads_of_other: Sequence[UOp]) -> dict[UOp, UOp] | None:
    """The rows of another kernel in terms of the ranges of a sum, which runs over the innermost of them: the outermost
    ranges of the sum, and last the one that it is over.  Both walk what they read alike."""
    written, theirs = _dense(linear(store.src[1])), _dense(linear(other.src[0].src[1]))
    total = store.src[2]
    if written is None or theirs is None or total.op is not ops.REDUCE or len(total.src) != 2:
        return None
    rows = [r for r in theirs if any(r in load.src[1].ranges for load in loads_of_other)]
    own = [*list(written)[: len(rows) - 1], total.src[1]]
    if rows != list(theirs)[: len(rows)] or len(own) != len(rows) or _shared_by_others(other):
        return None
    for r, partner in zip(own, rows, strict=True):
        walks = {linear(load.src[1]).terms.get(r) for load in loads}
        walks |= {linear(load.src[1]).terms.get(partner) for load in loads_of_other}
        if len(walks) != 1 or None in walks or not _are_alike(r, partner):
            return None
    return dict(zip(own, rows, strict=True))


def vanishes(loads: Sequence[UOp], reader: UOp, cut: Cut) -> bool:
    """Whether no result varies with what runs through a block, so that one strip of it after another can be made and
    used where all of it is too long."""
    walked = frozenset[UOp]().union(*[load.src[1].ranges for load in loads]).difference(cut.shared.values())
    return all(store.ranges.isdisjoint(walked) for store in reader.src if not adds_over(store))
