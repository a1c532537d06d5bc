"""No turns of loops where a gate leaves the state of a reduction as it is, whatever the row or lane.

Takes the loops of reductions that share them, outermost first, with the values that are combined; gives loops whose
numbers of turns are choices, and the values without what these decide.  A window beyond the upper border of an image
has no turns of the loops inside of that of its rows, so nothing of a register tile is kept beside it until it is known
whether it counts.  Each state is combined with the same values in the same order as before.
"""

from __future__ import annotations

from collections.abc import Sequence

from lazulite.ir import ops
from lazulite.ir.uop import UOp, index, replace_ranges, toposort
from lazulite.kernel.gates import split_gate
from lazulite.simplify.boolean import all_of, conjuncts

_COUNTED = frozenset({ops.RANGE, ops.CONST, ops.SCALAR})


def without_idle_turns(
    loops: Sequence[UOp], combine: Sequence[ops.Op], values: Sequence[UOp]
) -> tuple[Sequence[UOp], Sequence[UOp]]:
    """The loops with turns only where their values count, and the values under the gates that are left."""
    gated = [split_gate(op, value) for op, value in zip(combine, values, strict=True)]
    asked = [[] if gate is None else conjuncts(gate) for gate, _ in gated]
    idle = [each for each in asked[0] if _is_outside(each, loops) and all(each in others for others in asked[1:])]
    if not idle:
        return loops, values
    left = [
        _under([each for each in found if each not in idle], value, op)
        for op, found, (_, value) in zip(combine, asked, gated, strict=True)
    ]
    table: dict[UOp, UOp] = {}
    for depth, loop in enumerate(loops):
        *gates, turns = replace_ranges([*[each for each in idle if depth_of(each, loops) == depth], loop.src[0]], table)
        if gates:
            turns = all_of(gates).where(turns, index(0))
        if turns is not loop.src[0]:
            table[loop] = loop.replace(src=(turns,))
    return [table.get(loop, loop) for loop in loops], replace_ranges(left, table)


def depth_of(gate: UOp, loops: Sequence[UOp]) -> int:
    """In how many of the loops a gate is asked: up to the innermost one that it varies with."""
    return max((depth for depth, loop in enumerate(loops, 1) if loop in gate.ranges), default=0)


def _is_outside(condition: UOp, loops: Sequence[UOp]) -> bool:
    """Whether a condition is on the turns of loops alone, and on those of the innermost one not at all."""
    if loops[-1] in condition.ranges or any(r.arg[1] not in ("loop", "parallel") for r in condition.ranges):
        return False
    return all(node.op in _COUNTED or node.op in ops.ELEMENTWISE for node in toposort(condition))


def _under(gates: Sequence[UOp], value: UOp, op: ops.Op) -> UOp:
    assert op.identity is not None
    return all_of(gates).where(value, UOp.const(value.dtype, op.identity(value.dtype))) if gates else value
