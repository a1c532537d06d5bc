"""Reading and writing by integers and slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import DTypeError, IndexRangeError, ShapeError, Tensor

bound = st.none() | st.integers(-6, 6)
step = st.sampled_from([None, 1, 2, 3, -1, -2, -3])
one_index = st.integers(-3, 2) | st.builds(slice, bound, bound, step) | st.none()


@st.composite
def indices(draw: st.DrawFn) -> tuple[Any, ...]:
    parts = draw(st.lists(one_index, max_size=4))
    while sum(part is not None for part in parts) > 3:
        parts.pop()
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), Ellipsis)
    return tuple(parts)


def counted() -> np.ndarray:
    return np.arange(3 * 4 * 3, dtype=np.int32).reshape(3, 4, 3)


@given(indices())
def test_reading_is_numpys(index: tuple[Any, ...]) -> None:
    """A5"""
    array = counted()
    expected, found = array[index], Tensor(array)[index]

    assert expected.shape == found.shape
    assert expected.tolist() == found.numpy().tolist()


@given(indices(), st.booleans())
def test_writing_is_numpys(index: tuple[Any, ...], lazy: bool) -> None:
    """A5"""
    array = counted()
    tensor = Tensor(array) + 0 if lazy else Tensor(array)
    value = -np.arange(array[index].size, dtype=np.int32).reshape(array[index].shape)
    tensor[index] = Tensor(value)
    array[index] = value

    assert array.tolist() == tensor.tolist()


@given(indices())
def test_a_number_fills_the_place_and_an_operator_updates_it(index: tuple[Any, ...]) -> None:
    array = counted()
    tensor = Tensor(array)
    tensor[index] = 7
    array[index] = 7
    tensor[index] += 3
    array[index] += 3

    assert array.tolist() == tensor.tolist()


def test_an_operator_on_a_part_is_one_write() -> None:
    """B008"""
    t = Tensor([1, 2, 3, 4])
    t[0:3] *= 10

    assert 1 == sum(node.op.name == "write" for node in _nodes(t))
    assert [10, 20, 30, 4] == t.tolist()


def _nodes(tensor: Tensor) -> list[Any]:
    from lazulite.ir.uop import toposort

    return toposort(tensor.uop)


def test_a_tensor_of_one_element_is_written_too() -> None:
    """O01"""
    t = Tensor([0])
    t[0] = 5

    assert [5] == t.tolist()


def test_values_broadcast_to_the_place_and_take_its_type() -> None:
    t = Tensor.zeros(2, 3, dtype="int32")
    t[:, 1:] = Tensor([[1.9], [2.9]])
    t[0] = Tensor([[[5, 6, 7]]])

    assert [[5, 6, 7], [0, 2, 2]] == t.tolist()
    with pytest.raises(ShapeError, match=r"setitem: .* does not broadcast"):
        t[0] = Tensor([1, 2])
    with pytest.raises(OverflowError):
        t[0] = 2**40


def test_a_part_keeps_what_it_read() -> None:
    t = Tensor([1, 2, 3])
    part = t[0:2]
    t[0] = 9

    assert [1, 2] == part.tolist()


def test_indices_outside_raise() -> None:
    t = Tensor.ones(2, 3)
    with pytest.raises(IndexRangeError, match="index 2 is outside axis 0 of size 2"):
        t[2]
    with pytest.raises(IndexRangeError, match="3 indices for the 2 axes"):
        t[0, 0, 0]
    with pytest.raises(IndexRangeError, match="at most one ellipsis"):
        t[..., 0, ...]
    with pytest.raises(IndexError):
        t[0, -4]


def test_indices_of_other_kinds_raise() -> None:
    t = Tensor.ones(2, 3)
    for index in (1.5, "x", True):
        with pytest.raises(DTypeError, match="an index is an integer, a slice"):
            t[index]
    with pytest.raises(DTypeError, match="bounds of a slice"):
        t[1.5:]


def test_a_tensor_is_a_sequence() -> None:
    t = Tensor([[1, 2], [3, 4]])

    assert [[1, 2], [3, 4]] == [row.tolist() for row in t]
    assert 2 == len(t)
    for use in (len, iter):
        with pytest.raises(TypeError, match="without axes"):
            use(Tensor(1))


def test_gradients_pass_through_parts() -> None:
    x = Tensor([1.0, 2.0, 3.0, 4.0])

    assert [2.0, 0.0, 6.0, 0.0] == x[::2].square().sum().gradient(x)[0].tolist()
