"""SHOW, STOP and DEBUG show what they name, also of programs that are known already."""

from __future__ import annotations

import pytest

from lazulite import Context, GlobalCounters, SettingError, StageError, Tensor
from lazulite.pipeline import PIPELINE


@pytest.fixture(autouse=True)
def known() -> Tensor:
    """A tensor with a pending sum whose program was compiled before."""
    (Tensor([1.0, 2.0, 3.0]) * 5).sum().realize()
    return (Tensor([1.0, 2.0, 3.0]) * 7).sum()


@pytest.mark.parametrize("setting", ["SHOW", "STOP"])
def test_a_stage_that_does_not_exist_is_refused_with_the_nearest_name(setting: str, known: Tensor) -> None:
    with Context(**{setting: "lower.loop"}), pytest.raises(SettingError, match=r"no stage lower\.loop") as caught:
        known.realize()
    assert "Try: lower.loops" in str(caught.value)
    assert 42.0 == known.item()


def test_show_prints_the_program_before_and_after_the_stage(known: Tensor, capfd: pytest.CaptureFixture[str]) -> None:
    with Context(SHOW="lower.loops"):
        known.realize()
        first = capfd.readouterr().err
        (Tensor([1.0, 2.0, 3.0]) * 9).sum().realize()

    assert ["--- before lower.loops", "kernel"] == first.splitlines()[:2]
    assert "--- after lower.loops\nloop\n" in first
    assert "" == capfd.readouterr().err, "what was shown is not compiled again"


def test_stop_ends_after_the_stage_and_leaves_the_tensor_as_it_was(known: Tensor) -> None:
    with Context(STOP="kernel.apply"), pytest.raises(StageError, match="stopped here"):
        known.realize()
    assert 42.0 == known.item()


@pytest.mark.parametrize(("level", "shown"), [(3, 0), (4, 1), (5, 1 + len(PIPELINE))])
def test_debug_shows_more_with_each_level(level: int, shown: int, capfd: pytest.CaptureFixture[str]) -> None:
    values = Tensor([1.0] * (level + 20))
    GlobalCounters.reset()
    with Context(DEBUG=level, CACHE=0):
        values.exp().realize()

    text = capfd.readouterr().err
    assert 1 == GlobalCounters.programs_compiled
    assert "compiled exp" in text
    assert shown == text.count("\n---") + text.startswith("---")
