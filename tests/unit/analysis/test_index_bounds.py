"""Kernels whose index can leave its memory are refused, and only those."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from lazulite.analysis.index_bounds import check_bounds
from lazulite.base.errors import IndexRangeError
from lazulite.ir.parse import parse

HEAD = "kernel\nparam p0 float32[8]\nparam p1 float32[8]\nloop r0 in 0..4\nloop r1 in 0..4\n"


def kernel(*lines: str) -> Any:
    return parse(HEAD + "\n".join(lines))


@pytest.mark.parametrize(
    "lines",
    [
        "p0[r0*2 + 1] = p1[r0 + r1]",
        "p0[r0] = p1[r0*4 + r1 if r0 < 2]",
        "p0[r0] = p1[r0*4 + r1 - 4 if (0 < r0) & (r0 < 3)]",
        "p0[r0] = p1[r0*5 - 100 if false]",
    ],
)
def test_what_intervals_and_gates_show_passes(lines: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A19: without z3."""
    monkeypatch.setitem(sys.modules, "z3", None)
    check_bounds(kernel(lines))


def test_a_range_ends_where_its_extent_says() -> None:
    """A19: what lies behind the end of a window that begins somewhere."""
    head = HEAD.replace("loop r0 in 0..4", "scalar n2 index 0..5\nloop r0 in 0..8 - n2")
    check_bounds(parse(head + "p0[r0] = p1[r0 + n2]"))
    with pytest.raises(IndexRangeError, match="a load can leave its memory"):
        check_bounds(parse(head + "p0[r0] = p1[r0 + n2 + 1]"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("p0[r0*4] = 0.0", r"a store .* runs from 0 to 12, and there are 8 elements"),
        ("p0[r0] = p1[r0 + r1*2]", r"a load .* runs from 0 to 9, and there are 8"),
        ("p0[r0] = p1[r0 - 1]", r"runs from -1 to 2"),
        ("p0[r0] = p1[r0*4 + r1 if r0 < 3]", r"runs from 0 to 11"),
    ],
)
def test_what_can_leave_is_refused_with_index_range_and_size(lines: str, message: str) -> None:
    """A19"""
    with pytest.raises(IndexRangeError, match=message):
        check_bounds(kernel(lines))


def test_memory_of_a_thread_is_checked_too() -> None:
    """A19"""
    text = "loop\nparam p0 float32[4]\nscratch s0 float32[4] align 64\nloop r0 in 0..4\n    s0[r0 + 1] = 0.0\n"
    with pytest.raises(IndexRangeError, match="runs from 1 to 4"):
        check_bounds(parse(text))


def test_what_intervals_cannot_show_z3_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A19"""
    pytest.importorskip("z3")
    subtle = kernel("p0[r0] = p1[r0*r1 - 2 if (1 < r0*r1) & (r0*r1 < 9)]", "p1[(r0*3 + r1)*2 % 7] = 0.0")
    check_bounds(subtle)
    check_bounds(kernel("p0[r0] = p1[min(r0*4, 7)]"))
    with pytest.raises(IndexRangeError):
        check_bounds(kernel("p0[r0] = p1[r0*r1 - 1 if 0 < r0*r1]"))
