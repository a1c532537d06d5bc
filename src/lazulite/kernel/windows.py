"""Windows that move over an operand: which of its ranges walk along the same axis of memory.

Takes a load of the `KERNEL` language with its gate.  The places of a window and its elements share an axis, which holds
each element once; a border outside of the operand is on the axis, too.  What cannot be shown to be one is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, difference, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import extent
from lazulite.simplify.boolean import conjuncts


def windows(load: UOp) -> list[list[UOp]]:
    """The ranges of a load by the axis of memory that they move along; empty where no two share an axis."""
    form = linear(load.src[1])
    conditions = _conditions(load)
    if conditions is None or any(term.op is not ops.RANGE for term in form.terms):
        return []
    groups: list[list[UOp]] = []
    for r in sorted(form.terms, key=lambda r: (-abs(form.terms[r]), r.arg[0])):
        reach = abs(form.terms[r]) * (extent(r) - 1)
        borders = [each.terms.keys() for each in conditions if r in each.terms]
        if borders:  # with whom it is on a border of the operand together, else whom it reaches
            home = next((g for g in groups if not all(tied.isdisjoint(g) for tied in borders)), None)
        else:
            home = next((g for g in groups if any(reach >= abs(form.terms[q]) for q in g)), None)
        if home is None:
            groups.append([r])
        else:
            home.append(r)
    if len(groups) == len(form.terms) or not all(_moves_as_one(g, form, conditions) for g in groups):
        return []
    return groups


def _conditions(load: UOp) -> list[Linear] | None:
    """What the comparisons of a load's gate compare with zero; None where there is another condition."""
    found: list[Linear] = []
    for node in (each for gate in load.src[2:] for each in conjuncts(gate)):
        if node.op not in (ops.LT, ops.LE) or node.src[0].dtype is not dtypes.index:
            return None
        found.append(difference(node.src[1], node.src[0]))
    return found


def _moves_as_one(group: Sequence[UOp], form: Linear, conditions: Iterable[Linear]) -> bool:
    """Whether each condition changes along the axis as the index does, or not at all."""
    step = gcd(*[form.terms[r] for r in group])
    for condition in conditions:
        if not condition.terms.keys().isdisjoint(group):
            moved = {divmod(condition.terms.get(r, 0) * step, form.terms[r]) for r in group}
            if len(moved) > 1 or moved.pop()[1]:
                return False
    return True
