"""Whether turns of a loop meet in memory: whether one reads or writes what another one writes.

Takes the facts of a `KERNEL` whose loops run in order.  Turns that never meet may be lanes, as long as every read of
written memory stays in the loops in which it is.  Invariant: what is not proven here is taken to meet.
"""

from __future__ import annotations

from collections.abc import Iterable

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.nest import extent


def apart(facts: KernelFacts) -> frozenset[UOp]:
    """The ranges whose turns may be lanes."""
    written = {store.src[0] for store in facts.sink.src}
    reads = [access for access in facts.accesses if access.op is ops.LOAD and access.src[0] in written]
    outer = [r for r in facts.outer if r not in facts.serial and not _meet(facts, r, reads)]
    sums = [node for node in facts.reductions if not any(_leaves(facts, read, node) for read in reads)]
    return frozenset([*outer, *[r for node in sums for r in node.src[1:]]])


def _meet(facts: KernelFacts, r: UOp, reads: list[UOp]) -> bool:
    """Whether turns of a range of stores may meet."""
    stores = [store for store in facts.sink.src if r in store.ranges]
    reads = [read for read in reads if any(read.src[0] is store.src[0] for store in stores)]
    before = [read for read in reads if r not in read.ranges]
    if before and (_encloses(facts, r, stores) or not _reduced_within(facts, r).isdisjoint(before)):
        return True
    along = [read for read in reads if r in read.ranges]
    around = frozenset().union(*[store.ranges for store in stores])
    if any(_moves(facts, read, [r], around) for read in along):
        return True
    forms = [(access.src[0], linear(access.src[1])) for access in (*stores, *along)]
    pairs = [(form, other) for memory, form in forms[: len(stores)] for also, other in forms if memory is also]
    return not all(_same_turn(form, other, r) for form, other in pairs)


def _encloses(facts: KernelFacts, r: UOp, stores: list[UOp]) -> bool:
    """Whether another loop runs in each turn, so that a read that does not vary with the range is made in each."""
    inner = [other for other in facts.outer if other.arg[0] > r.arg[0] and extent(other) > 1]
    return any(other in store.ranges for other in inner for store in stores)


def _reduced_within(facts: KernelFacts, r: UOp) -> set[UOp]:
    """What is read for reductions that are made in each turn."""
    return {node for reduction in facts.reductions if r in reduction.ranges for node in toposort(reduction.src[0])}


def _leaves(facts: KernelFacts, read: UOp, reduction: UOp) -> bool:
    """Whether a read for a reduction would leave a loop, were the reduction's turns lanes."""
    inside = read.ranges.intersection(reduction.src[1:]) and read in toposort(reduction.src[0])
    return bool(inside) and _moves(facts, read, reduction.src[1:], reduction.ranges)


def _moves(facts: KernelFacts, read: UOp, lanes: Iterable[UOp], around: Iterable[UOp]) -> bool:
    """Whether a read leaves a loop around it when ranges are lanes and no loop at all."""
    gone = [r for r in lanes if extent(r) <= facts.lanes]
    own, all_of_them = [[r.arg[0] for r in ranges if r not in gone] for ranges in (read.ranges, around)]
    return bool(gone) and bool(all_of_them) and (not own or max(own) < max(all_of_them))


def _same_turn(form: Linear, other: Linear, r: UOp) -> bool:
    """Whether two indices are equal in equal turns of a range only: all else moves them by whole rows of it, or by
    less than a step."""
    step = form.terms.get(r, 0)
    if not step or other.terms.get(r, 0) != step:
        return False
    row = abs(step) * extent(r)
    (low, high), (least, most) = (_within(each, r, row) for each in (form, other))
    rows = (2 * (low - least) + row) // (2 * row) * row  # by which the constants differ
    return -abs(step) < low - most - rows and high - least - rows < abs(step)


def _within(form: Linear, r: UOp, row: int) -> tuple[int, int]:
    """The least and the largest that an index is, apart from a range and from whole rows of it."""
    low = high = form.constant
    for term, factor in form.terms.items():
        if term is not r and factor % row:
            ends = sorted((factor * int(term.bounds[0]), factor * int(term.bounds[1])))
            low, high = low + ends[0], high + ends[1]
    return low, high
