"""Values that are known while code is written: expressions over lanes, rows and constants."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.dtype import Scalar, dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.nest import extent


def static_value(node: UOp, at: Mapping[UOp, int]) -> Scalar:
    """The value of a node where each range has this turn."""
    values: dict[UOp, Scalar] = {}
    for each in toposort(node, enter=lambda n: n.op is not ops.RANGE):
        if each.op is ops.RANGE:
            values[each] = at[each]
        elif each.op is ops.CONST:
            values[each] = each.value
        elif each.op is ops.CAST:
            values[each] = each.dtype.convert(values[each.src[0]])
        else:
            assert each.op.meaning is not None
            values[each] = each.dtype.round(each.op.meaning(*[values[s] for s in each.src]))
    return values[node]


class Static:
    """Answers for one kernel; the linear form of an index is found once."""

    def __init__(self) -> None:
        self._forms: dict[UOp, tuple[int, list[tuple[UOp, int]]] | None] = {}

    def lanes(self, node: UOp, at: Mapping[UOp, int], lane: UOp | None) -> list[Scalar]:
        """The value in each lane; one value where there are no lanes."""
        if lane is not None and lane not in node.ranges:
            lane = None
        form = self._form(node)
        if form is None:
            if lane is None:
                return [static_value(node, at)]
            return [static_value(node, {**at, lane: turn}) for turn in range(extent(lane))]
        start, step = form[0], 0
        for r, factor in form[1]:
            if r is lane:
                step = factor
            else:
                start += factor * at[r]
        return [start] if lane is None else [start + step * turn for turn in range(extent(lane))]

    def _form(self, node: UOp) -> tuple[int, list[tuple[UOp, int]]] | None:
        """An index as a constant and multiples of ranges; None where it is not linear."""
        if node.dtype is not dtypes.index:
            return None
        if node not in self._forms:
            form = linear(node)
            plain = all(term.op is ops.RANGE for term in form.terms)
            self._forms[node] = (form.constant, list(form.terms.items())) if plain else None
        return self._forms[node]


def stride(values: Sequence[Scalar]) -> int | None:
    """The constant step between the values; None where there is none.

    >>> stride([3, 4, 5]), stride([4, 4]), stride([0, 1, 3]), stride([7])
    (1, 0, None, 0)
    """
    steps = {int(b) - int(a) for a, b in itertools.pairwise(values)}
    return 0 if not steps else steps.pop() if len(steps) == 1 else None
