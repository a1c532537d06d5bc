"""Diagonals and grids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import ArgumentError, AxisError, ShapeError, Tensor


@given(st.integers(-5, 5), st.permutations(range(3)))
def test_a_diagonal_is_numpys(offset: int, axes: list[int]) -> None:
    x = np.arange(24).reshape(2, 3, 4)

    assert np.diagonal(x, offset, *axes[:2]).tolist() == Tensor(x).diagonal(offset, *axes[:2]).tolist()


def test_a_diagonal_is_a_view() -> None:
    x = Tensor.zeros(2, 3)
    x.diagonal(1).assign(Tensor([1.0, 2.0]))

    assert [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]] == x.tolist()


def test_a_vector_is_put_on_a_diagonal_and_read_back() -> None:
    x = Tensor([1, 2, 3])

    assert np.diag([1, 2, 3]).tolist() == x.diag().tolist()
    assert [1, 2, 3] == x.diag().diag().tolist()


@pytest.mark.parametrize("indexing", ["ij", "xy"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_grids_are_numpys(indexing: str, count: int) -> None:
    vectors = [np.arange(n) for n in (2, 3, 4)[:count]]
    first, *rest = [Tensor(v) for v in vectors]
    expected = np.meshgrid(*vectors, indexing=indexing)

    assert [part.tolist() for part in expected] == [part.tolist() for part in first.meshgrid(*rest, indexing=indexing)]


def test_what_has_no_diagonal_or_grid_raises() -> None:
    with pytest.raises(AxisError, match="two different axes"):
        Tensor([[1]]).diagonal(0, 1, 1)
    with pytest.raises(ShapeError, match="a vector or a matrix"):
        Tensor([[[1]]]).diag()
    with pytest.raises(ArgumentError, match="indexing is 'ij' or 'xy'"):
        Tensor([1]).meshgrid(indexing="ji")
    with pytest.raises(ShapeError, match="takes vectors"):
        Tensor([1]).meshgrid(Tensor([[1]]))
