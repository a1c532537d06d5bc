"""Reductions: types, precision, special values, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import AxisError, ShapeError, Tensor, dtypes

INF, NAN = math.inf, math.nan


@given(st.integers(0, 3), st.booleans(), st.sampled_from(["sum", "mean", "max", "min", "prod", "any", "all"]))
def test_reductions_are_numpys(axis: int, keep: bool, name: str) -> None:
    array = (np.arange(24, dtype=np.float32).reshape(2, 3, 4) % 7 - 2) / 2
    axes = None if axis == 3 else axis
    expected = getattr(np, name)(array, axis=axes, keepdims=keep)

    result = getattr(Tensor(array), name)(axes, keepdim=keep)
    assert expected.shape == result.shape
    assert expected == pytest.approx(result.numpy())


def test_axis_is_dim_and_keepdim_is_keepdims() -> None:
    x = Tensor.ones(2, 3)

    assert (2,) == x.sum(dim=1).shape == x.sum(axis=-1).shape
    assert (2, 1) == x.sum(dim=1, keepdims=True).shape == x.max(1, keepdim=True).shape
    assert () == x.sum((0, 1)).shape


def test_sums_of_integers_have_at_least_32_bits() -> None:
    for name, expected in (("bool", "int32"), ("int8", "int32"), ("uint8", "uint32"), ("int64", "int64")):
        assert getattr(dtypes, expected) is Tensor.ones(3, dtype=name).sum().dtype
    assert 510 == Tensor([255, 255], dtype="uint8").sum().item()
    assert dtypes.int64 is Tensor([1]).sum(dtype="int64").dtype
    assert 65536 == Tensor([256, 256], dtype="int16").prod().item()


def test_means_of_integers_do_not_overflow() -> None:
    """O04"""
    assert 2147483647.0 == pytest.approx(Tensor([2**31 - 1] * 3).mean().item(), rel=1e-7)
    assert 1.5 == Tensor([1, 2]).mean().item()
    assert 0.75 == Tensor([True, True, True, False]).mean().item()
    assert 2.0**63 == Tensor([2**63], dtype="uint64").mean().item()


def test_means_of_halves_neither_overflow_nor_stall() -> None:
    """B076"""
    assert 60000.0 == Tensor.full((64,), 60000.0, dtype="float16").clone().mean().item()
    assert 1.0 == Tensor.ones(70000, dtype="float16").clone().mean().item()


def test_the_deviation_of_halves_exists_where_the_variance_does_not() -> None:
    """B077"""
    x = Tensor([300.0, -300.0], dtype="float16")

    assert (424.25, INF) == (x.std().item(), x.var().item())
    assert [INF, 0.0] == [part.item() for part in x.var_mean()]
    assert [424.25, 0.0] == [part.item() for part in x.std_mean()]


def test_a_large_offset_costs_no_digits() -> None:
    """B079, B080"""
    x = Tensor([40000.0, 40001.0, 40002.0, 40003.0])

    assert 1.25 == x.var(correction=0).item()
    assert 0.0 == Tensor.full((10, 100), 7e9).clone().var().item()


def test_too_few_elements_have_no_variance() -> None:
    assert math.isnan(Tensor([1.0]).var().item())
    assert math.isnan(Tensor.zeros(0).var().item())
    assert math.isnan(Tensor.zeros(0).mean().item())


def test_extrema_let_nan_through_and_know_bools() -> None:
    """B055"""
    assert math.isnan(Tensor([1.0, NAN, 3.0]).max().item()) and math.isnan(Tensor([3.0, NAN]).min().item())
    assert Tensor([False, True]).max().item() is True
    assert -INF == Tensor([-INF, -INF]).max().item()


@pytest.mark.parametrize(
    ("values", "expected"),
    [([NAN, NAN], 0), ([0.0, 1.0, NAN], 2), ([-1.0, -0.0, 1.4e-45], 2), ([2.0, 7.0, 7.0], 1), ([-INF, -INF], 0)],
)
def test_argmax_is_the_first_nan_or_the_first_largest(values: list[float], expected: int) -> None:
    """B056, B059, B061"""
    position = Tensor(values).argmax()

    assert expected == position.item()
    assert dtypes.int32 is position.dtype


def test_positions_along_axes_and_in_the_flattened_tensor() -> None:
    array = np.array([[3, 9, 1], [9, 0, 0]])
    x = Tensor(array)

    assert np.argmax(array, 1).tolist() == x.argmax(1).tolist() == x.argmax(dim=-1).tolist()
    assert int(np.argmin(array)) == x.argmin().item()
    assert (2, 1) == x.argmax(1, keepdim=True).shape and (1, 1) == x.argmax(keepdim=True).shape
    with pytest.raises(AxisError, match=r"argmax: an axis is an integer, got \(0, 1\)"):
        x.argmax((0, 1))  # type: ignore[arg-type]


def test_nothing_has_no_largest_element() -> None:
    """B103"""
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ShapeError, match=f"{name}: no element to choose from"):
            getattr(Tensor.zeros(0), name)()
    assert (2, 0) == Tensor.zeros(2, 3, 0).max(1).shape
    assert (0.0, 1.0) == (Tensor.zeros(0).sum().item(), Tensor.zeros(0).prod().item())


def test_softmax_neither_overflows_nor_hides_nan() -> None:
    assert [0.0, 1.0] == Tensor([0.0, 1000.0]).softmax().tolist()
    assert [NAN, NAN] == pytest.approx(Tensor([-INF, -INF]).softmax().tolist(), nan_ok=True)
    assert [0.5, 0.0, 0.5] == Tensor([1.0, -INF, 1.0]).softmax().tolist()
    assert [0.5, 0.5] == Tensor([1, 1]).softmax().tolist() == Tensor([1, 1]).softmin().tolist()
    assert dtypes.float64 is Tensor([1.0]).softmax(dtype="float64").dtype
    assert (2, 0) == Tensor.zeros(2, 0).softmax().shape
    assert 1.0 == Tensor(3.0).softmax().item()


def test_softmax_of_halves_rounds_once() -> None:
    x = Tensor([0.1 * i for i in range(50)], dtype="float16")
    exact = np.exp(x.numpy().astype(np.float64))

    assert (exact / exact.sum()).astype(np.float16).tolist() == x.softmax().tolist()


def test_logsumexp_knows_infinities() -> None:
    assert -INF == Tensor([]).logsumexp().item() and [-INF, -INF] == Tensor.zeros(2, 0).logsumexp(1).tolist()
    assert -INF == Tensor([-INF, -INF]).logsumexp().item()
    assert INF == Tensor([INF, 1.0]).logsumexp().item()
    assert 1000.0 == Tensor([1000.0, -1000.0]).logsumexp().item()


def test_an_axis_that_is_not_there_raises() -> None:
    for name in ("sum", "max", "softmax", "argmax", "var_mean"):
        with pytest.raises(AxisError, match=f"{name}: axis 2 is outside a shape of rank 1"):
            getattr(Tensor.ones(3), name)(2)
