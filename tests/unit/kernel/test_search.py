"""The search with clocks that are made up: what it keeps, refuses and answers."""

import math

import pytest

from lazulite.base.errors import StageError
from lazulite.ir.target import host
from lazulite.kernel.apply import apply
from lazulite.kernel.heuristic import choose
from lazulite.kernel.search import is_reasonable, search
from lazulite.kernel.steps import Parallel, Split, Tile, Vectorize, parse, text
from support.kernels import load, loop, matmul, param, sink, store

KERNEL = matmul(64, 64, 64)
START = choose(KERNEL, host())


class Made:
    """A trial whose times follow from the steps."""

    def __init__(self, time, wrong=lambda steps: False):
        self.time, self.wrong, self.measured = time, wrong, []

    def seconds(self, steps, limit):
        self.measured.append(steps)
        return self.time(steps)

    def agrees(self, steps):
        return not self.wrong(steps)


def run(trial, width=2, tries=200, start=START, tell=lambda steps, seconds: None):
    return search(KERNEL, host(), start, width, trial, lambda: len(trial.measured) >= tries, tell)


def by_factor(steps):
    """The larger the factors, the faster."""
    return 1 / (1 + sum(step.factor for step in steps if isinstance(step, Split)))


def test_a_faster_schedule_is_found_and_is_the_same_every_time():
    first, second = run(Made(by_factor)), run(Made(by_factor))
    assert first.steps == second.steps != START
    assert first.seconds == by_factor(first.steps) < first.before == by_factor(START)


def test_where_nothing_is_faster_the_steps_stay():
    found = run(Made(lambda steps: 1.0 if steps == START else 2.0))
    assert (START, 1.0, 1.0) == (found.steps, found.seconds, found.before)


def test_a_winner_that_is_slower_when_measured_again_does_not_win():
    """A schedule is fast once by chance only."""
    seen = set()

    def once(steps):
        fresh = steps not in seen
        seen.add(steps)
        return 1.0 if steps == START else 0.1 if fresh else 5.0

    assert START == run(Made(once)).steps


def test_a_winner_that_is_faster_by_chance_now_and_then_does_not_win():
    """The shortest time of a busy machine says little by itself."""
    calls = []

    def now_and_then(steps):
        calls.append(steps)
        return 1.0 if steps == START else 0.5 if calls.count(steps) in (1, 4) else 1.5

    assert START == run(Made(now_and_then)).steps


def test_a_schedule_with_wrong_results_is_never_answered():
    found = run(Made(by_factor, wrong=lambda steps: steps != START))
    assert START == found.steps and found.wrong > 0


def test_what_is_refused_counts_and_does_not_end_the_search():
    def refuse(steps):
        if any(isinstance(step, Tile) for step in steps) and steps != START:
            raise StageError("kernel.steps", "no tiles today")
        return by_factor(steps)

    found = run(Made(refuse))
    assert found.refused > 0 and found.tried > found.refused
    assert not any(isinstance(step, Tile) for step in found.steps) or found.steps == START


def test_no_time_means_the_steps_to_begin_with():
    trial = Made(by_factor)
    assert START == run(trial, tries=0).steps
    assert {START} == set(trial.measured)


@pytest.mark.parametrize("width", [1, 4])
def test_every_schedule_is_measured_once_before_the_decision(width):
    trial = Made(by_factor)
    found = run(trial, width)
    tried = trial.measured[:-14]
    assert len(tried) == len(set(tried)) == 1 + found.tried - found.refused


def test_every_trial_is_told_with_its_time():
    told = {}
    run(Made(by_factor), tell=told.__setitem__)
    assert by_factor(START) == told[START] and any(seconds < told[START] for seconds in told.values())
    assert all(parse(text(steps)) == steps for steps in told)


def test_a_kernel_without_steps_gets_some():
    found = run(Made(lambda steps: 1 / (1 + len(steps))), start=())
    assert any(isinstance(step, Vectorize | Parallel) for step in found.steps)


def test_tiles_and_vectors_far_beyond_the_registers_are_not_tried():
    many = apply(matmul(512, 64, 64), (Tile((0,)),))
    wide = apply(matmul(64, 2048, 64), (Vectorize((1,)),))
    assert not is_reasonable(many, host()) and not is_reasonable(wide, host())
    assert is_reasonable(apply(KERNEL, START), host())
    assert math.inf > run(Made(by_factor)).seconds


def test_a_search_begins_with_ranges_as_steps_know_them():
    """Rows whose elements lie one behind the other are one range."""
    i, j = loop(0, 6), loop(1, 300)
    kernel = sink(store(param(0, 1800), i * 300 + j, load(param(1, 1800), i * 300 + j) + 1))
    found = search(kernel, host(), choose(kernel, host()), 2, Made(lambda steps: 1.0), lambda: False)
    assert found.tried > 0
