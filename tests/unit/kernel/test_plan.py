"""A cut covers its range exactly."""

from hypothesis import given
from hypothesis import strategies as st

from lazulite.kernel.plan import Plan

extents, lanes, rows = st.integers(1, 300), st.sampled_from([2, 4, 8, 16]), st.integers(1, 6)


def _covered(parts):
    return sum(part.turns * part.rows * part.lanes for part in parts)


@given(extents, lanes, rows)
def test_vectors_cover_the_range_and_less_than_a_block_more(extent, lanes, rows):
    covered = _covered(Plan().vectors((0,), extent, lanes, rows))

    assert extent <= covered < extent + max(lanes, 2)


@given(extents, st.integers(1, 28))
def test_rows_cover_the_range_exactly_with_nearly_equal_blocks(extent, most):
    parts = Plan().rows((0,), extent, most)

    assert extent == _covered(parts)
    assert all(part.rows <= most for part in parts)
    assert max(part.rows for part in parts) - min(part.rows for part in parts) <= 1
