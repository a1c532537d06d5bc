"""What pools refuse.  Values are compared in `tests/surface`."""

from __future__ import annotations

import pytest

from lazulite import ArgumentError, ShapeError, Tensor
from lazulite.nn import functional as F


def test_padding_that_fills_a_window_is_refused() -> None:
    with pytest.raises(ArgumentError, match="padding is from 0 to half of the kernel"):
        F.max_pool1d(Tensor([[1.0, 2.0, 3.0]]), 2, padding=2)


def test_windows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="5 windows of size 3 do not fit an axis of size 4"):
        F.fractional_max_pool2d(Tensor.zeros(1, 1, 4, 4), 3, output_size=5)
    with pytest.raises(ArgumentError, match="give one of output_size and output_ratio"):
        F.fractional_max_pool2d(Tensor.zeros(1, 1, 4, 4), 3)
    with pytest.raises(ShapeError, match="fewer than 3 axes"):
        F.adaptive_avg_pool3d(Tensor.zeros(4, 4), 2)


def test_a_divisor_of_zero_is_refused() -> None:
    with pytest.raises(ArgumentError, match="divisor_override is not zero"):
        F.avg_pool2d(Tensor.zeros(1, 1, 4, 4), 2, divisor_override=0)
