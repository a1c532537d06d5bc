"""Choose the steps of a kernel with intermediates: the block, then the steps of each statement.

Rows of the shared range along which the statements' operands stand still are taken together, as many as let the
intermediates fit half of the second cache, so that each operand that is read serves a whole block.  Where even
a few rows of the intermediates are too long, statements run over strips of them (`kernel/strips.py`).  An operand
that would be copied anew for every block is copied once for all of them, where there is room.
Each statement gets the steps it would have alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd, prod

from lazulite.analysis.access import coefficient
from lazulite.analysis.contraction import contraction
from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp, nodes_of, toposort
from lazulite.kernel.apply import Loop, loops_after
from lazulite.kernel.blocks import block_statements, merged
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.nest import by_order, count, extent
from lazulite.kernel.statements import Statements, split_statements
from lazulite.kernel.steps import Block, Name, Parallel, Partition, Stage, Step, Strip, Vectorize, Within

_ROWS = 32
"""Rows of a block: enough for the register tiles to use what they load."""
_TALL, _TALLEST, _PIECES = 64, 128, 8
"""The same where rows are worked on in strips: then each strip of an operand is read from farther away.  The most where
so many blocks are left for threads to share."""
_FEWEST = 16
_FAR_COPIES = 4
"""How many times the second cache copies may fill that are made once for all blocks: to read them from farther away
still takes less than to make them anew."""

Choose = Callable[[KernelFacts], tuple[Step, ...]]


def choose_blocks(kernel: UOp, target: Target, choose: Choose) -> tuple[Step, ...]:
    """The steps; `choose` gives those of an ordinary kernel."""
    steps, parts = _blocks(merged(kernel), target)
    room = _FAR_COPIES * target.l2
    for number, statement in enumerate(parts.kernels):
        facts = KernelFacts(statement, target, _still(statement, parts, room))
        alone = [step for step in choose(facts) if not isinstance(step, Parallel)]
        copies = _copies(facts, alone, room)
        room -= sum(size for _, size in copies)
        slots = {copy.slot for copy, _ in copies}
        kept = [step for step in alone if not (isinstance(step, Stage) and step.slot in slots)]
        steps += [Within(number, step) for step in (*kept, *[copy for copy, _ in copies])]
    return tuple(steps)


def _still(statement: UOp, parts: Statements, room: int) -> dict[UOp, int]:
    """The operands of products that are the same for all blocks, and small enough to be copied as a whole, each with
    the number of blocks."""
    loads = _operands(statement, parts)
    alike = [n for n in loads if not set(_indices(n)).intersection(parts.scalars[-1:])]
    return {n: prod(map(extent, parts.shared[-1:])) for n in alike if _bytes(n) <= room}


def _operands(statement: UOp, parts: Statements) -> list[UOp]:
    """The operands of a statement's products, intermediates apart."""
    products = [n for n in nodes_of(statement) if n.op is ops.REDUCE and contraction(n) is not None]
    return [n for p in products for n in toposort(p.src[0]) if n.op is ops.LOAD and n.src[0] not in parts.memory]


@dataclass(frozen=True, slots=True)
class _Still:
    """A shared range along which operands stand still."""

    range: UOp
    turns: int
    """For how many turns at a time: all, or as many as share a head of keys and values."""
    bytes: int


def _blocked(parts: Statements) -> _Still | None:
    """The shared range along which most bytes of the contractions' operands stand still; None where none do.

    Intermediates are none of them: a block has rows of its own in each.
    """
    found: list[_Still] = []
    operands = [(load, _indices(load)) for kernel in parts.kernels for load in _operands(kernel, parts)]
    for r, scalar in zip(parts.shared, parts.scalars, strict=True):
        alike = [(load, _turns_alike(places, scalar, extent(r))) for load, places in operands]
        turns = [(still, load) for load, still in alike if still > 1]
        size = sum(_bytes(load) for _, load in turns)
        if turns:
            found.append(_Still(r, gcd(*[still for still, _ in turns]), size))
    return max(found, key=lambda still: (still.bytes, still.range.arg[0]), default=None)


def _turns_alike(places: Sequence[UOp], scalar: UOp, turns: int) -> int:
    """How many neighbouring turns of a shared range read the same, given what the place of a load is made of: all,
    those that a division joins, or one."""
    users = [node for node in places if scalar in node.src]
    if scalar is not places[-1] and all(u.op is ops.FLOORDIV and u.src[1].op is ops.CONST for u in users):
        return gcd(turns, *[int(user.src[1].value) for user in users])
    return 1


def _bytes(load: UOp) -> int:
    """How much a load reads over all turns of its ranges."""
    return count(load.ranges) * load.dtype.itemsize


def _indices(load: UOp) -> list[UOp]:
    """What the place of a load is made of, the extents of its ranges apart."""
    return toposort(load.src[1], enter=lambda n: n.op is not ops.RANGE)


def _blocks(kernel: UOp, target: Target) -> tuple[list[Step], Statements]:
    """The steps that concern all statements, and the statements after them: blocks of rows, over strips where it may
    be that these keep near what is read again."""
    parts = split_statements(kernel)
    still = _blocked(parts)
    for steps in _over_strips(parts, still, target):
        try:
            return _after(kernel, steps)
        except StageError:  # no strips of this axis
            continue
    turns = 1 if still is None else still.turns
    return _after(kernel, _block(still, _rows(_scratch(parts), turns, _ROWS, target)))


