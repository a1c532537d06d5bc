"""Comparisons: decided by bounds, and brought to one form for INDEX.

An INDEX comparison becomes ``sum < sum`` (or ==, !=) with positive terms on both sides, the constant
on the right unless the left is nothing but a constant, common factors divided out, and no division
that a multiplied bound can replace.  Measure of termination: each rule gives the normal form at once.
"""

from __future__ import annotations

import math

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, difference, linear
from lazulite.ir.dtype import BOOL, INDEX, INTS, dtypes
from lazulite.ir.uop import UOp
from lazulite.rewrite.pattern import each, var
from lazulite.rewrite.rule import No, RuleSet
from lazulite.simplify.normal import shaped
from lazulite.simplify.terms import in_order, sum_of

comparison = RuleSet("comparison")

x = var("x")
i, j = var("i", INTS), var("j", INTS)
t = var("t", INTS | BOOL)
p, q = var("p", INDEX), var("q", INDEX)
TRUE, FALSE = UOp.const(dtypes.bool, True), UOp.const(dtypes.bool, False)


@comparison.rule(x < x)
def never_below_itself(root: UOp) -> UOp:
    """x < x  ->  false"""
    return shaped(FALSE, root)


@comparison.rule(t.ne(t))
def never_other_than_itself(root: UOp) -> UOp:
    """i != i  ->  false

    Not for floats: NaN differs from itself.
    """
    return shaped(FALSE, root)


@comparison.rule(t <= t, t.eq(t))
def equal_to_itself(root: UOp) -> UOp:
    """i == i  ->  true"""
    return shaped(TRUE, root)


@comparison.rule(each((ops.LT, ops.LE, ops.EQ, ops.NE), i, j))
def decided_by_bounds(root: UOp) -> UOp | No:
    """(i & 7) < 8  ->  true"""
    low, high = root.bounds
    return shaped(UOp.const(dtypes.bool, low), root) if low == high else No("both outcomes are possible")


@comparison.rule(p < q)
def order_in_normal_form(p: UOp, q: UOp) -> UOp:
    """p * 4 + 1 < q * 4 + 3  ->  p < q + 1"""
    return below_zero(difference(p, q))


@comparison.rule(p <= q)
def at_most_is_below(p: UOp, q: UOp) -> UOp:
    """p <= q  ->  p < q + 1"""
    return below_zero(difference(p, q) + Linear(-1))


@comparison.rule(each((ops.EQ, ops.NE), p, q))
def equality_in_normal_form(root: UOp, p: UOp, q: UOp) -> UOp:
    """p * 4 + 1 == q * 4 + 5  ->  p == q + 1"""
    form = difference(p, q)
    low, high = form.bounds
    factor = math.gcd(*form.terms.values())
    if low > 0 or high < 0 or (factor and form.constant % factor):
        return FALSE if root.op is ops.EQ else TRUE
    if low == high:
        return TRUE if root.op is ops.EQ else FALSE
    form = Linear(form.constant // factor, {term: f // factor for term, f in form.terms.items()})
    if form.terms[in_order(form.terms)[0]] < 0:
        form = form.scaled(-1)
    return UOp(root.op, dtypes.bool, _sides(form))


def below_zero(form: Linear) -> UOp:
    """The comparison form < 0 in normal form."""
    while True:
        low, high = form.bounds
        if high < 0:
            return TRUE
        if low >= 0:
            return FALSE
        better = _without_small_terms(form) or _without_division(form)
        if better is None:
            return UOp(ops.LT, dtypes.bool, _sides(form))
        form = better


def _sides(form: Linear) -> tuple[UOp, UOp]:
    """left and right with left - right = form: positive terms left, negated negative ones right."""
    left = {term: f for term, f in form.terms.items() if f > 0}
    right = {term: -f for term, f in form.terms.items() if f < 0}
    if left:
        return sum_of(Linear(0, left)), sum_of(Linear(-form.constant, right))
    return sum_of(Linear(form.constant)), sum_of(Linear(0, right))


def _without_small_terms(form: Linear) -> Linear | None:
    """g * r + s < 0 as r < ceil(-s / g), where that is one number for every s."""
    steps = {abs(factor) for factor in form.terms.values()} | {math.gcd(*form.terms.values())}
    for step in sorted(steps - {1}, reverse=True):
        small = Linear(form.constant, {t: f for t, f in form.terms.items() if f % step})
        low, high = small.bounds
        limit = (-low - 1) // step
        if limit == (-high - 1) // step:
            return Linear(-limit - 1, {t: f // step for t, f in form.terms.items() if f % step == 0})
    return None


def _without_division(form: Linear) -> Linear | None:
    """y // d + r < 0 as y + d * r < 0, and r - y // d < 0 as d * (r + 1) - y - 1 < 0."""
    for term, factor in form.terms.items():
        if term.op is not ops.FLOORDIV or abs(factor) != 1 or term.src[1].op is not ops.CONST:
            continue
        divisor = term.src[1].arg
        if divisor > 0:
            rest = form + Linear(0, {term: -factor})
            dividend = linear(term.src[0]).scaled(factor)
            return rest.scaled(divisor) + dividend + Linear(0 if factor > 0 else divisor - 1)
    return None
