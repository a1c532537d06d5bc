"""Intermediates whose axes lie in memory otherwise than their shapes say: when, and that no value changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import Tensor
from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.build import Schedule
from support.schedules import scheduled

CHANNELS, SIDE = 32, 16
"""Enough for a convolution that counts as large."""


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return Tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32)).realize()


def image(images: int = 1, channels: int = CHANNELS) -> Tensor:
    return numbers(images, channels, SIDE, SIDE)


def kernel(outputs: int = CHANNELS, inputs: int = CHANNELS, side: int = 3, seed: int = 1) -> Tensor:
    return numbers(outputs, inputs, side, side, seed=seed) * (1 / side)


def moved_axes(*outputs: Tensor) -> list[tuple[tuple[int, ...], int]]:
    """The shapes of values that lie otherwise, with the axis that is innermost."""
    return [(value.shape, axis) for value, axis in schedule(*outputs).fusion.last.items()]


def schedule(*outputs: Tensor) -> Schedule:
    return scheduled([output.uop for output in outputs]).schedule


def reference(x: Any, w: Any, stride: int = 1, padding: int = 1) -> Any:
    """A convolution in float64."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::stride, ::stride]
    return np.einsum("bcyxij,ocij->boyx", windows, w, optimize=True)


# --- when ----------------------------------------------------------------------------------------


def test_channels_lie_innermost_between_convolutions() -> None:
    y = image().conv2d(kernel().realize(), padding=1).relu()

    assert [((1, CHANNELS, SIDE, SIDE), 1)] == moved_axes(y.conv2d(kernel(seed=2).realize(), padding=1))


def test_what_a_convolution_reads_first_and_writes_last_lies_as_its_shape_says() -> None:
    assert [] == moved_axes(image().conv2d(kernel().realize(), padding=1).relu())


def test_a_pool_between_convolutions_follows_them() -> None:
    y = image().conv2d(kernel().realize(), padding=1).relu().max_pool2d(3, 1, padding=1)
    found = moved_axes(y.conv2d(kernel(seed=2).realize(), padding=1))

    assert 2 == len(found)
    assert all(shape[axis] == CHANNELS for shape, axis in found)


def test_a_residual_is_read_as_it_was_written() -> None:
    first = image().conv2d(kernel().realize(), padding=1).relu()
    second = first.conv2d(kernel(seed=2).realize(), padding=1) + first
    found = moved_axes(second.conv2d(kernel(seed=3).realize(), padding=1))

    assert 2 == len(found)


def test_a_value_that_others_see_lies_as_its_shape_says() -> None:
    y = image().conv2d(kernel().realize(), padding=1).relu()

    assert [] == moved_axes(y, y.conv2d(kernel(seed=2).realize(), padding=1))


def test_a_value_that_a_sum_over_rows_reads_as_well_lies_as_its_shape_says() -> None:
    """The sum is as large as the convolution, and along rows it is vectors."""
    y = image().conv2d(kernel().realize(), padding=1).relu()
    rows = y.reshape(CHANNELS, SIDE * SIDE)

    assert [] == moved_axes(y.conv2d(kernel(seed=2).realize(), padding=1), rows @ numbers(SIDE * SIDE, 256))


def test_rows_that_matrix_products_hand_on_lie_as_they_are() -> None:
    x, w = numbers(128, 128), numbers(128, 128, seed=1)

    assert [] == moved_axes(((x @ w).relu() @ w).relu() @ w)


def test_heads_that_products_read_row_by_row_lie_as_they_are() -> None:
    heads = (numbers(128, 128) @ numbers(128, 128, seed=1)).reshape(128, 8, 16).permute(1, 0, 2).relu()

    assert [] == moved_axes(heads @ numbers(8, 16, 128, seed=2))


def test_few_channels_are_no_vector() -> None:
    y = image(8).conv2d(kernel(8).realize(), padding=1).relu()

    assert [] == moved_axes(y.conv2d(kernel(64, 8, seed=2).realize(), padding=1))


def test_the_reason_tells_of_the_axis() -> None:
    y = image().conv2d(kernel().realize(), padding=1).relu()
    told = str(y.conv2d(kernel(seed=2).realize(), padding=1).explain())

    assert "axis 1 lies innermost" in told


def test_writer_and_readers_agree_on_where_an_element_lies() -> None:
    y = image().conv2d(kernel().realize(), padding=1).relu()
    first, second = (k.sink for k in schedule(y.conv2d(kernel(seed=2).realize(), padding=1)).kernels)
    (walked,) = [linear(store.src[1]).terms for store in first.src]
    (image_load,) = [n for n in toposort(second) if n.op is ops.LOAD and len(n.src) == 3]

    assert {1, CHANNELS, CHANNELS * SIDE} == set(walked.values())
    assert {1, CHANNELS, CHANNELS * SIDE} == set(linear(image_load.src[1]).terms.values())
    assert CHANNELS == extent(next(r for r, step in walked.items() if step == 1))


def extent(r: UOp) -> int:
    return int(r.vmax) + 1


# --- no value changes ----------------------------------------------------------------------------


@given(
    st.integers(1, 2), st.sampled_from([16, 20, 32]), st.sampled_from([(1, 0, 1), (3, 1, 1), (3, 1, 2), (3, 0, 1)]),
    st.sampled_from(["none", "residual", "pool", "mean", "scaled"]),
)  # fmt: skip
def test_a_chain_of_convolutions_means_what_it_says(
    images: int, channels: int, form: tuple[int, int, int], between: str
) -> None:
    side, padding, stride = form
    x, first, second = image(images, CHANNELS), kernel(channels), kernel(CHANNELS, channels, side, 2)
    y = x.conv2d(first, padding=1).relu()
    expected = np.maximum(reference(x.numpy().astype("f8"), first.numpy().astype("f8")), 0)
    if between == "residual":
        y, expected = y + y.exp2().reciprocal(), expected + np.exp2(-expected)
    elif between == "pool":
        y = y.max_pool2d(3, 1, padding=1)
        padded = np.pad(expected, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        expected = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).max((-1, -2))
    elif between == "mean":
        y, expected = y - y.mean((2, 3), keepdim=True), expected - expected.mean((2, 3), keepdims=True)
    elif between == "scaled":
        scale = numbers(1, channels, 1, 1, seed=4)
        y, expected = y * scale, expected * scale.numpy()
    y = y.conv2d(second, padding=padding, stride=stride)
    expected = reference(expected, second.numpy().astype("f8"), stride, padding)

    assert np.abs(y.numpy() - expected).max() <= 1e-4 * np.abs(expected).max()


def test_a_value_that_is_read_in_another_width_lies_as_its_shape_says() -> None:
    y = image().conv2d(kernel().realize(), padding=1).relu()
    z, halves = y.conv2d(kernel(seed=2).realize(), padding=1), y.bitcast("uint16").cast("int32") + 1
    expected = reference(image().numpy().astype("f8"), kernel().numpy().astype("f8"))

    assert [] == moved_axes(z, halves)
    assert np.array_equal(y.numpy().view(np.uint16), halves.numpy() - 1)
    assert np.allclose(np.maximum(expected, 0), y.numpy(), atol=1e-4)


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_a_copy_to_another_device_is_of_the_value(device: str) -> None:
    y = image().conv2d(kernel().realize(), padding=1).relu()
    copied = y[:, :2, :2, :2].to(device)
    Tensor.realize(copied, z := y.conv2d(kernel(seed=2).realize(), padding=1))

    assert np.array_equal(y.numpy()[:, :2, :2, :2], copied.numpy())
    assert np.isfinite(z.numpy()).all()
