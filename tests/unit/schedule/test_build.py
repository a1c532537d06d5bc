"""Schedules of programs that copy: every kernel gets its turn, and every copy one whole memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lazulite import Context, StageError, Tensor
from lazulite.engine import compile as compiled
from lazulite.schedule import build
from lazulite.schedule.order import Ordering


@pytest.fixture(autouse=True)
def nothing_from_disk() -> Iterator[None]:
    with Context(CACHE=0):
        yield


def test_a_value_that_is_copied_and_used_beside_its_copy_is_computed_before_both() -> None:
    """The kernel that needs the copy cannot be the one that computes what is copied."""
    x = Tensor(0.25)
    negative = -x
    assert -0.25 == (x >= negative).where(negative.clone(), x).item()


def test_a_value_that_is_read_in_another_width_and_as_it_is_has_one_writer() -> None:
    doubled = Tensor([1, 300]) * 3
    of_bytes = doubled.bitcast("uint8").reshape(2, 4).cast("int32").sum(1)
    assert [6, 1035] == (doubled + of_bytes).tolist()


def test_a_copy_of_a_constant_needs_no_source() -> None:
    x = Tensor(1.0)
    assert (x < x).clone().item() is False
    assert [2.0, 2.0] == (Tensor.ones(2) * 2).clone("PYTHON").tolist()


@pytest.mark.parametrize("part", [slice(1, 3), slice(None, None, 2), slice(3, 1, -1)], ids=str)
def test_what_comes_from_another_device_goes_to_its_place(part: slice) -> None:
    expected = [0, 0, 0, 0]
    expected[part] = [7, 8]
    t = Tensor([0, 0, 0, 0]).realize()
    t[part] = Tensor([7, 8], device="PYTHON").to("CPU")
    assert expected == t.tolist()


def test_one_copy_between_devices_fills_several_memories() -> None:
    here = (Tensor([1, 2, 3, 4], device="PYTHON") * 2).to("CPU")
    square, same, kept = here.reshape(2, 2), here.permute(0), Tensor([0, 0, 0, 0]).realize()
    kept.assign(here)
    Tensor.realize(here, square, same, kept)
    assert [[2, 4], [6, 8]] == square.tolist()
    assert [2, 4, 6, 8] == here.tolist() == same.tolist() == kept.tolist()


def test_kernels_that_wait_for_one_another_are_a_fault_of_the_compiler(monkeypatch: Any) -> None:
    monkeypatch.setattr(compiled, "_loaded", {})
    monkeypatch.setattr(build, "order", lambda fusion, kernels, *rest: Ordering([], stuck=list(kernels)))
    with pytest.raises(StageError, match="wait for one another"):
        (Tensor([1, 2]) + 5).realize()
