"""Intermediates that live at the same time never overlap."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lazulite.schedule.memory import ALIGNMENT, Lifetime, pack

lifetimes = st.builds(
    lambda size, first, length: Lifetime(size, first, first + length),
    st.integers(1, 1000), st.integers(0, 20), st.integers(0, 10),
)  # fmt: skip


@given(st.lists(lifetimes, max_size=30))
def test_what_lives_together_lies_apart(items: list[Lifetime]) -> None:
    """A23."""
    placed = list(zip(items, pack(items), strict=True))

    for number, (one, start) in enumerate(placed):
        assert start % ALIGNMENT == 0
        for other, begin in placed[number + 1 :]:
            if one.first <= other.last and other.first <= one.last:
                assert start + one.nbytes <= begin or begin + other.nbytes <= start


@given(st.lists(lifetimes, max_size=30))
def test_without_reuse_nothing_overlaps(items: list[Lifetime]) -> None:
    placed = sorted(zip(pack(items, reuse=False), items, strict=True), key=lambda pair: pair[0])

    assert all(a + x.nbytes <= b for (a, x), (b, _) in pairwise(placed))


def test_a_chain_needs_two_places() -> None:
    items = [Lifetime(64, i, i + 1) for i in range(10)]

    assert {0, 64} == set(pack(items))
