"""Terms of the sizes that vary: variables, products of them, and quotients by numbers.

Takes: INDEX nodes over SCALAR leaves, and linear forms over such terms.  Gives: products and quotients of forms,
values and texts of terms.  Invariant: the factors of a product stand in one order, so equal products are one node.
"""

from __future__ import annotations

from collections.abc import Iterable

from lazulite.ir import ops
from lazulite.ir.bounds import Linear
from lazulite.ir.uop import UOp


def value_of(term: UOp) -> int | None:
    """The current value of a term; None where a leaf has none."""
    if term.op is ops.CONST:
        return int(term.arg)
    if term.op is ops.SCALAR:
        return int(term.arg[3]) if len(term.arg) > 3 else None
    values = [value_of(source) for source in term.src]
    assert term.op.meaning is not None
    return None if None in values else int(term.op.meaning(*values))


def text_of(term: UOp) -> str:
    """The term as it is shown; a variable by its name, a numbered one by its number and bounds."""
    if term.op is ops.CONST:
        return str(term.arg)
    if term.op is ops.SCALAR:
        return str(term.arg[0]) if len(term.arg) > 3 else "#{}[{}..{}]".format(*term.arg)
    symbol = {ops.ADD: "+", ops.MUL: "*", ops.FLOORDIV: "//"}[term.op]
    return f"({text_of(term.src[0])} {symbol} {text_of(term.src[1])})"


def product(left: Linear, right: Linear) -> Linear:
    """The product of two forms, multiplied out."""
    total = Linear(left.constant * right.constant)
    total = total + Linear(0, left.terms).scaled(right.constant) + Linear(0, right.terms).scaled(left.constant)
    for term, factor in left.terms.items():
        for other, times in right.terms.items():
            both = _times([*_factors(term), *_factors(other)])
            assert both is not None
            total = total + Linear(0, {both: factor * times})
    return total


def exact_quotient(form: Linear, divisor: Linear) -> Linear | None:
    """The quotient where the divisor is one term or number that divides every term; None elsewhere."""
    if len(divisor.terms) + bool(divisor.constant) != 1:
        return None
    ((term, factor),) = divisor.terms.items() or ((None, divisor.constant),)
    total = Linear()
    for dividend, times in [*form.terms.items(), *([(None, form.constant)] if form.constant else [])]:
        left = [] if dividend is None else _factors(dividend)
        for each in [] if term is None else _factors(term):
            if each not in left:
                return None
            left.remove(each)
        if times % factor:
            return None
        rest = _times(left)
        total = total + (Linear(times // factor) if rest is None else Linear(0, {rest: times // factor}))
    return total


def _factors(term: UOp) -> list[UOp]:
    """What a term is the product of."""
    return [*_factors(term.src[0]), *_factors(term.src[1])] if term.op is ops.MUL else [term]


def _times(factors: Iterable[UOp]) -> UOp | None:
    """The product of factors; None where there are none."""
    total: UOp | None = None
    for factor in sorted(factors, key=text_of):
        total = factor if total is None else total * factor
    return total
