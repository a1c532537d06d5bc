"""How an index walks memory: by how much it grows with a range, whether two of them can meet, and whether one
names an element twice.

Takes: INDEX expressions in normal form.  Gives: facts for the scheduler and for staging.  Invariant: an
answer is a proof; what cannot be shown is answered with the careful side (no coefficient, may overlap).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.uop import UOp
from lazulite.simplify.normal import normal


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


def repeats(place: UOp, ranges: Iterable[UOp]) -> frozenset[UOp]:
    """The ranges of which two turns may name the same element: those that the index does not determine."""
    known = _digits(place)
    divisors = {node.src[1] for node in known if node.op in (ops.FLOORDIV, ops.MOD)}
    return frozenset(r for r in ranges if not _is_known(r, known, divisors))


def _digits(place: UOp) -> set[UOp]:
    """The terms whose values follow from the index: each weighs more than all smaller ones can add up to."""
    terms = sorted(linear(place).terms.items(), key=lambda pair: abs(pair[1]))
    found: list[UOp] = []
    span, alone = 0, True
    for term, factor in terms:
        low, high = term.bounds
        if abs(factor) <= span:
            if alone:
                found.pop()
            alone = False
        else:
            found.append(term)
            alone = True
        span += abs(factor) * int(high - low)
    return set(found)


def _is_known(node: UOp, known: set[UOp], divisors: set[UOp]) -> bool:
    """Whether a number follows from the known ones: it is one, or both its parts by some divisor are."""
    if node in known or node.op is ops.CONST:
        return True
    if not (node.op is ops.RANGE or node.op is ops.FLOORDIV):
        return False
    for divisor in divisors:
        rest = normal(ops.MOD, node.dtype, (node, divisor))
        if rest in known and rest is not node and _is_known(normal(ops.FLOORDIV, node.dtype, (node, divisor)), known,
                                                            divisors):  # fmt: skip
            return True
    return False
