"""Laws of truth values: constants, complements, choices between truth values, and conjunctions.

A conjunction is a chain of distinct conditions, those over outer ranges first, none implied by
another and none contradicting another as far as their linear forms show.  Measure of termination:
the number of nodes, then the order of the conditions.
"""

from __future__ import annotations

from collections.abc import Iterable

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, difference
from lazulite.ir.dtype import BOOL, INDEX, INTS, dtypes
from lazulite.ir.uop import UOp
from lazulite.rewrite.pattern import var
from lazulite.rewrite.rule import No, RuleSet
from lazulite.simplify.normal import normal, shaped
from lazulite.simplify.terms import in_order

boolean = RuleSet("boolean")

a, b = var("a", BOOL), var("b", BOOL)
x, y = var("x"), var("y")
w, v = var("w", INTS | INDEX | BOOL), var("v", INTS | INDEX | BOOL)
TRUE, FALSE = UOp.const(dtypes.bool, True), UOp.const(dtypes.bool, False)
_MOST_CONDITIONS = 16
"""How many conditions are compared with one another."""


@boolean.rule(b | 1)
def either_true(root: UOp) -> UOp:
    """b | true  ->  true"""
    return shaped(TRUE, root)


@boolean.rule(b ^ 1, b.eq(0), b.ne(1))
def complement(b: UOp) -> UOp:
    """b ^ true  ->  ~b"""
    return ~b


@boolean.rule(b.eq(1), b.ne(0))
def equal_to_true(b: UOp) -> UOp:
    """b != false  ->  b"""
    return b


@boolean.rule(b & ~b)
def contradiction(root: UOp) -> UOp:
    """b & ~b  ->  false"""
    return shaped(FALSE, root)


@boolean.rule(b | ~b)
def excluded_middle(root: UOp) -> UOp:
    """b | ~b  ->  true"""
    return shaped(TRUE, root)


@boolean.rule(b & (b | a), b | (b & a))
def absorbed(root: UOp, b: UOp) -> UOp:
    """b & (b | a)  ->  b"""
    return shaped(b, root)


@boolean.rule(b.maximum(a))
def larger_truth_value(a: UOp, b: UOp) -> UOp:
    """max(b, a)  ->  b | a"""
    return b | a


@boolean.rule(b.minimum(a))
def smaller_truth_value(a: UOp, b: UOp) -> UOp:
    """min(b, a)  ->  b & a"""
    return b & a


@boolean.rule(~x.eq(y))
def not_equal(x: UOp, y: UOp) -> UOp:
    """~(x == y)  ->  x != y"""
    return x.ne(y)


@boolean.rule(~x.ne(y))
def not_other(x: UOp, y: UOp) -> UOp:
    """~(x != y)  ->  x == y"""
    return x.eq(y)


@boolean.rule(~(w < v))
def not_below(w: UOp, v: UOp) -> UOp:
    """~(i < j)  ->  j <= i

    Not for floats: beside NaN neither holds.
    """
    return v <= w


@boolean.rule(~(w <= v))
def not_at_most(w: UOp, v: UOp) -> UOp:
    """~(i <= j)  ->  j < i"""
    return v < w


@boolean.rule(b.where(1, 0))
def choice_is_condition(b: UOp, root: UOp) -> UOp | No:
    """where(b, true, false)  ->  b"""
    return b if root.dtype is dtypes.bool else No("the choice is between numbers")


@boolean.rule(b.where(a, 0))
def choice_is_and(a: UOp, b: UOp) -> UOp:
    """where(b, a, false)  ->  b & a"""
    return b & a


@boolean.rule(b.where(1, a))
def choice_is_or(a: UOp, b: UOp) -> UOp:
    """where(b, true, a)  ->  b | a"""
    return b | a


@boolean.rule(b.where(0, 1))
def choice_is_complement(root: UOp, b: UOp) -> UOp | No:
    """where(b, false, true)  ->  ~b"""
    return ~b if root.dtype is dtypes.bool else No("not a truth value")


@boolean.rule(a.where(b.where(x, y), y))
def nested_choice(root: UOp, a: UOp, b: UOp, x: UOp, y: UOp) -> UOp:
    """where(a, where(b, x, y), y)  ->  where(a & b, x, y)"""
    return UOp(ops.WHERE, root.dtype, (normal(ops.AND, dtypes.bool, (a, b)), x, y))


@boolean.rule(a & b)
def conjunction_in_normal_form(root: UOp) -> UOp | No:
    """(p < 3) & (p < 5)  ->  p < 3"""
    conditions = conjuncts(root, _MOST_CONDITIONS + 1)
    if len(conditions) > _MOST_CONDITIONS:
        return No("too many conditions to compare")
    needed = _needed(in_order(conditions))
    if needed is None:
        return shaped(FALSE, root)
    result = needed[0]
    for condition in needed[1:]:
        result = UOp(ops.AND, dtypes.bool, (result, condition))
    return shaped(result, root)


def conjuncts(node: UOp, most: int | None = None) -> list[UOp]:
    """The distinct conditions that a chain of ANDs joins, or as many of them as are asked for."""
    return _joined(ops.AND, node, most)


def all_of(conditions: Iterable[UOp]) -> UOp:
    """What is true where all of these are, of which there is one at least.

    >>> x, y, z = (UOp(ops.SCALAR, dtypes.bool, (), (number, None, None)) for number in range(3))
    >>> conjuncts(all_of([x, y, z])) == [x, y, z]
    True
    """
    joined, *more = conditions
    for condition in more:
        joined = joined & condition
    return joined


def alternatives(node: UOp) -> list[UOp]:
    """The distinct conditions that a chain of ORs joins."""
    return _joined(ops.OR, node, None)


def _joined(op: ops.Op, node: UOp, most: int | None) -> list[UOp]:
    found: dict[UOp, None] = {}
    pending = [node]
    while pending and (most is None or len(found) < most):
        part = pending.pop()
        if part.op is op:
            pending += part.src[::-1]
        else:
            found[part] = None
    return list(found)


def _needed(conditions: list[UOp]) -> list[UOp] | None:
    """The conditions without those that others imply; None where they contradict each other."""
    kept: list[tuple[UOp, Linear | None]] = []
    for condition in conditions:
        if _opposite(condition) in conditions:
            return None
        form = below_zero_form(condition)
        if form is not None:
            limits = [(other, known) for other, known in kept if known is not None]
            if any((form + known).bounds[0] > -2 for _, known in limits):
                return None
            if any(_implies(known, form) for _, known in limits):
                continue
            kept = [(other, known) for other, known in kept if known is None or not _implies(form, known)]
        kept.append((condition, form))
    return [condition for condition, _ in kept]


def _opposite(condition: UOp) -> UOp | None:
    """The condition that never holds together with this one, for those that have one of their own."""
    if condition.op is ops.NOT:
        return condition.src[0]
    return UOp(ops.EQ, dtypes.bool, condition.src) if condition.op is ops.NE else None


def below_zero_form(condition: UOp) -> Linear | None:
    """The form of an INDEX comparison that says form < 0."""
    if condition.op is ops.LT and condition.src[0].dtype is dtypes.index:
        return difference(*condition.src)
    return None


def _implies(known: Linear, wanted: Linear) -> bool:
    """Whether known < 0 implies wanted < 0."""
    return (wanted + known.scaled(-1)).bounds[1] <= 0
