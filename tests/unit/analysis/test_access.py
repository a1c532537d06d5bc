"""Indices: how they grow with a range, and whether two of them can meet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.analysis.access import coefficient, may_overlap
from lazulite.analysis.index_map import flat, origin
from lazulite.analysis.regions import apply_region
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index
from lazulite.simplify.normal import normalise
from support.index_grid import grid, loop, values
from support.windows import on_axis, windows

M, N, K = loop(4, 0), loop(5, 1), loop(6, 2)


@pytest.mark.parametrize(("at", "expected"), [
    (M * 30 + N * 6 + K, 1),
    (M * 30 + N, 0),
    (K * 6, 6),
    (K * -1 + 5, -1),
    (K // 2 + M, None),
    (K % 4, None),
])  # fmt: skip
def test_the_coefficient_of_a_range_is_one_number_or_none(at: UOp, expected: int | None) -> None:
    assert expected == coefficient(normalise(at)[0], K)


def test_an_index_read_from_memory_is_gathered_along_its_ranges_only() -> None:
    memory = UOp(ops.PARAM, dtypes.int32, (), (1, (4096,), "CPU"))
    at = UOp(ops.LOAD, dtypes.int32, (memory, K)).cast(dtypes.index) * 6 + N

    assert coefficient(at, K) is None
    assert coefficient(at, N) == 1


STEPS = st.integers(-40, 40)


@given(STEPS, STEPS, STEPS, STEPS, STEPS)
def test_indices_said_to_be_apart_share_no_element(a: int, b: int, c: int, d: int, offset: int) -> None:
    left, right = normalise(M * a + N * b, M * c + N * d + offset)
    first, second = (set(values(at, grid((M, N))).ravel().tolist()) for at in (left, right))

    assert may_overlap(left, right) or not first & second


def test_disjoint_halves_and_interleaved_elements_do_not_overlap() -> None:
    at = flat((4, 5, 6), (M, N, K))

    assert not may_overlap(at, normalise(at + 120)[0])
    assert not may_overlap(K * 2, normalise(K * 2 + 1)[0])
    assert not may_overlap(index(3), index(4))


def test_a_convolution_walks_its_image_in_straight_lines() -> None:
    n, y, x, c, ky, kx = (loop(extent, order) for order, extent in enumerate((2, 6, 7, 3, 3, 3)))
    image = UOp(ops.PARAM, dtypes.float32, (), (0, (2, 3, 8, 9), "CPU"))
    view = apply_region(image, on_axis(windows(8, 3), (2, 3), (9,)))
    view = apply_region(view, on_axis(windows(9, 3), (2, 3, 3, 6), ()))
    source, position, gate = origin(view, (n, c, ky, y, kx, x))

    assert gate is None
    assert [216, 72, 9, 1, 9, 1] == [coefficient(flat(source.shape, position), r) for r in (n, c, y, x, ky, kx)]
