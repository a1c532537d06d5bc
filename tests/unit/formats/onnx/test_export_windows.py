"""Exported pools: the greatest of windows is MaxPool, other reductions of windows agree."""

from __future__ import annotations

import pytest

from lazulite import Tensor
from support.onnx_export import agrees, operators

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the reference implementation


@pytest.mark.parametrize("shape, options", [
    ((2, 3, 8, 8), {"kernel_size": 2}), ((2, 3, 9, 7), {"kernel_size": (3, 2), "stride": (2, 1)}),
    ((1, 3, 9, 9), {"kernel_size": 3, "stride": 1, "dilation": 2}), ((2, 3, 9, 9), {"kernel_size": 3, "padding": 1}),
])  # fmt: skip
def test_the_greatest_of_windows_is_one_pool(shape: tuple[int, ...], options: dict[str, int]) -> None:
    found = operators(agrees(lambda x: x.max_pool2d(**options), Tensor.randn(*shape).realize()))

    assert (1, 0) == (found["MaxPool"], found["ReduceMax"])


def test_the_greatest_along_an_axis_is_no_pool() -> None:
    found = operators(agrees(lambda x: (x.max(-1), x.max((2, 3)), x.amax(1)), Tensor.randn(2, 3, 4, 5).realize()))

    assert (0, 3) == (found["MaxPool"], found["ReduceMax"])


def test_means_of_windows_agree() -> None:
    agrees(lambda x: (x.avg_pool2d(2), x.avg_pool2d(3, 2, padding=1)), Tensor.randn(2, 3, 9, 9).realize(), within=1e-5)
