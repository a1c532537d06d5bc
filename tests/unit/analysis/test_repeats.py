"""Indices that name an element twice, and those that do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.analysis.repeats import repeats
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index
from lazulite.simplify.normal import normalise
from support.index_grid import grid, loop, values

M, N, K = loop(4, 0), loop(5, 1), loop(6, 2)


@pytest.mark.parametrize(("place", "expected"), [
    (M * 5 + N, set()),
    (M * 3 + N, {M, N}),
    (M + 7, {N}),
    ((M * 5 + N) * 2 + (K // 4), {K}),
    (K // 2 * 2 + K % 2, set()),
    (K // 2, {K}),
    (K // 4 * 100 + K // 2 % 2 * 10 + K % 2, set()),
])  # fmt: skip
def test_a_range_that_the_index_does_not_determine_may_name_an_element_twice(place: UOp, expected: set[UOp]) -> None:
    (place,) = normalise(place)
    ranges = [r for r in (M, N, K) if r in place.ranges or r in expected]
    found = repeats(place, ranges)

    assert expected == set(found)


@pytest.mark.parametrize("step", [0, 1, 5, 12])
def test_a_range_of_one_turn_hides_nothing(step: int) -> None:
    single = loop(1, 3)

    assert not repeats(M * 5 + N + single * step, [M, N, single])


@pytest.mark.parametrize("step", [1, 5, 12])
def test_an_argument_moves_all_elements_alike(step: int) -> None:
    start = UOp(ops.SCALAR, dtypes.index, (), (0, 0, 100))

    assert not repeats(M * 5 + N + start * step, [M, N])


@given(st.lists(st.tuples(st.integers(2, 4), st.integers(0, 20)), min_size=1, max_size=3))
def test_where_no_range_repeats_every_element_is_named_once(drawn: list[tuple[int, int]]) -> None:
    ranges = tuple([loop(extent, order) for order, (extent, _) in enumerate(drawn)])
    place = index(0)
    for r, (_, step) in zip(ranges, drawn, strict=True):
        place = place + r * step
    (place,) = normalise(place)
    if not repeats(place, ranges):
        named = values(place, grid(ranges)).ravel()
        assert len(named) == len(set(named.tolist()))
