"""Running sums, products and extrema."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import AxisError, Tensor, dtypes
from lazulite.ir.dtype import DType
from lazulite.ir.uop import toposort

sizes = st.sampled_from([0, 1, 2, 63, 64, 65, 130])


@given(sizes, st.integers(0, 2), st.integers(0, 99))
def test_scans_of_integers_are_numpys(size: int, axis: int, seed: int) -> None:
    shape = [2, 3, 2]
    shape[axis] = size
    x = np.random.default_rng(seed).integers(-3, 4, shape).astype(np.int32)
    tensor = Tensor(x)

    assert np.cumsum(x, axis, dtype=np.int32).tolist() == tensor.cumsum(axis).tolist()
    assert np.cumprod(x, axis, dtype=np.int32).tolist() == tensor.cumprod(axis).tolist()
    assert np.maximum.accumulate(x, axis).tolist() == tensor.cummax(axis)[0].tolist()
    assert np.minimum.accumulate(x, axis).tolist() == tensor.cummin(axis)[0].tolist()


@given(sizes.filter(bool), st.integers(0, 99))
def test_an_extremum_stands_where_it_first_stood(size: int, seed: int) -> None:
    x = np.random.default_rng(seed).integers(0, 9, size)
    values, places = Tensor(x).cummax()
    expected = [int(np.argmax(x[: n + 1])) for n in range(size)]

    assert expected == places.tolist()
    assert x[expected].tolist() == values.tolist()
    assert [int(np.argmin(x[: n + 1])) for n in range(size)] == Tensor(x).cummin()[1].tolist()
    assert dtypes.int32 is places.dtype


def test_a_nan_stays() -> None:
    """B058"""
    values, places = Tensor([1.0, 3.0, math.nan, 5.0, math.nan]).cummax()

    assert [1.0, 3.0] == values.tolist()[:2]
    assert all(map(math.isnan, values.tolist()[2:]))
    assert [0, 1, 2, 2, 2] == places.tolist()


def test_exponentials_are_summed_in_the_logarithm() -> None:
    """B053"""
    infinite = -math.inf
    x = np.random.default_rng(0).standard_normal(200).astype(np.float32) * 50

    assert [0.0, 100.0] == Tensor([0.0, 100.0]).logcumsumexp().tolist()
    assert [infinite, infinite, 1.0] == Tensor([infinite, infinite, 1.0]).logcumsumexp().tolist()
    assert [1.0, math.inf] == Tensor([1.0, math.inf]).logcumsumexp().tolist()
    assert np.logaddexp.accumulate(x.astype(float)) == pytest.approx(Tensor(x).logcumsumexp().numpy(), rel=1e-5)


def test_a_sum_longer_than_a_block_has_value_and_gradient() -> None:
    """B073"""
    ones = Tensor.ones(1022)
    running = ones.cumsum()
    (gradient,) = running.sum().gradient(ones)

    assert list(range(1022, 0, -1)) == gradient.tolist()
    assert list(range(1, 1023)) == running.tolist()
    assert 10000 == pytest.approx(Tensor.full(100000, 0.1).cumsum()[-1].item(), abs=1e-2)


def test_a_middle_axis_is_summed_along() -> None:
    """B074"""
    running = Tensor.ones(2, 3, 4, 5).cumsum(1)

    assert [1.0, 2.0, 3.0] == running[1, :, 2, 3].tolist()


def test_a_tensor_without_axes_is_its_own_scan_in_the_type_of_the_sum() -> None:
    """B104"""
    single, pair = Tensor(True).cumsum(), Tensor([True, True]).cumsum()

    assert (1, [1, 2]) == (single.tolist(), pair.tolist())
    assert dtypes.int32 is single.dtype is pair.dtype
    assert [5, 0] == [part.item() for part in Tensor(5).cummax()]


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_narrow_floats_are_scanned_in_float32(dtype: DType) -> None:
    running = Tensor.ones(5000).cast(dtype).cumsum()

    assert dtype is running.dtype
    assert 5000 == pytest.approx(running[-1].item(), rel=4e-3)


def test_no_value_of_a_scan_is_quadratic_in_memory() -> None:
    largest = max(math.prod(node.shape) for node in toposort(Tensor.ones(10000).cumsum().uop))

    assert largest <= 64 * (10000 + 64)


def test_an_axis_that_is_not_there_raises() -> None:
    with pytest.raises(AxisError, match="axis 1"):
        Tensor([1]).cumsum(1)
