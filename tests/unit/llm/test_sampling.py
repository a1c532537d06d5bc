"""Tokens are chosen as asked for, and the same ones for the same seed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from lazulite import ArgumentError
from lazulite.llm.sampling import Sampler, Sampling, log_chances

SCORES = np.log(np.array([0.5, 0.25, 0.15, 0.07, 0.03], dtype=np.float32))


def drawn(times: int = 2000, **how: Any) -> Counter[int]:
    sampler = Sampler(Sampling(temperature=how.pop("temperature", 1.0), seed=1, **how))
    return Counter(sampler.choose(SCORES) for _ in range(times))


def test_without_temperature_the_highest_score_wins() -> None:
    assert [0] * 5 == [Sampler(Sampling()).choose(SCORES) for _ in range(5)]


def test_draws_have_the_chances_of_the_model() -> None:
    found = drawn(20000)

    np.testing.assert_allclose([found[token] / 20000 for token in range(5)], np.exp(SCORES), atol=0.015)


@pytest.mark.parametrize(
    ("how", "kept"),
    [
        ({"top_k": 2}, {0, 1}),
        ({"top_p": 0.7}, {0, 1}),
        ({"top_p": 0.76}, {0, 1, 2}),
        ({"top_p": 0.0}, {0}),
        ({"min_p": 0.25}, {0, 1, 2}),
        ({"top_k": 3, "min_p": 0.4}, {0, 1}),
    ],
    ids=str,
)
def test_unlikely_tokens_are_never_drawn(how: dict[str, float], kept: set[int]) -> None:
    assert kept == set(drawn(**how))


def test_equal_seeds_draw_equal_tokens() -> None:
    first, second, other = [[Sampler(Sampling(1.0, seed=s)).choose(SCORES) for s in seeds]
                            for seeds in (range(20), range(20), range(20, 40))]  # fmt: skip
    assert first == second != other


def test_a_bias_decides() -> None:
    assert 3 == Sampler(Sampling(bias={3: 100.0, 99: 5.0})).choose(SCORES)


def test_penalties_take_from_what_was_there() -> None:
    """Repetition counts the prompt, presence and frequency what was generated."""
    positive = SCORES + 4

    assert 1 == Sampler(Sampling(repetition_penalty=10.0), prompt=[0]).choose(positive)
    presence = Sampler(Sampling(presence_penalty=1.0))
    assert [0, 1, 0] == [presence.choose(SCORES) for _ in range(3)]
    frequency = Sampler(Sampling(frequency_penalty=1.0))
    assert [0, 1, 0, 2] == [frequency.choose(SCORES) for _ in range(4)]


def test_the_scores_are_left_as_they_are() -> None:
    before = SCORES.copy()
    Sampler(Sampling(bias={0: -5.0}, repetition_penalty=2.0), prompt=[1]).choose(SCORES)

    assert (before == SCORES).all()


@pytest.mark.parametrize("how", [{"temperature": -1}, {"top_p": 1.5}, {"top_k": -2}, {"min_p": float("nan")}], ids=str)
def test_a_value_outside_its_range_is_named(how: dict[str, float]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(how))):
        Sampling(**how)  # type: ignore[arg-type]


def test_chances_are_logarithms_that_add_up_to_one() -> None:
    chance, likely = log_chances(SCORES * 1.0 + 7, 1, 5)

    assert np.log(0.25) == pytest.approx(chance, rel=1e-5)
    assert 1.0 == pytest.approx(sum(np.exp(value) for _, value in likely))
    assert [0, 1, 2, 3, 4] == [token for token, _ in likely]
