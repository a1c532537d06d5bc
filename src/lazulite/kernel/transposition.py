"""Read a transposed operand in square blocks.

Where the lanes of a store run across the rows of an operand, a vector would touch as many cache lines as
it has lanes.  A block of the operand is then copied row by row into scratch memory, and read across
there: every line is used whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from lazulite.ir import ops
from lazulite.ir.uop import UOp
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.nest import extent, is_fixed
from lazulite.kernel.plan import Part, Plan
from lazulite.kernel.steps import Name, Partition, Split

_BLOCK = 16
_SHORT = 8


@dataclass(frozen=True, slots=True)
class Transposition:
    """Operands (memory slots) whose rows run along `across`, a range of the stores that has no lanes."""

    across: UOp
    slots: tuple[int, ...]


def find_transposition(facts: KernelFacts, lanes: frozenset[UOp]) -> Transposition | None:
    """Operands of a kernel without reductions that are better read in blocks."""
    lane = next(iter(lanes), None)
    if facts.reductions or lane is None or extent(lane) < _SHORT or not all(map(is_fixed, facts.outer)):
        return None
    for r in facts.outer:
        slots = {load.src[0].arg[0] for load in facts.accesses if _runs_across(facts, load, lane, r)}
        if slots and r is not lane and extent(r) >= _SHORT:
            return Transposition(r, tuple(sorted(slots)))
    return None


def _runs_across(facts: KernelFacts, load: UOp, lane: UOp, r: UOp) -> bool:
    known = load.op is ops.LOAD and load.src[0].op is ops.PARAM
    return known and facts.stride(load, lane) not in (0, 1, -1, None) and facts.stride(load, r) == 1


def cut_across(plan: Plan, name: Name, turns: int) -> tuple[list[Part], list[Name]]:
    """The range in blocks: the loops over blocks, and the loops inside of a block, which go innermost."""
    whole = turns - turns % _BLOCK
    if not whole:
        return [], [name]
    parts, inner = [], []
    if whole < turns:
        plan.steps.append(Partition(name, whole))
        inner, name = [(*name, 1)], (*name, 0)
    plan.steps.append(Split(name, _BLOCK))
    parts.append(Part((*name, 0), whole // _BLOCK, None, _BLOCK, None, 1))
    return parts, [(*name, 1), *inner]
