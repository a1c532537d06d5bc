"""Whether an index names an element twice.

Takes an INDEX expression in normal form.  Invariant: a range that is not among those answered provably never
repeats; the others may.
"""

from __future__ import annotations

from collections.abc import Iterable

from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.uop import UOp
from lazulite.simplify.normal import normal


def repeats(place: UOp, ranges: Iterable[UOp]) -> frozenset[UOp]:
    """The ranges of which two turns may name the same element: those that the index does not determine."""
    known = _digits(place)
    divisors = {node.src[1] for node in known if node.op in (ops.FLOORDIV, ops.MOD)}
    return frozenset(r for r in ranges if not _is_known(r, known, divisors))


def _digits(place: UOp) -> set[UOp]:
    """The terms whose values follow from the index: each weighs more than all smaller ones can add up to.

    What is the same in all turns, such as an argument of the kernel, moves all elements alike.
    """
    terms = linear(place).terms.items()
    varying = [pair for pair in terms if pair[0].ranges and pair[0].bounds[0] != pair[0].bounds[1]]
    found: list[UOp] = []
    span, alone = 0, True
    for term, factor in sorted(varying, key=lambda pair: abs(pair[1])):
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
    """Whether a number follows from the known ones: it is one, has one value, or both its parts by a divisor follow."""
    if node in known or node.bounds[0] == node.bounds[1]:
        return True
    if not (node.op is ops.RANGE or node.op is ops.FLOORDIV):
        return False
    for divisor in divisors:
        rest = normal(ops.MOD, node.dtype, (node, divisor))
        if rest in known and rest is not node and _is_known(normal(ops.FLOORDIV, node.dtype, (node, divisor)), known,
                                                            divisors):  # fmt: skip
            return True
    return False
