"""Tensors from sizes and numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import ArgumentError, DTypeError, GlobalCounters, ShapeError, Tensor, dtypes


def test_shapes_come_as_sizes_or_as_one_sequence() -> None:
    assert (2, 3) == Tensor.zeros(2, 3).shape == Tensor.ones((2, 3)).shape == Tensor.empty([2, 3]).shape
    assert () == Tensor.zeros().shape == Tensor.full((), 1).shape
    assert (4,) == Tensor.full(4, 1).shape
    with pytest.raises(ShapeError, match="zeros: a size is not negative"):
        Tensor.zeros(2, -1)


def test_types_follow_the_value_or_the_wish() -> None:
    assert dtypes.int32 is Tensor.full((2,), 7).dtype
    assert dtypes.bool is Tensor.full((2,), True).dtype
    assert dtypes.float32 is Tensor.zeros(2).dtype is Tensor.ones(2).dtype
    assert dtypes.int8 is Tensor.zeros(2, dtype="int8").dtype
    with pytest.raises(OverflowError):
        Tensor.full((2,), 300, dtype="uint8")
    with pytest.raises(DTypeError, match="full: expected a number"):
        Tensor.full((2,), "x")  # type: ignore[arg-type]


def test_constants_launch_no_kernel() -> None:
    """A21"""
    before = GlobalCounters.kernel_count
    for x in (Tensor.full((3,), 5), Tensor.zeros(3), Tensor.ones(3), Tensor.ones(3).zeros_like()):
        x.realize()

    assert before == GlobalCounters.kernel_count


def test_likes_take_shape_type_and_place() -> None:
    x = Tensor([[1, 2]], dtype="int16", device="PYTHON")
    for made in (
        x.full_like(3),
        x.zeros_like(),
        x.ones_like(),
        x.empty_like(),
        x.const_like(4),
        x.rand_like("float32"),
    ):
        assert ((1, 2), "PYTHON") == (made.shape, made.device)
    assert dtypes.int16 is x.full_like(3).dtype
    assert dtypes.float32 is x.zeros_like(dtype="float32").dtype


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-7, 7).filter(bool))
def test_ranges_of_integers_are_pythons(start: int, stop: int, step: int) -> None:
    assert list(range(start, stop, step)) == Tensor.arange(start, stop, step).tolist()


def test_ranges_of_floats_and_of_other_types() -> None:
    assert np.arange(0.5, 2, 0.25).tolist() == Tensor.arange(0.5, 2, 0.25).tolist()
    assert [0.0, 1.0] == Tensor.arange(2.0).tolist()
    assert [0, 1, 2] == Tensor.arange(3, dtype="uint8").tolist()
    assert [2**63, 2**63 + 1] == Tensor.arange(2**63, 2**63 + 2, dtype="uint64").tolist()
    assert dtypes.int64 is Tensor.arange(2**40, 2**40 + 2).dtype
    assert [0.0, 0.5, 1.0] == Tensor.arange(0, 1.5, 0.5, dtype="float16").tolist()
    with pytest.raises(OverflowError):
        Tensor.arange(300, dtype="uint8")
    with pytest.raises(ArgumentError, match="the step is zero"):
        Tensor.arange(0, 3, 0)


def test_wide_integers_are_exact() -> None:
    """B070"""
    assert 10_000_000_000 == (Tensor.arange(11, dtype="int64") * 10**9).tolist()[-1]


def test_linspace_includes_both_ends_exactly() -> None:
    """B065"""
    limit = 2147483647
    assert [-limit, 0, limit] == Tensor.linspace(-limit, limit, 3, dtype="int32").tolist()
    values = Tensor.linspace(0.1, 0.7, 7).tolist()
    assert [float(np.float32(0.1)), float(np.float32(0.7))] == [values[0], values[-1]]
    assert [3.0] == Tensor.linspace(3, 9, 1).tolist()
    assert [] == Tensor.linspace(3, 9, 0).tolist()
    with pytest.raises(ShapeError, match="negative"):
        Tensor.linspace(0, 1, -1)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1), st.integers(2, 9))
def test_linspace_of_integers_rounds_down(start: int, stop: int, steps: int) -> None:
    expected = [start + i * (stop - start) // (steps - 1) for i in range(steps)]

    assert expected == Tensor.linspace(start, stop, steps, dtype="int32").tolist()


def test_the_identity_may_be_a_rectangle() -> None:
    assert np.eye(2, 3).tolist() == Tensor.eye(2, 3).tolist()
    assert np.eye(3, dtype=int).tolist() == Tensor.eye(3, dtype="int32").tolist()


def test_a_not_a_number_fills_too() -> None:
    assert math.isnan(Tensor.full((1,), math.nan).item())
