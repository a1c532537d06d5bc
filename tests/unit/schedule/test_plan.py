"""Plans are data."""

from __future__ import annotations

import pytest

from lazulite.schedule.plan import Plan
from support.schedules import buffer, matmul, scheduled, softmax


def test_a_plan_is_the_same_after_a_round_trip_through_text() -> None:
    plan = scheduled([softmax(matmul(buffer(1, 8, 4), buffer(2, 4, 8))) * 2.5]).schedule.plan

    assert plan == Plan.from_json(plan.to_json())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"inputs": 1}', "nonsense"])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        Plan.from_json(text)
