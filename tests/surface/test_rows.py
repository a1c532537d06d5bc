"""Each name that counts agrees with its reference in enough samples, and disagrees in none."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("torch", reason="notimpl: torch is not installed here")
pytest.importorskip("expecttest", reason="notimpl: expecttest is not installed here")

from surface.rows import ENOUGH, outcome
from surface.table import names_that_count, rows_of


@pytest.mark.parametrize(("space", "name"), names_that_count(), ids=lambda part: part)
def test_a_name_means_what_it_means_elsewhere(space, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reference's own
        outcomes = [outcome(tested) for tested in rows_of(space, name)]
    problems = [problem for each in outcomes for problem in each.problems]
    assert problems == []
    refused = [text for each in outcomes for text in each.refused][:3]
    assert sum(each.passed for each in outcomes) >= ENOUGH, f"too few samples; refused: {refused}"
