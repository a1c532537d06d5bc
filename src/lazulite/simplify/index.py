"""The normal form of INDEX sums, products and limits.

A sum is a constant plus multiples of terms, in the order of `terms.sum_of`.  Regrouping is allowed
because INDEX values are mathematical integers.  Measure of termination: each rule gives the normal
form of its root at once.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, difference, linear
from lazulite.ir.dtype import INDEX, dtypes
from lazulite.ir.uop import UOp, index
from lazulite.rewrite.pattern import const, var
from lazulite.rewrite.rule import No, RuleSet
from lazulite.simplify.normal import normal
from lazulite.simplify.terms import in_order, multiple, sum_of

index_rules = RuleSet("index")

p, q = var("p", INDEX), var("q", INDEX)
c = const("c", INDEX)


@index_rules.rule(p + q, p - q, p * c)
def sum_in_normal_form(root: UOp) -> UOp:
    """p + 1 + p  ->  p * 2 + 1"""
    return sum_of(recombined(linear(root)))


@index_rules.rule(p * q)
def product_in_normal_form(root: UOp, p: UOp, q: UOp) -> UOp | No:
    """(p * 2) * q  ->  (p * q) * 2"""
    if p.op is ops.CONST or q.op is ops.CONST:
        return No("a multiple is a sum")
    if root.bounds[0] == root.bounds[1]:
        return index(int(root.bounds[0]))
    if q.op is ops.ADD:
        p, q = q, p
    if p.op is ops.ADD:
        parts = [normal(ops.MUL, dtypes.index, (part, q)) for part in p.src]
        return normal(ops.ADD, dtypes.index, (parts[0], parts[1]))
    constant, factors = _factors(root)
    ordered = in_order(factors)
    product = ordered[0]
    for part in ordered[1:]:
        product = UOp(ops.MUL, dtypes.index, (product, part))
    return multiple(product, constant)


def _factors(product: UOp) -> tuple[int, list[UOp]]:
    constant, factors = 1, list[UOp]()
    pending = [product]
    while pending:
        part = pending.pop()
        if part.op is ops.MUL:
            pending += part.src
        elif part.op is ops.CONST:
            constant *= part.arg
        else:
            factors.append(part)
    return constant, factors


@index_rules.rule(p.maximum(q), p.minimum(q))
def limit_by_difference(root: UOp, p: UOp, q: UOp) -> UOp | No:
    """max(p, p + 1)  ->  p + 1"""
    low, high = difference(p, q).bounds
    if low >= 0:
        return p if root.op is ops.MAX else q
    if high <= 0:
        return q if root.op is ops.MAX else p
    return No("either may be the larger")


@index_rules.rule(p << c, p >> c)
def shift_is_arithmetic(root: UOp, p: UOp, c: UOp) -> UOp | No:
    """p << 3  ->  p * 8"""
    if not 0 <= c.arg < 128:
        return No("the distance is not a bit position")
    return UOp(ops.MUL if root.op is ops.SHL else ops.FLOORDIV, dtypes.index, (p, index(1 << c.arg)))


def recombined(form: Linear) -> Linear:
    """The form with quotients and remainders of the same value put together again."""
    changed = True
    while changed:
        changed = False
        for term, factor in form.terms.items():
            if term.op not in (ops.MOD, ops.FLOORDIV) or term.src[1].op is not ops.CONST or term.src[1].arg <= 0:
                continue
            joined = _joined_remainder(form, term, factor) if term.op is ops.MOD else _as_remainder(form, term, factor)
            if joined is not None:
                form, changed = joined, True
                break
    return form


def _joined_remainder(form: Linear, term: UOp, factor: int) -> Linear | None:
    """m * (y % d) + m * d * (y // d) is m * y; with (y // d) % e for y // d it is m * (y % (d * e))."""
    dividend, divisor = term.src
    wanted = factor * divisor.arg
    if wanted not in form.terms.values():
        return None
    quotient = normal(ops.FLOORDIV, dtypes.index, (dividend, divisor))
    if form.terms.get(quotient) == wanted:
        return form + Linear(0, {term: -factor, quotient: -wanted}) + linear(dividend).scaled(factor)
    for other, times in form.terms.items():
        if times == wanted and other.op is ops.MOD and other.src[0] is quotient and other.src[1].op is ops.CONST:
            modulus = index(divisor.arg * other.src[1].arg)
            whole = linear(normal(ops.MOD, dtypes.index, (dividend, modulus)))
            return form + Linear(0, {term: -factor, other: -wanted}) + whole.scaled(factor)
    return None


def _as_remainder(form: Linear, term: UOp, factor: int) -> Linear | None:
    """m * y - m * d * (y // d) is m * (y % d)."""
    dividend, divisor = term.src
    times, left_over = divmod(-factor, divisor.arg)
    whole = linear(dividend)
    if left_over or not whole.terms or any(form.terms.get(t) != f * times for t, f in whole.terms.items()):
        return None
    remainder = normal(ops.MOD, dtypes.index, (dividend, divisor))
    return form + Linear(0, {term: -factor}) + whole.scaled(-times) + linear(remainder).scaled(times)
