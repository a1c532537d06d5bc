"""A placement says which part of a value each device holds, and its text reads back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir.placement import Placement, place_of, place_text, placements_exist, split

HALVES = Placement(("CPU", "CPU:1"), 1, (2, 3))


@given(st.integers(1, 5), st.integers(0, 20))
def test_parts_differ_by_at_most_one_element(count, size):
    """B118: a size that the devices do not divide."""
    spans = split([f"CPU:{n}" for n in range(count)], 0, size).spans
    sizes = [end - begin for begin, end in spans]

    assert size == sum(sizes)
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def test_a_part_has_the_shape_of_its_span():
    assert [(4, 2, 5), (4, 1, 5)] == [HALVES.part_shape((4, 3, 5), number) for number in range(2)]
    assert (4, 3) == Placement(("CPU", "CPU:1")).part_shape((4, 3), 1)


@pytest.mark.parametrize("where", ["CPU", "", ("CPU", "PYTHON:1"), Placement(("CPU", "CPU:1")), HALVES], ids=str)
def test_the_text_of_a_place_reads_back(where):
    assert where == place_of(place_text(where))
    assert type(where) is type(place_of(place_text(where)))


@pytest.mark.parametrize("text", ["axis", "axis 0 in", "axis 0 in CPU 1", "axis x in CPU 0..1", "each"])
def test_a_text_that_is_no_placement_is_a_name(text):
    assert text == place_of(text)


def test_once_made_placements_exist():
    assert placements_exist()