def _after(kernel: UOp, steps: list[Step]) -> tuple[list[Step], Statements]:
    """These steps and that for threads, and the statements after them."""
    steps = [*steps, *_threads(split_statements(kernel), steps)]
    return steps, split_statements(block_statements(kernel, steps))


def _block(still: _Still | None, rows: int) -> list[Step]:
    return [] if still is None or rows == 1 else [Block(still.range.arg[0], rows)]


def _threads(parts: Statements, steps: Sequence[Step]) -> list[Parallel]:
    """Threads share the outermost of the shared ranges, which the loop over blocks is if it is the only one; not one
    whose turns add to the same result."""
    blocks = {step.range: step.factor for step in steps if isinstance(step, Block)}
    adding = parts.totals.values()
    free = [r for r, scalar in zip(parts.shared, parts.scalars, strict=True) if scalar not in adding]
    for r in sorted(free, key=lambda r: r.arg[0] in blocks)[:1]:
        name, factor = r.arg[0], blocks.get(r.arg[0])
        if extent(r) > (factor or 1):
            return [Parallel(name if factor is None else (*name, 0))]
    return []


def _scratch(parts: Statements) -> int:
    """The scratch memory of a row, but for single numbers."""
    return max(1, sum([int(m.arg[1][0]) * m.dtype.itemsize for m in set(parts.memory) if m.arg[1][0] > 1]))


def _rows(size: int, turns: int, aim: int, target: Target) -> int:
    """How many rows of so many bytes a block has: a divisor of all rows where there is one."""
    most = max(1, min(aim, target.l2 // 2 // size))
    if turns <= most:
        return turns
    return next((rows for rows in range(most, min(_FEWEST, most) - 1, -1) if turns % rows == 0), most)


def _over_strips(parts: Statements, still: _Still | None, target: Target) -> Iterator[list[Step]]:
    """Blocks over strips, the longest axis first, where too much would lie between writing and reading an intermediate,
    or between two rows that read the same of an operand."""
    turns, operands = (1, 0) if still is None else (still.turns, still.bytes)
    far = _scratch(parts) * min(turns, _ROWS) > target.l2 // 8 or (turns > 1 and operands > target.l2 // 2)
    if not (parts.fills_once and far):
        return
    tall = max(_TALL, min(_TALLEST, count(parts.shared) // _PIECES))
    (store,) = parts.kernels[0].src
    for r in sorted(store.src[1].ranges, key=extent, reverse=True):
        each = _scratch(parts) // extent(r) + 1
        factor = _strip_size(extent(r), target.l2 // 4 // tall // each)
        if _FEWEST <= factor < extent(r):
            rows = _rows(factor * each + _results(parts, r), turns, tall, target)
            yield [*_block(still, rows), Strip(r.arg[0], factor)]


def _results(parts: Statements, axis: UOp) -> int:
    """What a row keeps of reductions over an axis from strip to strip: of a maximum also the one before and a ratio."""
    reductions = [node for kernel in parts.kernels for node in nodes_of(kernel) if node.op is ops.REDUCE]
    kept = [node for node in reductions if any(r.src[0] is axis.src[0] for r in node.src[1:])]
    return sum((3 if n.arg[0] is ops.MAX else 1) * count(n.ranges) * n.dtype.itemsize for n in kept)


def _strip_size(turns: int, most: int) -> int:
    """Strips of equal size, if there is one not much smaller than the largest."""
    exact = next((size for size in range(most, most // 2, -1) if turns % size == 0 and size % _FEWEST == 0), None)
    return exact or most - most % _FEWEST


def _copies(facts: KernelFacts, steps: Sequence[Step], room: int) -> list[tuple[Stage, int]]:
    """Copies, made once for all blocks, of operands whose lanes lie apart, with their sizes."""
    copies: list[tuple[Stage, int]] = []
    lanes = [step.range for step in steps if isinstance(step, Vectorize)]
    loops: list[Loop] = []
    for load in sorted(facts.still, key=lambda load: load.src[0].arg[0]):
        ranges = by_order(load.ranges)
        for parts in product(*[_parts(r, steps) for r in ranges]):
            if not any(
                _lies_apart(load, r, lane, part) for r, part in zip(ranges, parts, strict=True) for lane in lanes
            ):
                continue
            loops = loops or loops_after(facts.sink, steps)
            own = [loop for loop in loops if loop.extent > 1 and any(map(loop.is_of, parts))]
            size = load.dtype.itemsize * prod(loop.extent for loop in own)
            if size <= room:
                axes = [loop.name for kind in ("loop", "row", "lane") for loop in own if loop.kind == kind]
                copies.append((Stage(load.src[0].arg[0], tuple(axes)), size))
                room -= size
    return copies


def _lies_apart(load: UOp, r: UOp, lane: Name, part: Name) -> bool:
    """Whether lanes are of this part of a range and no neighbours in memory: along the range none are, or lanes are
    blocks of turns."""
    return lane[: len(part)] == part and (coefficient(load.src[1], r) not in (0, 1) or 0 in lane[len(part) :])


def _parts(r: UOp, steps: Sequence[Step]) -> list[Name]:
    """The range, or its parts if it is parted."""
    names: list[Name] = [r.arg[0]]
    for step in steps:
        if isinstance(step, Partition) and step.range in names:
            at = names.index(step.range)
            names[at : at + 1] = [(*step.range, 0), (*step.range, 1)]
    return names
