"""Search for the steps of a kernel by measuring: a beam of schedules, each round with the neighbours of its members.

`search` takes the kernel, the steps to begin with and a `Trial` of the device, and gives the fastest steps that it
found in the time it may take.  The steps to begin with always take part, and in the end they and the best are measured
again in turns, so the answer is never slower than they are.  No schedule enters the beam before its results agreed with
the reference.  What cannot be compiled is refused by the compiler with an error and counts as tried.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from lazulite.base.errors import LazuliteError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.apply import apply
from lazulite.kernel.borders import regroup
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.moves import Steps, neighbours, simple_schedules
from lazulite.kernel.nest import extent
from lazulite.kernel.statements import has_statements

_DUEL = 7
"""How often the winner and the steps to begin with are measured again: a busy machine makes either look twice as slow
by chance."""
_GAIN = 0.98
"""A round that leaves more than this of the time ends the search."""
_MOST_VECTORS, _MOST_ROWS = 4, 2
"""Vectors at most as wide as so many registers, and tiles of at most so many times the registers: more only compiles
for long."""


def is_searchable(kernel: UOp, target: Target) -> bool:
    """Whether any schedule computes the same: not where stores have an order, nor yet for several statements."""
    return not has_statements(kernel) and not KernelFacts(kernel, target).serial


class Trial(Protocol):
    """Programs of one kernel on a device, over memory of their own."""

    def seconds(self, steps: Steps, limit: float) -> float:
        """The shortest run; infinity as soon as it is clearly above the limit.  LazuliteError for illegal steps."""

    def agrees(self, steps: Steps) -> bool:
        """Whether the results are those of the reference."""


@dataclass(slots=True)
class Found:
    """What a search tells: the steps, their seconds and those of the steps it began with, and how much was tried."""

    steps: Steps
    seconds: float
    before: float
    tried: int = 0
    refused: int = 0
    wrong: int = 0


Tell = Callable[[Steps, float], None]
"""Called with each schedule that was tried and its time, infinity where it was refused or too slow."""


def search(
    kernel: UOp, target: Target, start: Steps, width: int, trial: Trial, is_over: Callable[[], bool],
    tell: Tell = lambda steps, seconds: None,
) -> Found:  # fmt: skip
    """The fastest steps found with a beam of this width; they are `start` if nothing is faster."""
    kernel = regroup(kernel)  # steps speak of its ranges as they are then
    state = _State(kernel, target, trial, tell, Found(start, 0.0, 0.0))
    state.times[start] = state.found.before = trial.seconds(start, math.inf)
    tell(start, state.found.before)
    beam, candidates = [start], [*simple_schedules(kernel, target)]
    while not is_over():
        candidates += [each for steps in beam for each in neighbours(kernel, steps, target)]
        Random(len(state.times)).shuffle(candidates)  # when the time is over, every kind of move had its chance
        best = state.times[beam[0]]
        state.try_all(candidates, is_over)
        beam, candidates = state.best(width, start), []
        if state.times[beam[0]] > _GAIN * best:
            break
    _decide(state, start, beam[0])
    return state.found


@dataclass(slots=True)
class _State:
    kernel: UOp
    target: Target
    trial: Trial
    tell: Tell
    found: Found
    times: dict[Steps, float] = field(default_factory=dict)
    """Seconds of each schedule that was tried, infinity where it is out."""
    right: set[Steps] = field(default_factory=set)

    def try_all(self, candidates: list[Steps], is_over: Callable[[], bool]) -> None:
        for steps in candidates:
            if is_over():
                return
            if steps not in self.times:
                self.times[steps] = self._seconds(steps)
                self.tell(steps, self.times[steps])

    def _seconds(self, steps: Steps) -> float:
        self.found.tried += 1
        try:
            if is_reasonable(apply(self.kernel, steps), self.target):
                return self.trial.seconds(steps, 2 * min(self.times.values()))
        except LazuliteError:
            pass
        self.found.refused += 1
        return math.inf

    def best(self, width: int, start: Steps) -> list[Steps]:
        """The fastest schedules that are right; where results differ a schedule is out."""
        chosen: list[Steps] = []
        for steps in sorted(self.times, key=self.times.__getitem__):
            if len(chosen) == width or math.isinf(self.times[steps]):
                break
            if steps == start or steps in self.right or self.trial.agrees(steps):
                self.right.add(steps)
                chosen.append(steps)
            else:
                self.found.wrong += 1
                self.times[steps] = math.inf
        return chosen


def is_reasonable(applied: UOp, target: Target) -> bool:
    """Whether no value of a kernel after its steps has far more elements than the registers hold."""
    for node in toposort(applied):
        kinds = [(r.arg[1], extent(r)) for r in node.ranges]
        lanes = math.prod([turns for kind, turns in kinds if kind == "lane"])
        rows = math.prod([turns for kind, turns in kinds if kind == "row"])
        if node.dtype is dtypes.index or node.op is ops.STORE:
            continue
        if rows > _MOST_ROWS * target.registers or lanes * node.dtype.itemsize > _MOST_VECTORS * target.vector_bytes:
            return False
    return True


def _decide(state: _State, start: Steps, winner: Steps) -> None:
    """Measure both again, in turns; the winner wins if both its median and its shortest time are shorter."""
    found, trial = state.found, state.trial
    pairs = [(trial.seconds(start, math.inf), trial.seconds(winner, math.inf)) for _ in range(_DUEL)]
    before, after = zip(*pairs, strict=True)
    found.before, found.seconds, found.steps = statistics.median(before), statistics.median(after), winner
    if found.seconds >= found.before or min(after) >= min(before):
        found.steps, found.seconds = start, found.before
