"""A cut covers its range exactly."""

from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.plan import Plan, open_rows, rows_of
from support.kernels import loop

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


def test_rows_that_fill_a_range_are_taken_though_a_few_more_would_fit():
    """A rest is a tile of its own, with a text of its own."""
    (part,) = Plan().rows((0,), 32, 6)

    assert (8, 4) == (part.turns, part.rows)


@given(extents, st.integers(1, 28))
def test_how_many_rows_a_block_will_have_is_known_before(extent, most):
    assert max(part.rows for part in Plan().rows((0,), extent, most)) <= rows_of(loop(0, extent), most) <= most


@given(st.integers(1, 8), st.integers(1, 28))
def test_rows_of_a_range_without_a_number_are_those_of_its_blocks(grain, most):
    size = UOp(ops.SCALAR, dtypes.index, (), (0, 1, 20)) * grain
    (part,) = Plan().open_rows((0,), size, most)

    assert part.rows == rows_of(UOp(ops.RANGE, dtypes.index, (size,), ((0,), "loop")), most)


@given(st.integers(1, 100), st.integers(1, 28))
def test_as_little_as_can_be_of_the_last_block_is_empty_where_no_number_divides_all_sizes(largest, most):
    rows = open_rows(UOp(ops.SCALAR, dtypes.index, (), (0, 0, largest)), most)
    blocks = -(-largest // most)

    assert rows <= most
    assert 0 <= blocks * rows - largest < blocks
