"""How an index walks memory: by how much it grows with a range, and whether two of them can meet.

Takes: INDEX expressions in normal form.  Gives: facts for the scheduler and for staging.  Invariant: an
answer is a proof; what cannot be shown is answered with the careful side (no coefficient, may overlap).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lazulite.ir.bounds import linear
from lazulite.ir.uop import UOp


def coefficient(index: UOp, range_: UOp) -> int | None:
    """By how much the index grows when the range does by one; None where that is not one number."""
    found = 0
    for term, factor in linear(index).terms.items():
        if term is range_:
            found = factor
        elif range_ in term.ranges:
            return None
    return found


@dataclass(frozen=True, slots=True)
class Footprint:
    """Where an index may point: numbers from `low` to `high` that differ from `base` by multiples of `step`."""

    base: int
    step: int
    low: int
    high: int

    def meets(self, other: Footprint) -> bool:
        """Whether some number may be in both."""
        if self.high < other.low or other.high < self.low:
            return False
        step = math.gcd(self.step, other.step)
        return (self.base - other.base) % step == 0 if step else self.base == other.base


def footprint(index: UOp) -> Footprint:
    """The footprint of an index over all its ranges."""
    form = linear(index)
    return Footprint(form.constant, math.gcd(*form.terms.values()), *form.bounds)


def may_overlap(left: UOp, right: UOp) -> bool:
    """Whether two indices, each with ranges of its own, may name the same element of one memory."""
    return footprint(left).meets(footprint(right))
