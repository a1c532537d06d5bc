"""Floor division and remainder of INDEX expressions by constants.

Both look at the dividend as a linear form, x = d * Q + R with the multiples of the divisor in Q:
x // d is Q + R // d and x % d is R % d.  Where the bounds of R lie between two neighbouring
multiples of d nothing is left to divide.  Measure of termination: the sizes of the divisors, then
the number of divisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.dtype import INDEX, dtypes
from lazulite.ir.uop import UOp, index, toposort
from lazulite.rewrite.pattern import const, var
from lazulite.rewrite.rule import No, RuleSet
from lazulite.simplify.facts import NOTHING, Facts, is_division
from lazulite.simplify.index import recombined
from lazulite.simplify.terms import sum_of

division = RuleSet("division")

p, q, c = var("p", INDEX), var("q", INDEX), const("c", INDEX)


@division.rule(p // q, p % q)
def decided_by_bounds(root: UOp) -> UOp | No:
    """p // (q + 32)  ->  0:index"""
    low, high = root.bounds
    return index(int(low)) if low == high else No("the result varies")


@division.rule(p // c)
def quotient_of_sum(p: UOp, c: UOp) -> UOp | No:
    """(p * 12 + 5) // 4  ->  p * 3 + 1"""
    if c.arg <= 0:
        return index(0) if c.arg == 0 else No("the divisor is negative")
    return sum_of(recombined(quotient(linear(p), c.arg)))


@division.rule(p % c)
def remainder_of_sum(p: UOp, c: UOp) -> UOp | No:
    """(p * 12 + q) % 4  ->  q % 4"""
    if c.arg <= 0:
        return index(0) if c.arg == 0 else No("the divisor is negative")
    return sum_of(recombined(remainder(linear(p), c.arg)))


def quotient(form: Linear, divisor: int, facts: Facts = NOTHING) -> Linear:
    """form // divisor, with as little division as the bounds allow."""
    proven = _divided(form, divisor, facts)
    if proven is not None:
        return proven[0]
    whole, rest = _split(form, divisor, _toward_zero)
    for step, multiples, small in _factored(rest, divisor, facts):
        return whole + quotient(multiples + Linear(small), divisor // step, facts)
    for term, factor in rest.terms.items():
        if factor == 1 and term.op is ops.FLOORDIV and is_division(term):
            inner = term.src[1].arg  # (y // a + r) // d is (y + a * r) // (a * d)
            others = (rest + Linear(0, {term: -1})).scaled(inner)
            return whole + quotient(linear(term.src[0]) + others, inner * divisor, facts)
    if len(rest.terms) == 1 and not rest.constant:
        ((term, factor),) = rest.terms.items()
        if factor == 1 and term.op is ops.MOD and is_division(term) and term.src[1].arg % divisor == 0:
            return whole + remainder(quotient(linear(term.src[0]), divisor, facts), term.src[1].arg // divisor, facts)
    return whole + _term(ops.FLOORDIV, rest, divisor)


def remainder(form: Linear, divisor: int, facts: Facts = NOTHING) -> Linear:
    """form % divisor, with as little division as the bounds allow."""
    proven = _divided(form, divisor, facts)
    if proven is not None:
        return proven[1]
    for term, factor in form.terms.items():
        if term.op is ops.MOD and is_division(term) and factor * term.src[1].arg % divisor == 0:
            inner = linear(term.src[0]).scaled(factor)
            return remainder(form + Linear(0, {term: -factor}) + inner, divisor, facts)
    rest = _split(form, divisor, _toward_zero)[1]
    for step, multiples, small in _factored(rest, divisor, facts):
        left = rest + multiples.scaled(-step) + Linear(-small * step)
        return remainder(multiples + Linear(small), divisor // step, facts).scaled(step) + left
    return _term(ops.MOD, rest, divisor)


def assuming(expression: UOp, facts: Facts) -> UOp:
    """The expression without the divisions that the facts prove needless."""
    form = linear(expression)
    result = form
    for term, factor in form.terms.items():
        if is_division(term):
            divide = quotient if term.op is ops.FLOORDIV else remainder
            better = divide(linear(term.src[0]), term.src[1].arg, facts)
            result = result + Linear(0, {term: -factor}) + better.scaled(factor)
    simpler = sum_of(recombined(result)) if result != form else expression
    return simpler if _divisions(simpler) < _divisions(expression) else expression


def _divisions(expression: UOp) -> int:
    """How many divisions and remainders an index contains, those inside what it loads aside."""
    inside = toposort(expression, enter=lambda node: node.op not in (ops.LOAD, ops.RANGE))
    return sum([node.op in (ops.FLOORDIV, ops.MOD) for node in inside])


Residue = Callable[[int, int], int]


def _toward_zero(factor: int, divisor: int) -> int:
    return int(math.fmod(factor, divisor)) if abs(factor) < 1 << 53 else factor % divisor


def _upward(factor: int, divisor: int) -> int:
    return factor % divisor


def _nearest(factor: int, divisor: int) -> int:
    rest = factor % divisor
    return rest - divisor if 2 * rest > divisor else rest


def _split(form: Linear, divisor: int, residue: Residue) -> tuple[Linear, Linear]:
    """Q and R with form = divisor * Q + R, R's constant in 0 .. divisor - 1."""
    whole, rest = dict[UOp, int](), dict[UOp, int]()
    for term, factor in form.terms.items():
        left = residue(factor, divisor)
        if left:
            rest[term] = left
        if left != factor:
            whole[term] = (factor - left) // divisor
    return Linear(form.constant // divisor, whole), Linear(form.constant % divisor, rest)


def _divided(form: Linear, divisor: int, facts: Facts) -> tuple[Linear, Linear] | None:
    """Quotient and remainder where some choice of R stays between two neighbouring multiples."""
    for residue in (_toward_zero, _nearest, _upward):
        whole, rest = _split(form, divisor, residue)
        low, high = facts.bounds(rest)
        if low // divisor == high // divisor:
            block = low // divisor
            return whole + Linear(block), rest + Linear(-block * divisor)
    return None


def _factored(form: Linear, divisor: int, facts: Facts) -> Iterator[tuple[int, Linear, int]]:
    """The form as step * multiples + others where step divides the divisor and others // step is one number.

    Gives at most one (step, multiples, that number); the largest such step below the divisor.
    """
    steps = {math.gcd(factor, divisor) for factor in form.terms.values()}
    steps.add(math.gcd(divisor, *form.terms.values()))
    for step in sorted(steps - {1, divisor}, reverse=True):
        others = Linear(form.constant, {t: f for t, f in form.terms.items() if f % step})
        low, high = facts.bounds(others)
        if low // step == high // step:
            multiples = {t: f // step for t, f in form.terms.items() if f % step == 0}
            yield step, Linear(0, multiples), low // step
            return


def _term(op: ops.Op, form: Linear, divisor: int) -> Linear:
    return Linear(0, {UOp(op, dtypes.index, (sum_of(form), index(divisor))): 1})
