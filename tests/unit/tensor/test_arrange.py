"""Wholes from parts, parts from wholes, windows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import ShapeError, Tensor, dtypes
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes as types
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.uop import UOp
from lazulite.tensor.arrange import window_count, windows


@given(st.integers(1, 12), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_windows_are_where_they_should_be(length: int, size: int, stride: int, dilation: int) -> None:
    count = window_count(length, size, stride, dilation)
    if count < 1:
        return
    cut = windows(UOp(ops.IOTA, types.int32, (), length), 0, size, stride, dilation)

    assert (size, count) == cut.shape
    assert [o * stride + k * dilation for k in range(size) for o in range(count)] == evaluate_tensors([cut], {})[0]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(0, 1))
def test_parts_laid_together_come_apart_again(sizes: list[int], axis: int) -> None:
    arrays = [np.full((size, 2) if axis == 0 else (2, size), number) for number, size in enumerate(sizes)]
    whole = Tensor.cat(*[Tensor(array.astype(np.int32)) for array in arrays], dim=axis)

    assert np.concatenate(arrays, axis).tolist() == whole.tolist()
    assert [array.tolist() for array in arrays] == [part.tolist() for part in whole.split(sizes, axis)]


def test_parts_meet_in_their_common_type() -> None:
    assert dtypes.float32 is Tensor([1]).cat(Tensor([2.0])).dtype


def test_parts_may_come_as_a_list() -> None:
    parts = [Tensor([1, 2]), Tensor([3, 4])]

    assert [1, 2, 3, 4] == Tensor.cat(parts).tolist()  # type: ignore[arg-type]
    assert [[1, 3], [2, 4]] == Tensor.stack(parts, dim=1).tolist()  # type: ignore[arg-type]


def test_parts_of_unlike_shapes_raise() -> None:
    """O16"""
    for other in (Tensor([[1, 2]]), Tensor(1)):
        with pytest.raises(ShapeError, match="cat: shapes differ beside the axis"):
            Tensor([1, 2]).cat(other)
    with pytest.raises(ShapeError, match="stack: shapes differ"):
        Tensor([1, 2]).stack(Tensor([1]))


def test_parts_keep_the_sign_of_zero() -> None:
    assert "[-0.0, -0.0]" == str(Tensor([-0.0]).cat(Tensor([-0.0])).tolist())


def test_splitting_by_size_and_by_count() -> None:
    x = Tensor.arange(5)

    assert [[0, 1], [2, 3], [4]] == [part.tolist() for part in x.split(2)] == [part.tolist() for part in x.chunk(3)]
    assert [(0,)] == [part.shape for part in Tensor.zeros(0).split(2)]
    assert [(0,), (0,)] == [part.shape for part in Tensor.zeros(0).chunk(2)]
    for wrong in (lambda: x.split(0), lambda: x.split([1, 2]), lambda: x.chunk(0)):
        with pytest.raises(ShapeError):
            wrong()


def test_rolling_turns_any_distance_and_nothing() -> None:
    """B100"""
    x, array = Tensor.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3)
    for shift in (-7, -1, 0, 2, 9):
        assert np.roll(array, shift, 1).tolist() == x.roll(shift, 1).tolist()
        assert np.roll(array, shift).tolist() == x.roll(shift).tolist()
    assert (0, 3) == Tensor.zeros(0, 3).roll(1, 0).shape


def test_repetition_adds_axes_in_front() -> None:
    x, array = Tensor([[1, 2]]), np.array([[1, 2]])

    assert np.tile(array, (2, 1, 3)).tolist() == x.repeat(2, 1, 3).tolist()
    assert [[]] == x.repeat(1, 0).tolist()
    assert [1, 1, 2, 2] == x.repeat_interleave(2).tolist()
    with pytest.raises(ShapeError, match="repeat"):
        x.repeat(2)


def test_windows_of_a_tensor_lie_along_a_last_axis() -> None:
    assert [[0, 1, 2], [2, 3, 4]] == Tensor.arange(5).unfold(0, 3, 2).tolist()
    with pytest.raises(ShapeError, match="no windows of size 6"):
        Tensor.arange(5).unfold(0, 6, 1)


def test_triangles_cut_a_matrix() -> None:
    array = np.arange(1, 13).reshape(3, 4)
    for diagonal in (-4, -1, 0, 2, 9):
        assert np.tril(array, diagonal).tolist() == Tensor(array).tril(diagonal).tolist()
        assert np.triu(array, diagonal).tolist() == Tensor(array).triu(diagonal).tolist()
    with pytest.raises(ShapeError, match="a matrix has two axes"):
        Tensor([1]).tril()
