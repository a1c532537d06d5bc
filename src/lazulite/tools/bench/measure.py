"""Timing: every participant is correct first, then they take turns, each settled before its timed call.

A participant that has just run may still have threads that spin, and one that has waited has cold caches;
so before each timed call there is a pause and one untimed call.  The order changes from turn to turn, so
a slow phase of the machine hits all alike.  One participant computes at a time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy

from lazulite.base.errors import LazuliteError
from lazulite.base.terminal import say
from lazulite.tools.bench.inputs import draw
from lazulite.tools.bench.participants import OURS, Call, Participant
from lazulite.tools.bench.report import Facts, Report, rows_of
from lazulite.tools.bench.words import Fails, Lacks
from lazulite.tools.bench.words_numpy import NumPyWords
from lazulite.tools.bench.workload import Workload, as_list


@dataclass(frozen=True)
class Effort:
    """How long to measure a workload: `turns`, or fewer when `seconds` are over, but at least `fewest`."""

    turns: int
    seconds: float
    fewest: int
    pause: float = 0.0
    """Seconds of rest before each timed call."""


FULL = Effort(turns=20, seconds=10.0, fewest=3, pause=0.15)
"""The pause is longer than any library lets its threads spin after a call: the OpenMP of torch was seen to do
it for 8 ms, the OpenBLAS of NumPy for 118 ms, and a thread that spins takes a core from every process."""
QUICK = Effort(turns=2, seconds=1.0, fewest=2)
_SETTLE = 3
"""How often a participant is called before it takes turns: some compile at the second call."""
_LONG = 1.0
"""Seconds of a call that is so long that no call before it matters to its time."""


@dataclass(frozen=True)
class Prepared:
    """A participant is ready: how long its first call took, compilation included, and what it gave."""

    first_s: float
    results: list[Any]


class Timed(Protocol):
    """Who takes turns."""

    name: str

    def seconds(self) -> float:
        """The time of one call of what was prepared last."""


class Seat(Timed, Protocol):
    """Where a participant sits: in this process (`Here`), or in one of its own."""

    def prepare(self, workload: Workload) -> Prepared:
        """Get ready for a workload; `Lacks` where the library cannot."""


class Here:
    """A participant in this process."""

    call: Call
    workload: Workload
    last = 0.0
    """Seconds of a call while it was prepared."""

    def __init__(self, player: Participant) -> None:
        self.name, self.player = player.name, player

    def prepare(self, workload: Workload) -> Prepared:
        """A library that lacks something may raise anything; what it says is told."""
        self.workload, self.call = workload, _nothing
        try:
            self.call = self.player.prepare(workload, draw(workload.inputs))
            results, first = self._timed()
            for _ in range(_SETTLE):
                results, self.last = self._timed()
                if self.last > _LONG:
                    break
            return Prepared(first, [_thinned(result, workload.sample) for result in self.player.fetch(results)])
        except Lacks:
            raise
        except Exception as error:
            raise Fails(f"{type(error).__name__}: {_first_line(str(error))}") from error

    def seconds(self) -> float:
        """The time of one call, after an untimed one if it is short."""
        repeat, clock = self.workload.calls, self.workload.clock
        if self.last < _LONG:
            self.call()
        begin = clock()
        for _ in range(repeat):
            self.call()
        return (clock() - begin) / repeat

    def _timed(self) -> tuple[Any, float]:
        begin = time.perf_counter()
        results = self.call()
        return results, time.perf_counter() - begin


def _nothing() -> None:
    """Stands for a call while there is none, so that the memory of the last workload is free."""


def _first_line(text: str, limit: int = 120) -> str:
    return text.strip().partition("\n")[0][:limit]


def measure(workload: Workload, seats: Sequence[Seat], effort: Effort, report: Report) -> None:
    """Check every participant, time in turns those that are correct, and add what was found to the report."""
    formula = workload.meaning or workload.formula
    inputs = [_wide(array) for array in draw(workload.inputs)]
    want = as_list(formula(NumPyWords(), *inputs))
    prepared: dict[str, Prepared] = {}
    facts: dict[str, Facts] = {}
    ideal = _ideal_seconds(workload, want, report.machine)
    for seat in seats:
        try:
            prepared[seat.name] = seat.prepare(workload)
        except Lacks as missing:
            _leave_out(report, workload, seat, str(missing), isinstance(missing, Fails))
        except LazuliteError as wrong:
            _leave_out(report, workload, seat, wrong.message, True)
    want = _completed(want, prepared)
    for seat in [seat for seat in seats if seat.name in prepared]:
        try:
            found = prepared[seat.name]
            error = check(workload.name, seat.name, found.results[: len(want)], want, workload.tolerance)
            facts[seat.name] = Facts(error, found.first_s, ideal)
        except LazuliteError as wrong:
            _leave_out(report, workload, seat, wrong.message, True)
    ready = [seat for seat in seats if seat.name in facts]
    report.rows += rows_of(workload.name, take_turns(ready, effort), facts, OURS)


def _thinned(result: Any, step: int) -> Any:
    return result if step == 1 or numpy.ndim(result) == 0 else numpy.ravel(result)[::step]


def _completed(want: list[Any], prepared: Mapping[str, Prepared]) -> list[Any]:
    """What the reference knows; the weights after a step, which it does not, are those of another library than ours."""
    others = [found.results for name, found in prepared.items() if name != OURS and len(found.results) > len(want)]
    return [*want, *others[0][len(want) :]] if others else want


def _leave_out(report: Report, workload: Workload, seat: Seat, reason: str, broken: bool) -> None:
    """Tell why there is no time; that we are wrong or fail is a fault, whatever others do."""
    say(f"bench: {workload.name}: without {seat.name}: {reason}")
    report.missing.append((workload.name, seat.name, reason))
    if broken and seat.name == OURS:
        report.faults.append(f"{workload.name}: {reason}")


def _wide(array: Any) -> Any:
    return array.astype(numpy.float64) if array.dtype.kind == "f" else array


def _ideal_seconds(workload: Workload, results: Sequence[Any], machine: Mapping[str, Any]) -> float | None:
    """The time that the measured peak of the machine allows, of operations or of memory; None where neither bounds."""
    if workload.flops:
        return workload.flops / 1e9 / float(machine["multiply_add_gflops"])
    if not workload.streams:
        return None
    read = 4e-9 * sum([math.prod(each.shape) for each in workload.inputs])
    written = 4e-9 * sum([numpy.size(result) for result in results])
    return float(read / machine["read_gb_s"] + written / machine["write_gb_s"])


def check(workload: str, participant: str, got: Sequence[Any], want: Sequence[Any], tolerance: float) -> float:
    """The error of results; LazuliteError where they are not correct."""
    error = float(numpy.max([relative_error(*pair) for pair in zip(got, want, strict=True)]))
    if not error <= tolerance:  # NaN is no small error
        raise LazuliteError(
            "bench", f"{workload}: the result of {participant} is wrong, its error is {error:.1e}",
            rule=f"Errors are relative to the largest value of a result; up to {tolerance:.0e} is correct.",
        )  # fmt: skip
    return error


def relative_error(got: Any, want: Any) -> float:
    """The largest difference, relative to the largest value.

    >>> relative_error([1.0, 4.5], [1.0, 4.0])
    0.125
    """
    got, want = numpy.asarray(got), numpy.asarray(want)
    if got.shape != want.shape:
        return float("inf")
    largest = float(numpy.max(numpy.abs(want)))
    return float(numpy.max(numpy.abs(got - want))) / (largest or 1.0)


def take_turns(seats: Sequence[Timed], effort: Effort) -> dict[str, list[float]]:
    """Seconds a call takes, by participant; one that alone used up the time of all sits out."""
    times: dict[str, list[float]] = {seat.name: [] for seat in seats}
    begin = time.perf_counter()
    for turn in range(effort.turns if seats else 0):
        if turn >= effort.fewest and time.perf_counter() - begin > effort.seconds:
            break
        first = turn % len(seats)
        for seat in [*seats[first:], *seats[:first]]:
            if sum(times[seat.name]) > effort.seconds:
                continue
            time.sleep(effort.pause)
            times[seat.name].append(seat.seconds())
    return times
