"""Choose the steps of a kernel with intermediates: the block, then the steps of each statement.

Rows of the shared range along which the statements' operands stand still are taken together, as many as let the
intermediates fit half of the second cache, so that each operand that is read serves a whole block.  An
operand that would be copied anew for every block is copied once for all of them, where there is room.
Each statement gets the steps it would have alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lazulite.analysis.contraction import contraction
from lazulite.ir import ops
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.apply import apply
from lazulite.kernel.blocks import block_statements
from lazulite.kernel.flatten import flatten
from lazulite.kernel.nest import count, extent
from lazulite.kernel.statements import Statements, split_statements
from lazulite.kernel.steps import Block, Parallel, Stage, Step, Within

_ROWS = 32
"""Rows of a block: enough for the register tiles to use what they load."""
_FEWEST = 16

Choose = Callable[[UOp, Target], tuple[Step, ...]]


def choose_blocks(kernel: UOp, target: Target, choose: Choose) -> tuple[Step, ...]:
    """The steps; `choose` gives those of an ordinary kernel."""
    parts = split_statements(kernel)
    steps: list[Step] = []
    blocked = _blocked(parts)
    if blocked is not None and (rows := _rows(parts, extent(blocked), target)) > 1:
        steps.append(Block(blocked.arg[0], rows))
    parts = split_statements(block_statements(kernel, steps))
    room = target.l2 // 2
    for number, statement in enumerate(parts.kernels):
        for step in choose(statement, target):
            if isinstance(step, Stage):
                step, room = _once_for_all_blocks(statement, step, parts, choose(statement, target), room)
            if not isinstance(step, Parallel):
                steps.append(Within(number, step))
    first = parts.shared[0]
    if extent(first) > 1:
        steps.append(Parallel(first.arg[0] if len(first.arg[0]) == 1 else first.arg[0][1:]))
    return tuple(steps)


def _blocked(parts: Statements) -> UOp | None:
    """The shared range along which most bytes of the contractions' operands stand still; None where none do."""
    still = dict.fromkeys(range(len(parts.shared)), 0)
    for node in (n for statement in parts.kernels for n in toposort(statement) if contraction(n) is not None):
        for load in (n for n in toposort(node.src[0]) if n.op is ops.LOAD):
            inside = _indices(load)
            for place, scalar in enumerate(parts.scalars):
                if scalar not in inside:
                    still[place] += count(load.ranges) * load.dtype.itemsize
    best = max(still, key=lambda place: (still[place], place))
    return parts.shared[best] if still[best] else None


def _indices(load: UOp) -> set[UOp]:
    """What the place of a load is made of, the extents of its ranges apart."""
    return set(toposort(load.src[1], enter=lambda n: n.op is not ops.RANGE))


def _rows(parts: Statements, turns: int, target: Target) -> int:
    """How many rows a block has: a divisor of all rows where there is one."""
    each = sum(memory.arg[1][0] * memory.dtype.itemsize for memory in parts.memory)
    most = max(1, min(_ROWS, target.l2 // 2 // each))
    if turns <= most:
        return turns
    return next((rows for rows in range(most, min(_FEWEST, most) - 1, -1) if turns % rows == 0), most)


def _once_for_all_blocks(
    statement: UOp, step: Stage, parts: Statements, steps: Sequence[Step], room: int
) -> tuple[Stage, int]:
    """The copy of an operand with all of its own loops as axes, if it does not vary from block to block and fits."""
    loads = [n for n in toposort(apply(flatten(statement), steps)) if n.op is ops.LOAD and n.src[0].arg[0] == step.slot]
    inner = parts.scalars[-1]
    if len(loads) != 1 or inner in _indices(loads[0]):
        return step, room
    (load,) = loads
    size = count(load.ranges) * load.dtype.itemsize
    if size > room:
        return step, room
    own = sorted((r for r in load.ranges if r.arg[0][1:] not in step.axes), key=lambda r: r.arg[0])
    return Stage(step.slot, (*[r.arg[0][1:] for r in own], *step.axes)), room - size
