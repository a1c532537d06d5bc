"""The schedules next to a given one: what a search tries from there.

A move changes one decision (a factor, the order of loops, which range has the lanes, what is unrolled, copied or
parallel) and keeps the rest; later steps then speak of what became of the ranges they named.  Some of what comes
out cannot be applied: `kernel/apply.py` refuses it.  Steps of kinds that are not known here stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.apply import Loop, loops_after
from lazulite.kernel.nest import extent
from lazulite.kernel.steps import (
    Axis,
    Keep,
    Name,
    Parallel,
    Partition,
    Prefetch,
    Reorder,
    Split,
    Stage,
    Step,
    Stream,
    Tile,
    Vectorize,
    names,
)

Steps = tuple[Step, ...]
_ROWS = (2, 4, 8)
_BLOCKS = (8, 32, 128)
_WHOLE = 16
"""A range with at most so many turns may become rows as it is."""


@dataclass(frozen=True, slots=True)
class _Schedule:
    """Steps by what they do, in the order in which they are taken."""

    cuts: Steps
    """Ranges cut and marked."""
    order: tuple[Reorder, ...] = ()
    copies: Steps = ()
    """And hints, which speak of final ranges as copies do."""

    def cut(self, name: Name, factor: int, *kinds: type[Tile | Vectorize]) -> _Schedule:
        """A range in two, the inner part marked; a part that is marked has a place in every copy anyway."""
        new = (Split(name, factor), *[kind((*name, 1)) for kind in kinds])
        parts = ((*name, 0),) if kinds else ((*name, 0), (*name, 1))
        order = tuple([Reorder(_instead(step.ranges, name, parts)) for step in self.order])
        copies = [replace(s, axes=_axes(s.axes, name, parts)) if isinstance(s, Stage) else s for s in self.copies]
        return _Schedule((*self.cuts, *new), order, tuple(copies))


def _instead(ranges: Iterable[Name], old: Name, parts: tuple[Name, ...]) -> tuple[Name, ...]:
    return tuple([part for name in ranges for part in (parts if name == old else (name,))])


def _axes(axes: Iterable[Axis], old: Name, parts: tuple[Name, ...]) -> tuple[Axis, ...]:
    """The axes of a copy; parts of a range that shared an axis share it."""
    found: list[Axis] = []
    for axis in axes:
        ranges = names(axis)
        found += _instead(ranges, old, parts) if len(ranges) == 1 else [_instead(ranges, old, parts)]
    return tuple(found)


def neighbours(kernel: UOp, steps: Steps, target: Target) -> Iterator[Steps]:
    """Schedules that differ from these steps in one decision, each once."""
    copies = Stage | Keep | Prefetch | Stream
    cuts = tuple([step for step in steps if not isinstance(step, Reorder | Parallel | copies)])
    order = tuple([step for step in steps if isinstance(step, Reorder)])
    schedule = _Schedule(cuts, order, tuple([step for step in steps if isinstance(step, copies)]))
    loops, parallel = loops_after(kernel, steps), any(isinstance(step, Parallel) for step in steps)
    seen = {steps}
    moved = [*_resized(schedule), *_without(schedule), *_reordered(schedule, loops), *_unrolled(schedule, loops),
             *_blocked(schedule, loops), *_with_lanes(kernel, schedule, loops, target),
             *_copied(kernel, schedule, loops)]  # fmt: skip
    for found, threads in [*[(each, parallel) for each in moved], (schedule, not parallel)]:
        made = _joined(kernel, found, threads)
        if made is not None and made not in seen:
            seen.add(made)
            yield made


def simple_schedules(kernel: UOp, target: Target) -> Iterator[Steps]:
    """For each range one in which it has the lanes and nothing else is decided, on one thread and on several."""
    lanes = _lanes(kernel, target)
    for loop in loops_after(kernel, ()):
        for parallel in (False, True):
            made = _joined(kernel, _Schedule(()).cut(loop.name, lanes, Vectorize), parallel)
            if loop.extent > 1 and made is not None:
                yield made


def _joined(kernel: UOp, schedule: _Schedule, parallel: bool) -> Steps | None:
    """The steps, with the outermost loop parallel if this is wanted; None where they cannot be taken."""
    steps = schedule.cuts + schedule.order + schedule.copies
    if not parallel:
        return steps
    try:
        loops = [loop for loop in loops_after(kernel, steps) if loop.kind == "loop" and loop.extent > 1]
    except StageError:
        return None
    return None if not loops or loops[0].reduces else (*steps, Parallel(loops[0].name))


# --- the moves -----------------------------------------------------------------------------------


def _resized(schedule: _Schedule) -> Iterator[_Schedule]:
    """Another factor of a cut."""
    for place, step in enumerate(schedule.cuts):
        if isinstance(step, Split):
            for factor in (step.factor * 2, step.factor // 2, step.factor + 1, step.factor - 1):
                yield replace(schedule, cuts=_changed(schedule.cuts, place, Split(step.range, factor)))


def _without(schedule: _Schedule) -> Iterator[_Schedule]:
    """A mark or a copy left out; cuts stay, since later steps speak of their parts."""
    for place, step in enumerate(schedule.cuts):
        if not isinstance(step, Split | Partition):
            yield replace(schedule, cuts=_changed(schedule.cuts, place))
    for place in range(len(schedule.copies)):
        yield replace(schedule, copies=_changed(schedule.copies, place))


def _changed(steps: Steps, place: int, *new: Step) -> Steps:
    return steps[:place] + new + steps[place + 1 :]


def _reordered(schedule: _Schedule, loops: list[Loop]) -> Iterator[_Schedule]:
    """Two loops that follow each other change places."""
    plain = [loop for loop in loops if _turns(loop)]
    for at in range(len(plain) - 1):
        if plain[at].reduces == plain[at + 1].reduces:
            order = [loop.name for loop in plain]
            order[at : at + 2] = [order[at + 1], order[at]]
            yield replace(schedule, order=(Reorder(tuple(order)),))


def _unrolled(schedule: _Schedule, loops: list[Loop]) -> Iterator[_Schedule]:
    """A loop, or some turns of it, as rows."""
    for loop in filter(_turns, loops):
        if loop.extent <= _WHOLE:
            order = tuple([Reorder(_instead(step.ranges, loop.name, ())) for step in schedule.order])
            yield replace(schedule, cuts=(*schedule.cuts, Tile(loop.name)), order=order)
        for rows in _ROWS:
            if rows < loop.extent:
                yield schedule.cut(loop.name, rows, Tile)


def _blocked(schedule: _Schedule, loops: list[Loop]) -> Iterator[_Schedule]:
    """A loop in blocks, with the loop over the blocks outermost."""
    outer = [loop for loop in loops if _turns(loop) and not loop.reduces]
    for loop in outer:
        rest = [(*loop.name, 1) if other is loop else other.name for other in outer]
        for factor in _BLOCKS:
            if factor * 2 <= loop.extent:
                order = (Reorder(((*loop.name, 0), *rest)),)
                yield replace(schedule.cut(loop.name, factor), order=order)


def _with_lanes(kernel: UOp, schedule: _Schedule, loops: list[Loop], target: Target) -> Iterator[_Schedule]:
    """Another range has the lanes; what had them before becomes rows or a loop, or keeps them for other values."""
    lanes, old = _lanes(kernel, target), [step for step in schedule.cuts if isinstance(step, Vectorize)]
    for loop in filter(_turns, loops):
        new = schedule.cut(loop.name, lanes, Vectorize)
        yield new
        for step in old:
            for instead in ((Tile(step.range),), ()):
                yield replace(new, cuts=_changed(new.cuts, new.cuts.index(step), *instead))


def _copied(kernel: UOp, schedule: _Schedule, loops: list[Loop]) -> Iterator[_Schedule]:
    """An operand in panels: the loops of reductions are the outer axes of its copy, rows and lanes the inner ones."""
    known = {step.slot for step in schedule.copies if isinstance(step, Stage)}
    for slot, ranges in _operands(kernel).items():
        own = [loop for loop in loops if any(loop.name[: len(name)] == name for name in ranges)]
        reduced = [loop.name for loop in own if loop.reduces and _turns(loop)]
        inner = sorted([loop for loop in own if loop.kind in ("row", "lane")], key=lambda loop: loop.kind == "lane")
        if slot not in known and reduced and inner:
            stage = Stage(slot, (*reduced, *[loop.name for loop in inner]))
            yield replace(schedule, copies=(*schedule.copies, stage))


# --- facts ---------------------------------------------------------------------------------------


def _turns(loop: Loop) -> bool:
    """Whether it stays a loop."""
    return loop.kind in ("loop", "parallel") and loop.extent > 1


def _lanes(kernel: UOp, target: Target) -> int:
    return min([target.lanes(store.src[2].dtype) for store in kernel.src])


def _operands(kernel: UOp) -> dict[int, set[Name]]:
    """The ranges with which the loads of each memory slot vary."""
    found: dict[int, set[Name]] = {}
    for node in toposort(kernel):
        if node.op is ops.LOAD and node.src[0].op is ops.PARAM:
            names = [r.arg[0] for r in node.ranges if extent(r) > 1]
            found.setdefault(node.src[0].arg[0], set()).update(names)
    return found
