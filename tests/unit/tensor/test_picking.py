"""Reading and writing by arrays of positions and masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import DeviceError, DTypeError, IndexRangeError, ShapeError, Tensor, dtypes

SHAPE = (4, 3, 2)


def counted() -> np.ndarray:
    return np.arange(24, dtype=np.int32).reshape(SHAPE)


@st.composite
def picking_indices(draw: st.DrawFn) -> tuple[Any, ...]:
    """An index with at least one array or mask, the arrays of shapes that broadcast."""
    shape = draw(st.sampled_from([(), (2,), (2, 2), (1, 2)]))
    parts: list[Any] = []
    axis = 0
    while axis < 3:
        kind = draw(st.sampled_from(["array", "array", "slice", "integer", "new", "mask", "end"]))
        if kind == "end":
            break
        size = SHAPE[axis]
        if kind == "array":
            own = draw(st.sampled_from([shape, shape[-1:], ()]))
            values = draw(st.lists(st.integers(-size, size - 1), min_size=4, max_size=4))
            parts.append(np.array(values[: int(np.prod(own))], dtype=np.int64).reshape(own))
        elif kind == "mask" and not any(isinstance(part, np.ndarray) for part in parts):
            mask = np.zeros(size, bool)
            mask[draw(st.sampled_from([[0, 1], [1], [size - 1, 0]]))] = True
            parts.append(mask)
        elif kind == "slice":
            parts.append(draw(st.sampled_from([slice(None), slice(1, None), slice(None, None, -1)])))
        elif kind == "integer":
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == "new":
            parts.append(None)
            continue
        else:
            continue
        axis += 1
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), Ellipsis)
    if not any(isinstance(part, np.ndarray) and part.shape for part in parts):
        parts = [np.array([1, -1])]
    return tuple(parts)


def expected_part(array: np.ndarray, index: tuple[Any, ...]) -> np.ndarray | None:
    try:
        return array[index]
    except IndexError:  # a mask and arrays that do not broadcast
        return None


@given(picking_indices(), st.booleans())
def test_reading_is_numpys(index: tuple[Any, ...], as_tensors: bool) -> None:
    """A5"""
    array = counted()
    expected = expected_part(array, index)
    if expected is None:
        return
    parts = tuple([Tensor(p) if as_tensors and isinstance(p, np.ndarray) else p for p in index])
    found = Tensor(array)[parts]

    assert expected.shape == found.shape
    assert expected.tolist() == found.numpy().tolist()


@given(picking_indices(), st.sampled_from(["number", "whole", "row", "lazy"]))
def test_writing_is_numpys_and_the_last_write_counts(index: tuple[Any, ...], kind: str) -> None:
    """A5"""
    array = counted()
    place = expected_part(array, index)
    if place is None:
        return
    value = np.array(-7) if kind == "number" else -np.arange(place.size).reshape(place.shape)
    if kind == "row":
        value = -1 - np.arange(place.shape[-1]) if place.shape else np.array(-1)
    tensor = Tensor(array) + 0 if kind == "lazy" else Tensor(array)
    tensor[index] = int(value) if value.shape == () else Tensor(value)
    array[index] = value

    assert array.tolist() == tensor.tolist()


def test_a_write_goes_through_views_and_an_operator_updates_once() -> None:
    """A5"""
    array, tensor = counted(), Tensor(counted())
    tensor.permute(2, 0, 1)[1:, [0, 3]] = 9
    tensor[[0, 0, 1]] += 100
    array.transpose(2, 0, 1)[1:, [0, 3]] = 9
    array[[0, 0, 1]] += 100

    assert array.tolist() == tensor.tolist()


STEPS = st.lists(
    st.tuples(st.sampled_from(["slice", "rows", "mask", "add", "view", "self", "realize", "read"]), st.integers(0, 99)),
    min_size=1, max_size=7,
)  # fmt: skip


@given(STEPS)
def test_reads_and_writes_keep_the_order_of_the_program(steps: list[tuple[str, int]]) -> None:
    """A5"""
    array, kept, expected = counted().reshape(8, 3), [], []
    tensor = Tensor(array) * 1
    for kind, seed in steps:
        rows = np.random.default_rng(seed).integers(-8, 8, 5)
        if kind == "slice":
            tensor[1:4], array[1:4] = seed, seed
        elif kind == "rows":
            value = -seed - np.arange(15).reshape(5, 3)
            tensor[rows], array[rows] = Tensor(value), value
        elif kind == "mask":
            tensor[tensor % 5 == 0] = seed
            array[array % 5 == 0] = seed
        elif kind == "add":
            tensor[rows, 1] += 1
            array[rows, 1] += 1
        elif kind == "view":
            tensor[::2].T[[2, 0]] = seed
            array[::2].T[[2, 0]] = seed
        elif kind == "self":
            tensor[rows], array[rows] = tensor[rows[::-1].copy()], array[rows[::-1]]
        elif kind == "realize":
            tensor.realize()
        kept.append(tensor[rows] + 0)
        expected.append(array[rows].copy())

    assert array.tolist() == tensor.tolist()
    assert [part.tolist() for part in expected] == [part.tolist() for part in kept]


def test_a_mask_over_several_axes_reads_and_writes() -> None:
    """A5"""
    array = counted()
    tensor, mask = Tensor(array), array % 3 == 0
    assert array[mask].tolist() == tensor[Tensor(mask)].tolist()
    tensor[Tensor(array) % 3 == 0] = -1
    tensor[mask[..., 0], 1] = Tensor([5])
    tensor[mask] = Tensor(np.arange(mask.sum(), dtype=np.int32))
    array[mask] = -1
    array[mask[..., 0], 1] = 5
    array[mask] = np.arange(mask.sum())

    assert array.tolist() == tensor.tolist()


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (0,)])
def test_a_mask_without_elements_is_a_mask(shape: tuple[int, ...]) -> None:
    """A5"""
    array, mask = np.zeros(shape, dtype=np.int32), np.zeros(shape[:2], dtype=bool)
    tensor = Tensor(array)
    tensor[mask] = 5

    assert array[mask].shape == tensor[mask].shape == tensor[Tensor(mask)].shape
    assert array[[]].shape == tensor[[]].shape and array.tolist() == tensor.tolist()


def test_positions_of_a_tensor_that_lie_outside_read_zero_and_write_nothing() -> None:
    tensor = Tensor([1, 2, 3])
    wide = Tensor([1 << 40, -(1 << 40), 2], dtype=dtypes.int64)
    far = Tensor([1 << 63, 1], dtype=dtypes.uint64)

    assert [0, 0, 3] == tensor[wide].tolist()
    assert [0, 2] == tensor[far].tolist()
    tensor[Tensor([3, -4, -1])] = 7
    assert [1, 2, 7] == tensor.tolist()


def test_positions_of_the_host_that_lie_outside_raise() -> None:
    with pytest.raises(IndexRangeError, match="index 3 is outside axis 0 of size 3"):
        Tensor([1, 2, 3])[[0, 3]]
    with pytest.raises(IndexRangeError, match="index -4 is outside"):
        Tensor([1, 2, 3])[np.array([-4])] = 1


def test_what_is_no_position_raises() -> None:
    tensor = Tensor(counted())
    with pytest.raises(DTypeError, match="positions are integers, got float32"):
        tensor[Tensor([0.5])]
    with pytest.raises(ShapeError, match="a mask of 2 elements does not fit axis 0 of size 4"):
        tensor[[True, False]]
    with pytest.raises(ShapeError, match="do not broadcast"):
        tensor[[0, 1], [0, 1, 2]]
    with pytest.raises(DeviceError, match="different devices"):
        tensor[Tensor([0], device="PYTHON")]
    with pytest.raises(ShapeError, match="does not broadcast to the place"):
        tensor[[0, 1]] = Tensor([1, 2, 3, 4, 5])


def test_the_gradient_of_a_row_is_the_sum_over_its_uses() -> None:
    table, rows = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), Tensor([2, 0, 2, -1, 9])
    (found,) = (table[rows] * Tensor([[1.0], [2.0], [3.0], [4.0], [5.0]])).sum().gradient(table)

    assert [[2.0, 2.0], [0.0, 0.0], [8.0, 8.0]] == found.tolist()


def test_the_gradient_of_a_write_reaches_what_was_kept_and_what_was_written_last() -> None:
    old, new = Tensor([1.0, 2.0, 3.0]), Tensor([5.0, 6.0])
    x = old * 2
    x[[1, 1]] = new
    for_old, for_new = (x * Tensor([1.0, 10.0, 100.0])).sum().gradient(old, new)

    assert [2.0, 0.0, 200.0] == for_old.tolist()
    assert [0.0, 10.0] == for_new.tolist()
