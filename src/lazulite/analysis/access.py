"""How an index walks memory: by how much it grows with a range, and whether two of them can meet.

Takes: INDEX expressions in normal form.  Gives: facts for the scheduler and for staging.  Invariant: an
answer is a proof; what cannot be shown is answered with the careful side (no coefficient, may overlap).
"""

from __future__ import annotations

import math

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


def may_overlap(left: UOp, right: UOp) -> bool:
    """Whether two indices, each with ranges of its own, may name the same element of one memory."""
    a, b = linear(left), linear(right)
    if a.bounds[1] < b.bounds[0] or b.bounds[1] < a.bounds[0]:
        return False
    common = math.gcd(*a.terms.values(), *b.terms.values())
    return (a.constant - b.constant) % common == 0 if common else a.constant == b.constant
