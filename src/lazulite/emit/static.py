"""Values that are known while code is written: expressions over lanes, rows and constants."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from lazulite.emit.forms import Answers
from lazulite.ir import ops
from lazulite.ir.bounds import Interval, Linear, difference, linear
from lazulite.ir.dtype import Scalar, dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.nest import count, extent


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
_Span = tuple[Interval, dict[UOp, int]]
"""A difference: the interval of all but its rows, and multiples of these."""


class Static:
    """What is known in one kernel; the linear form of an index is found once."""

    def __init__(self) -> None:
        self._form = Answers(_form).__getitem__
        self._span = Answers(_span).__getitem__

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

    def lines(self, node: UOp | None, rows: Sequence[UOp], lane: UOp | None) -> tuple[list[int], int] | None:
        """An index in the first lane at all turns of rows, the last row fastest, and its step as `line` gives it."""
        form: _Form | None = (0, []) if node is None else self._form(node)
        if form is None:
            return None
        factors = dict(form[1])
        return _sums(form[0], factors, rows), 0 if lane is None else factors.get(lane, 0)

    def truths(self, gate: UOp, rows: Sequence[UOp]) -> list[bool | None]:
        """What a gate is at all turns of rows whatever the loops and lanes; None where that depends on these.

        Recursion is as deep as a gate has conditions.
        """
        if gate.op is ops.AND:
            both = zip(*[self.truths(source, rows) for source in gate.src], strict=True)
            return [False if False in each else None if None in each else True for each in both]
        if gate.op not in _COMPARISONS or gate.src[0].dtype is not dtypes.index:
            return [None] * count(rows)
        (low, high), factors = self._span(gate)
        limit = gate.op is ops.LE
        return [
            True if high + turn < limit else False if low + turn >= limit else None for turn in _sums(0, factors, rows)
        ]


def _form(node: UOp) -> _Form | None:
    """That of an index, or of the difference of two that are compared; None where it is not linear."""
    if node.dtype is dtypes.index:
        form = linear(node)
    elif node.op in _COMPARISONS and node.src[0].dtype is dtypes.index:
        form = difference(*node.src)
    else:
        return None
    for term in form.terms:
        if term.op is not ops.RANGE:
            return None
    return form.constant, list(form.terms.items())


def _span(gate: UOp) -> _Span:
    """By how much the left side of a comparison is larger than the right one."""
    form = difference(*gate.src)
    rows = {term: factor for term, factor in form.terms.items() if _is_row(term)}
    rest = Linear(form.constant, {term: factor for term, factor in form.terms.items() if not _is_row(term)})
    return rest.bounds, rows


def _is_row(term: UOp) -> bool:
    return term.op is ops.RANGE and term.arg[1] == "row"


def _sums(start: int, factors: Mapping[UOp, int], rows: Iterable[UOp]) -> list[int]:
    """A number with a multiple of each row added, at all turns of the rows, the last one fastest."""
    sums = [start]
    for r in rows:
        turns = [factors.get(r, 0) * turn for turn in range(extent(r))]
        sums = [each + turn for each in sums for turn in turns]
    return sums


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
