"""Requests share a model: each gets the tokens that it would get alone, and nobody waits for ever."""

from __future__ import annotations

import pytest

from lazulite import ArgumentError
from lazulite.llm.batching import Request, Scheduler, Step
from lazulite.llm.sampling import Sampling
from support.language_models import tiny

PROMPTS = [[1, 2, 3], [9] * 20, [7, 8], [100, 101, 102, 103], [50]]


def asked(scheduler: Scheduler, prompt: list[int], most: int = 6, ends: frozenset[int] = frozenset()) -> list[Step]:
    """A request, and the steps that it will have been told of."""
    told: list[Step] = []
    scheduler.submit(Request(prompt, Sampling(), most, ends, told.append, likely=1))
    return told


def finished(scheduler: Scheduler) -> None:
    for _ in range(1000):
        if not scheduler.step():
            return
    raise AssertionError("it never ends")


def alone(prompt: list[int], most: int = 6) -> list[int]:
    scheduler = tiny().scheduler
    told = asked(scheduler, prompt, most)
    finished(scheduler)
    return [step.token for step in told]


def test_more_requests_than_slots_get_what_each_gets_alone() -> None:
    scheduler = tiny(slots=2).scheduler
    told = [asked(scheduler, prompt) for prompt in PROMPTS]
    finished(scheduler)

    assert [alone(prompt) for prompt in PROMPTS] == [[step.token for step in each] for each in told]
    assert ["length"] * 5 == [each[-1].done for each in told]
    assert (0, 0) == (scheduler.running, scheduler.waiting)


def test_the_first_token_is_told_before_a_second_one_is_computed() -> None:
    """Whoever waits for it does not wait until the step that computes the others is compiled, too."""
    scheduler = tiny().scheduler
    told = asked(scheduler, [1, 2, 3])
    scheduler.step()

    assert 1 == len(told)


def test_a_long_prompt_delays_the_others_by_a_part_at_most() -> None:
    scheduler = tiny(slots=2, context=250).scheduler
    first = asked(scheduler, [1, 2, 3], most=50)
    scheduler.step()
    asked(scheduler, [5] * 240, most=1)
    before = len(first)
    scheduler.step()

    assert before + 1 == len(first)


def test_a_beginning_that_a_slot_holds_is_not_read_again() -> None:
    scheduler = tiny().scheduler
    told = asked(scheduler, [1, 2, 3, 4, 5])
    finished(scheduler)
    held = [1, 2, 3, 4, 5, *[step.token for step in told[:-1]]]
    assert held == scheduler.slots[0].held

    again = asked(scheduler, [*held, 77], most=3)
    scheduler._assign()
    assert [77] == scheduler.slots[0].pending
    finished(scheduler)

    assert alone([*held, 77], 3) == [step.token for step in again]


def test_the_slot_that_holds_most_of_the_beginning_is_taken() -> None:
    scheduler = tiny(slots=2).scheduler
    for prompt in ([1, 2, 3], [4, 5, 6]):
        asked(scheduler, prompt, most=1)
    finished(scheduler)
    asked(scheduler, [4, 5, 6, 7])
    scheduler._assign()

    assert [None, [4, 5, 6]] == [slot.held if slot.request else None for slot in scheduler.slots]


def test_a_cancelled_request_frees_its_slot_with_the_next_step() -> None:
    scheduler = tiny().scheduler
    told: list[Step] = []
    request = Request([1, 2, 3], Sampling(), 100, frozenset(), told.append)
    scheduler.submit(request)
    scheduler.step()
    request.cancelled = True
    waiting = asked(scheduler, [4, 5], most=1)
    scheduler.step()
    scheduler.step()

    assert ["length"] == [step.done for step in waiting]
    assert len(told) <= 2


def test_an_end_token_ends_a_text() -> None:
    first = alone([1, 2, 3])[0]
    scheduler = tiny().scheduler
    told = asked(scheduler, [1, 2, 3], ends=frozenset({first}))
    finished(scheduler)

    assert [(first, "stop")] == [(step.token, step.done) for step in told]


def test_a_text_ends_where_the_context_does() -> None:
    scheduler = tiny(context=16).scheduler
    told = asked(scheduler, [1] * 12, most=100)
    finished(scheduler)

    assert ("length", 4) == (told[-1].done, len(told))


def test_chances_are_told() -> None:
    scheduler = tiny().scheduler
    told = asked(scheduler, [1, 2, 3], most=1)
    finished(scheduler)

    assert told[0].likely == [(told[0].token, told[0].log_chance)]
    assert told[0].log_chance < 0


@pytest.mark.parametrize(("prompt", "message"), [([], "one token"), ([10**6], "integers"), ([1] * 500, "does not fit")])
def test_a_prompt_that_can_never_run_is_refused(prompt: list[int], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        tiny().scheduler.submit(Request(prompt, Sampling(), 1, frozenset(), lambda step: None))
