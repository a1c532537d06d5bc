"""What a gate proves about sums: tighter bounds where the gate is true.

Takes: the condition under which a value is used.  Gives: `Facts`, which bound linear forms, and
`assuming`, which drops divisions that they prove needless.  Where the condition is false an index
does not matter, so it may be anything there.
"""

from __future__ import annotations

from collections.abc import Iterator

from lazulite.ir import ops
from lazulite.ir.bounds import Interval, Linear, linear
from lazulite.ir.uop import UOp
from lazulite.simplify.boolean import below_zero_form, conjuncts

_MOST_CONDITIONS = 16
"""How many conditions of a gate are looked at."""


class Facts:
    """Intervals of single terms and of sums of terms, beyond their own bounds."""

    __slots__ = ("sums", "terms")

    def __init__(self, gate: UOp | None = None) -> None:
        self.terms: dict[UOp, Interval] = {}
        self.sums: list[tuple[Linear, int]] = []
        """Forms with the least value that each can have."""
        for condition in conjuncts(gate, _MOST_CONDITIONS) if gate is not None else ():
            form = below_zero_form(condition)
            if form is not None:
                self._learn(form)

    def _learn(self, form: Linear) -> None:
        """Enter that form < 0."""
        if len(form.terms) > 1:
            self.sums.append((Linear(0, form.terms).scaled(-1), form.constant + 1))
            return
        for term, factor in form.terms.items():
            low, high = self._of(term)
            if factor > 0:
                high = min(high, (-form.constant - 1) // factor)
            else:
                low = max(low, -((-form.constant - 1) // -factor))
            if low <= high:  # else the gate is never true and anything is right
                self.terms[term] = low, high

    def _of(self, term: UOp) -> Interval:
        known = self.terms.get(term)
        return known if known is not None else (int(term.bounds[0]), int(term.bounds[1]))

    def _plain(self, form: Linear) -> Interval:
        low = high = form.constant
        for term, factor in form.terms.items():
            least, greatest = self._of(term)
            low += factor * (least if factor > 0 else greatest)
            high += factor * (greatest if factor > 0 else least)
        return low, high

    def bounds(self, form: Linear) -> Interval:
        """An interval of the form, wherever the gate is true."""
        low, high = self._plain(form)
        for known, least in self.sums:
            for times in _multiples(form, known):
                ends = self._plain(form + known.scaled(-times))
                if times > 0:
                    low = max(low, ends[0] + times * least)
                else:
                    high = min(high, ends[1] + times * least)
        return (low, high) if low <= high else self._plain(form)


def _multiples(form: Linear, known: Linear) -> Iterator[int]:
    """How often the known sum may be contained in the form, judged by each of its terms."""
    found = set()
    for term, factor in known.terms.items():
        times, left_over = divmod(form.terms.get(term, 0), factor)
        if times and not left_over:
            found.add(times)
    yield from sorted(found)


NOTHING = Facts()


def is_division(term: UOp) -> bool:
    """Whether this is a floor division or remainder by a positive constant."""
    return term.op in (ops.FLOORDIV, ops.MOD) and term.src[1].op is ops.CONST and bool(term.src[1].arg > 0)


def has_division(expression: UOp) -> bool:
    """Whether a sum has a term that is a division."""
    return any(is_division(term) for term in linear(expression).terms)
