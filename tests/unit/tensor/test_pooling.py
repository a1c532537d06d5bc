"""Where maxima stood, and putting them back.  Values of pools are tested beside the products."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lazulite import ShapeError, Tensor, dtypes


@pytest.mark.parametrize("facts", [{}, {"stride": 1, "padding": 1}, {"stride": 3, "dilation": 2, "ceil_mode": True}])
def test_positions_lead_to_the_maxima(facts: dict[str, int]) -> None:
    x = np.random.default_rng(0).permutation(2 * 3 * 6 * 7).reshape(2, 3, 6, 7).astype(np.float32)
    maxima, places = Tensor(x).max_pool2d(2, return_indices=True, **facts)
    rows, picked = x.reshape(6, 42), places.numpy().reshape(6, -1)

    assert dtypes.int32 is places.dtype
    assert np.take_along_axis(rows, picked, 1).tolist() == maxima.numpy().reshape(6, -1).tolist()


def test_ceil_mode_pools_an_axis_that_is_smaller_than_the_window() -> None:
    """B095"""
    x = Tensor([[1.0, 2.0, 6.0]])

    assert [[6.0]] == x.max_pool2d((1, 4), stride=(1, 3), ceil_mode=True).tolist()
    assert [[3.0]] == x.avg_pool2d((1, 4), stride=(1, 3), ceil_mode=True).tolist()
    with pytest.raises(ShapeError, match="no window of size 4"):
        x.max_pool2d((1, 4), stride=(1, 3))


def test_the_first_of_equals_and_of_nans_counts() -> None:
    x = Tensor([[4.0, 4.0, 1.0, math.nan], [4.0, 4.0, math.nan, 2.0]])

    assert [[0, 3]] == x.max_pool2d(return_indices=True)[1].tolist()


def test_what_was_pooled_comes_back_to_its_place() -> None:
    x = Tensor([[[[1.0, 2.0, 3.0], [4.0, 9.0, 5.0], [6.0, 7.0, 8.0]]]])
    maxima, places = x.max_pool2d(2, stride=1, return_indices=True)
    back = maxima.max_unpool2d(places, 2, stride=1)
    wide = x.max_pool2d(return_indices=True)

    assert [[0, 0, 0], [0, 9, 0], [0, 0, 0]] == back[0, 0].tolist()
    assert back.tolist() == wide[0].max_unpool2d(wide[1], output_size=(3, 3)).tolist()


def test_the_gradient_of_putting_back_is_picked() -> None:
    x = Tensor([[5.0, 6.0]])
    back = x.max_unpool2d(Tensor([[1, 2]]))
    (gradient,) = (back * Tensor.arange(8.0).reshape(2, 4)).sum().gradient(x)

    assert [[0.0, 5.0, 6.0, 0.0], [0.0] * 4] == back.tolist()
    assert [[1.0, 2.0]] == gradient.tolist()


def test_shapes_that_do_not_fit_raise() -> None:
    with pytest.raises(ShapeError, match="need as many positions"):
        Tensor([[1.0]]).max_unpool2d(Tensor([1]))
    with pytest.raises(ShapeError, match="fewer axes than the kernel"):
        Tensor([1.0]).max_unpool2d(Tensor([1]))
