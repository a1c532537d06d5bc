"""Timing: every participant is correct first, then they take turns, each settled before its timed call.

A participant that has just run may still have threads that spin, and one that has waited has cold caches;
so before each timed call there is a pause and one untimed call.  The order changes from turn to turn, so
a slow phase of the machine hits all alike.  One participant computes at a time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy

from lazulite.base.errors import LazuliteError
from lazulite.tools.bench.participants import OURS, Call, Participant
from lazulite.tools.bench.report import Row, rows_of
from lazulite.tools.bench.workloads import Workload


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


class Seat(Protocol):
    """Where a participant sits: in this process (`Here`), or in one of its own."""

    name: str

    def prepare(self, workload: Workload) -> float:
        """Get ready for a workload; the error of the first result, which is correct."""

    def seconds(self) -> float:
        """The time of one call of the workload that was prepared last."""


class Here:
    """A participant in this process."""

    call: Call
    workload: Workload

    def __init__(self, player: Participant) -> None:
        self.name, self.player = player.name, player

    def prepare(self, workload: Workload) -> float:
        inputs = inputs_of(workload)
        want = workload.arrays(numpy, *[array.astype(numpy.float64) for array in inputs])
        self.workload, self.call = workload, self.player.prepare(workload, inputs)
        return check(workload.name, self.name, self.player.fetch(self.call()), want, workload.tolerance)

    def seconds(self) -> float:
        """The time of one call, after an untimed one."""
        repeat, clock = self.workload.calls, self.workload.clock
        self.call()
        begin = clock()
        for _ in range(repeat):
            self.call()
        return (clock() - begin) / repeat


def measure(workload: Workload, seats: Sequence[Seat], effort: Effort) -> list[Row]:
    """Check every participant, time them in turns, and compare."""
    errors = {seat.name: seat.prepare(workload) for seat in seats}
    return rows_of(workload.name, take_turns(seats, effort), errors, OURS)


def inputs_of(workload: Workload) -> list[Any]:
    """Random float32 arrays, the same in every process."""
    generator = numpy.random.default_rng(7)
    if workload.positive:
        return [generator.random(shape, dtype=numpy.float32) + numpy.float32(0.5) for shape in workload.inputs]
    return [generator.standard_normal(shape, dtype=numpy.float32) for shape in workload.inputs]


def check(workload: str, participant: str, got: Any, want: Any, tolerance: float) -> float:
    """The error of a result; LazuliteError where it is not correct."""
    error = relative_error(got, want)
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


def take_turns(seats: Sequence[Seat], effort: Effort) -> dict[str, list[float]]:
    """Seconds a call takes, by participant."""
    times: dict[str, list[float]] = {seat.name: [] for seat in seats}
    begin = time.perf_counter()
    for turn in range(effort.turns):
        if turn >= effort.fewest and time.perf_counter() - begin > effort.seconds:
            break
        first = turn % len(seats)
        for seat in [*seats[first:], *seats[:first]]:
            time.sleep(effort.pause)
            times[seat.name].append(seat.seconds())
    return times
