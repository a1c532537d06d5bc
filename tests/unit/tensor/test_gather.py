"""Picking and placing by index tensors, and by masks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import ArgumentError, AxisError, DTypeError, ShapeError, Tensor

integers = st.integers(0, 10**6)


def drawn(seed: int, *shape: int, low: int = -9, high: int = 9) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)


@given(st.integers(0, 2), integers)
def test_gather_takes_along_an_axis(axis: int, seed: int) -> None:
    x, shape = drawn(seed, 3, 4, 2), [2, 3, 1]
    shape[axis] = 5
    index = drawn(seed, *shape, low=-x.shape[axis], high=x.shape[axis])
    cut = x[tuple([slice(None) if n == axis else slice(size) for n, size in enumerate(shape)])]

    assert np.take_along_axis(cut, index, axis).tolist() == Tensor(x).gather(axis, Tensor(index)).tolist()


def test_positions_outside_read_zero() -> None:
    x, outside = Tensor([5, 6]), Tensor([2, -3, 1])

    assert [0, 0, 6] == x.gather(0, outside).tolist() == x.take(outside).tolist()
    assert [0, 0, 6] == x.index_select(0, outside).tolist()


def test_take_and_index_select_are_numpys() -> None:
    x = drawn(0, 3, 4, 2)

    assert x.take([[3, -1], [0, 20]]).tolist() == Tensor(x).take(Tensor([[3, -1], [0, 20]])).tolist()
    assert x[:, [3, 0, 3]].tolist() == Tensor(x).index_select(1, [3, 0, 3]).tolist()
    assert x[..., [1]].tolist() == Tensor(x).index_select(-1, Tensor([1])).tolist()


@given(st.integers(0, 1), integers)
def test_of_several_values_scattered_to_one_place_the_last_stays(axis: int, seed: int) -> None:
    x, values, index = drawn(seed, 4, 3), drawn(seed + 1, 4, 3), drawn(seed + 2, 3, 2, low=0, high=3)
    expected = x.copy()
    for row, column in np.ndindex(3, 2):
        place = (index[row, column], column) if axis == 0 else (row, index[row, column])
        expected[place] = values[row, column]

    assert expected.tolist() == Tensor(x).scatter(axis, Tensor(index), Tensor(values)).tolist()


def test_scatter_combines_and_takes_numbers() -> None:
    x, index = Tensor([1, 2, 3]), Tensor([0, 0, 2])

    assert [11, 2, 8] == x.scatter(0, index, Tensor([4, 6, 5]), reduce="add").tolist()
    assert [24, 2, 15] == x.scatter(0, index, Tensor([4, 6, 5]), reduce="multiply").tolist()
    assert [9, 2, 9] == x.scatter(0, index, 9).tolist()


REDUCTIONS = {"sum": sum, "prod": np.prod, "mean": np.mean, "amax": max, "amin": min}


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_scatter_reduce_combines_what_goes_to_a_place(reduce: str, include_self: bool) -> None:
    x, values, index = [2.0, 3.0, 4.0], [5.0, -1.0, 6.0, 8.0], [0, 2, 0, 0]
    expected = []
    for place, own in enumerate(x):
        found = [value for value, at in zip(values, index, strict=True) if at == place]
        expected.append(REDUCTIONS[reduce]([own, *found] if include_self else found) if found else own)
    result = Tensor(x).scatter_reduce(0, Tensor(index), Tensor(values), reduce, include_self)

    assert expected == pytest.approx(result.tolist())


def test_the_gradient_of_a_scatter_goes_to_what_stayed() -> None:
    x, values = Tensor([1.0, 2.0, 3.0]), Tensor([4.0, 5.0])
    result = x.scatter(0, Tensor([1, 1]), values)
    for_x, for_values = (result * Tensor([1.0, 10.0, 100.0])).sum().gradient(x, values)

    assert [1.0, 0.0, 100.0] == for_x.tolist()
    assert [0.0, 10.0] == for_values.tolist()


def test_masks_fill_and_select() -> None:
    x = drawn(0, 4, 3)
    mask = x > 0

    assert np.where(mask, -1, x).tolist() == Tensor(x).masked_fill(Tensor(mask), -1).tolist()
    assert x[mask].tolist() == Tensor(x).masked_select(Tensor(mask)).tolist()
    assert x[:, x[0] > 0].ravel().tolist() == Tensor(x).masked_select(Tensor(x[0] > 0)).tolist()
    more = int(mask.sum()) + 2
    assert [*x[mask].tolist(), 7, 7] == Tensor(x).masked_select(Tensor(mask), size=more, fill_value=7).tolist()
    assert x[mask].tolist()[:2] == Tensor(x).masked_select(Tensor(mask), size=2).tolist()


def test_positions_of_what_is_not_zero_come_in_order() -> None:
    x = drawn(0, 4, 3, low=-1, high=2)
    expected = np.argwhere(x).tolist()

    assert expected == Tensor(x).nonzero().tolist()
    assert [*expected, [-5, -5]] == Tensor(x).nonzero(size=len(expected) + 1, fill_value=-5).tolist()
    assert (0, 2) == Tensor.zeros(2, 2).nonzero().shape


def test_what_does_not_fit_raises() -> None:
    x = Tensor([[1, 2], [3, 4]])
    with pytest.raises(ShapeError, match="an index of shape"):
        x.gather(0, Tensor([0]))
    with pytest.raises(ShapeError, match="an index of shape"):
        x.gather(0, Tensor([[0, 0, 0]]))
    with pytest.raises(AxisError, match="axis 2"):
        x.gather(2, Tensor([[0]]))
    with pytest.raises(DTypeError, match="positions are integers"):
        x.gather(0, Tensor([[0.0]]))
    with pytest.raises(ShapeError, match="a vector of positions"):
        x.index_select(0, Tensor([[0]]))
    with pytest.raises(ShapeError, match="src of shape"):
        x.scatter(0, Tensor([[0, 1]]), Tensor([[1]]))
    with pytest.raises(ArgumentError, match="reduce is 'add', 'multiply' or None"):
        x.scatter(0, Tensor([[0]]), Tensor([[1]]), reduce="max")
    with pytest.raises(ArgumentError, match="reduce is one of 'sum'"):
        x.scatter_reduce(0, Tensor([[0]]), Tensor([[1]]), "add")
