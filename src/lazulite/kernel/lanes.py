"""Choose which ranges become the lanes of vectors.

At most one range of the stores, and one range of each reduction that does not vary with it.  Every
choice is judged by the same estimate of the instructions that run: a contiguous access costs one
instruction per vector, a scattered one as many as there are lanes.
"""

from __future__ import annotations

from collections.abc import Collection

from lazulite.ir.uop import UOp
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.nest import extent


def choose_lanes(facts: KernelFacts, free: Collection[UOp]) -> frozenset[UOp]:
    """The ranges whose turns become lanes, among those that are free to."""
    best: frozenset[UOp] = frozenset()
    least = facts.work(best)
    for first in [None, *[r for r in facts.outer if r in free and extent(r) > 1]]:
        chosen, work = _with_reductions(facts, frozenset(() if first is None else (first,)), free)
        if work < least:
            best, least = chosen, work
    return best


def _with_reductions(facts: KernelFacts, chosen: frozenset[UOp], free: Collection[UOp]) -> tuple[frozenset[UOp], float]:
    """Add a range for every reduction that gains by it."""
    least = facts.work(chosen)
    for reduction in facts.reductions:
        more = [chosen | {r} for r in reduction.src[1:] if extent(r) > 1 and r in free and r not in chosen]
        judged = [(facts.work(lanes), lanes) for lanes in more if _compatible(facts, lanes)]
        work, lanes = min(judged, key=lambda pair: pair[0], default=(least, chosen))
        if work < least:
            chosen, least = lanes, work
    return chosen, least


def _compatible(facts: KernelFacts, chosen: frozenset[UOp]) -> bool:
    """Whether no value varies with two of the ranges."""
    return len(chosen) < 2 or all(len(chosen & ranges) < 2 for ranges in facts.variations)
