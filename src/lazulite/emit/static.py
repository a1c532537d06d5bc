"""Values that are known while code is written: expressions over lanes, rows and constants."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from operator import mul

from lazulite.ir import ops
from lazulite.ir.bounds import Interval, Linear, difference, linear
from lazulite.ir.dtype import Scalar, dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.nest import extent


def static_values(node: UOp, at: Mapping[UOp, int], lane: UOp | None) -> list[Scalar]:
    """The values of a node in all lanes (one where there are none), where each other range has this turn."""
    turns = 1 if lane is None else extent(lane)
    values: dict[UOp, list[Scalar]] = {}
    for each in toposort(node, enter=lambda n: n.op is not ops.RANGE):
        if each is lane:
            values[each] = list(range(turns))
        elif each.op is ops.RANGE:
            values[each] = [at[each]] * turns
        elif each.op is ops.CONST:
            values[each] = [each.value] * turns
        elif each.op is ops.CAST:
            values[each] = [each.dtype.convert(value) for value in values[each.src[0]]]
        else:
            meaning, rounded = each.op.meaning, each.dtype.round
            assert meaning is not None
            operands = zip(*[values[source] for source in each.src], strict=True)
            values[each] = [rounded(meaning(*operand)) for operand in operands]
    return values[node]


_COMPARISONS = (ops.LT, ops.LE)
_Form = tuple[int, list[tuple[UOp, int]]]
"""An index as a constant and multiples of ranges."""
_Span = tuple[Interval, list[tuple[UOp, int]]]
"""A difference: the interval of all but its rows, and multiples of these."""


class Static:
    """Answers for one kernel; the linear form of an index is found once."""

    def __init__(self) -> None:
        self._forms: dict[UOp, _Form | None] = {}
        self._spans: dict[UOp, _Span] = {}

    def lanes(self, node: UOp, at: Mapping[UOp, int], lane: UOp | None) -> list[Scalar]:
        """The value in each lane; one value where there are no lanes."""
        if lane is not None and lane not in node.ranges:
            lane = None
        form = self._form(node)
        if form is None:
            return static_values(node, at, lane)
        start, step = _line(form, at, lane)
        turns = range(1 if lane is None else extent(lane))
        if node.dtype is dtypes.index:
            return [start + step * turn for turn in turns]
        limit = node.op is ops.LE
        return [start + step * turn < limit for turn in turns]

    def line(self, node: UOp, at: Mapping[UOp, int], lane: UOp | None) -> tuple[int, int] | None:
        """An index in the first lane, and its step from lane to lane; None where there is no such step."""
        form = self._form(node)
        return None if form is None else _line(form, at, lane)

    def lines(
        self, node: UOp | None, rows: Sequence[UOp], keys: Iterable[tuple[int, ...]], lane: UOp | None
    ) -> tuple[dict[tuple[int, ...], int], int] | None:
        """An index in the first lane at each of these turns of rows, and its step from lane to lane, as in `line`."""
        form: _Form | None = (0, []) if node is None else self._form(node)
        if form is None:
            return None
        constant, factors = form[0], dict(form[1])
        steps = [factors.get(r, 0) for r in rows]
        starts = {key: constant + sum(map(mul, steps, key)) for key in keys}
        return starts, 0 if lane is None else factors.get(lane, 0)

    def truth(self, gate: UOp, at: Mapping[UOp, int]) -> bool | None:
        """What a gate is at a row whatever the loops and lanes; None where that depends on these.

        Recursion is as deep as a gate has conditions.
        """
        if gate.op is ops.AND:
            either = [self.truth(source, at) for source in gate.src]
            return False if False in either else None if None in either else True
        if gate.op not in _COMPARISONS or gate.src[0].dtype is not dtypes.index:
            return None
        (low, high), rows = self._span(gate)
        limit = (gate.op is ops.LE) - sum([factor * at[r] for r, factor in rows])
        return True if high < limit else False if low >= limit else None

    def _span(self, gate: UOp) -> _Span:
        """By how much the left side of a comparison is larger than the right one."""
        if gate not in self._spans:
            form = difference(*gate.src)
            rows = [(term, factor) for term, factor in form.terms.items() if _is_row(term)]
            rest = Linear(form.constant, {term: factor for term, factor in form.terms.items() if not _is_row(term)})
            self._spans[gate] = rest.bounds, rows
        return self._spans[gate]

    def _form(self, node: UOp) -> _Form | None:
        """Of an index, or of the difference of those that are compared; None where that is not linear."""
        compared = node.op in _COMPARISONS and node.src[0].dtype is dtypes.index
        if node.dtype is not dtypes.index and not compared:
            return None
        if node not in self._forms:
            form = difference(*node.src) if compared else linear(node)
            plain = all(term.op is ops.RANGE for term in form.terms)
            self._forms[node] = (form.constant, list(form.terms.items())) if plain else None
        return self._forms[node]


def _is_row(term: UOp) -> bool:
    return term.op is ops.RANGE and term.arg[1] == "row"


def _line(form: _Form, at: Mapping[UOp, int], lane: UOp | None) -> tuple[int, int]:
    start, step = form[0], 0
    for r, factor in form[1]:
        if r is lane:
            step = factor
        else:
            start += factor * at[r]
    return start, step


def stride(values: Sequence[Scalar]) -> int | None:
    """The constant step between the values; None where there is none.

    >>> stride([3, 4, 5]), stride([4, 4]), stride([0, 1, 3]), stride([7])
    (1, 0, None, 0)
    """
    steps = {int(b) - int(a) for a, b in itertools.pairwise(values)}
    return 0 if not steps else steps.pop() if len(steps) == 1 else None
