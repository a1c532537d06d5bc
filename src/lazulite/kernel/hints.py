"""Choose what to tell the memory system: which rows to ask for early, and which results to keep out of the caches.

A kernel that walks a row more than once finds it near from the second pass on, and then memory idles; so that
pass asks for the next row.  A result too large for the caches would only push out what is read again, and an
ordinary store reads each line before it writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lazulite.ir import ops
from lazulite.ir.uop import UOp
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.nest import by_order, count
from lazulite.kernel.steps import Prefetch, Stream

_SHORTEST_ROW = 512
"""Bytes of a row below which the processor's own prefetching keeps up."""
_DEAR_TURN = 8
"""What a sum computes for each vector that it reads, from which on reading falls behind (measured with weights in few
bits, from memory: 1.7 times as fast)."""
_STREAMED_FROM = 8
"""How many times the second caches of all threads a result must fill to go past the caches (measured: 32 MB of two
threads; the third cache, which others use too, holds no more for long)."""


def choose_hints(facts: KernelFacts, lanes: frozenset[UOp]) -> list[Prefetch | Stream]:
    """The hints for a kernel with these lanes."""
    walks = _walks(facts, lanes)
    return [*_again(facts, walks), *_once(facts, walks), *_streams(facts, lanes)]


Walks = Mapping[UOp, Mapping[UOp, UOp]]
"""For each operand its loads that walk along lanes in order, by the range of these."""


def _walks(facts: KernelFacts, lanes: frozenset[UOp]) -> Walks:
    walks: dict[UOp, dict[UOp, UOp]] = {}
    for load in facts.accesses:
        lane = next(iter(load.ranges & lanes), None)
        if load.op is ops.LOAD and load.src[0].op is ops.PARAM and lane is not None and facts.stride(load, lane) == 1:
            walks.setdefault(load.src[0], {})[lane] = load
    return walks


def _once(facts: KernelFacts, walks: Walks) -> Iterator[Prefetch]:
    """For each operand of dear sums whose elements are read once each, the next turn of the innermost loop around them.

    So much is computed for a line that the processor, which looks ahead over so many instructions only, waits for it.
    """
    for memory, loads in walks.items():
        ((lane, load), *more) = loads.items()
        reduction = facts.hot.get(load)
        around = by_order(r for r in facts.outer if r in load.ranges and r is not lane)
        if more or not around or reduction is None or facts.turn_costs[reduction] < _DEAR_TURN:
            continue
        turn = abs(facts.stride(load, around[-1]) or 0) * memory.dtype.itemsize
        if reduction.src[0].ranges <= load.ranges and _SHORTEST_ROW <= turn <= facts.target.l2 // 8:
            yield Prefetch(memory.arg[0], lane.arg[0], around[-1].arg[0])


def _again(facts: KernelFacts, walks: Walks) -> Iterator[Prefetch]:
    """For each operand that is walked row by row several times, the dearest walk but the first."""
    costs = {r: cost for node, cost in facts.turn_costs.items() for r in node.src[1:]}
    passes = list(costs)  # the walks of the results come after those of all reductions
    for memory, loads in walks.items():
        first, *again = sorted(loads, key=lambda r: passes.index(r) if r in costs else len(passes))
        around = [r for r in facts.outer if r not in loads and all(r in load.ranges for load in loads.values())]
        row, whole = (count(ranges) * memory.dtype.itemsize for ranges in ([first], loads[first].ranges))
        if again and around and _SHORTEST_ROW <= row <= facts.target.l2 // 8 and whole > facts.target.l2:
            dearest = max(again, key=lambda r: costs.get(r, 0))
            yield Prefetch(memory.arg[0], dearest.arg[0], by_order(around)[-1].arg[0])


def _streams(facts: KernelFacts, lanes: frozenset[UOp]) -> Iterator[Stream]:
    """Results that no cache holds, written in order and not read by the kernel itself."""
    read = {access.src[0] for access in facts.accesses if access.op is ops.LOAD}
    limit = _STREAMED_FROM * facts.target.l2 * facts.target.threads
    for store in facts.sink.src:
        memory = store.src[0]
        large = count(store.ranges) * memory.dtype.itemsize >= limit and memory not in read
        if large and any(facts.stride(store, r) == 1 for r in store.ranges & lanes):
            yield Stream(memory.arg[0])
