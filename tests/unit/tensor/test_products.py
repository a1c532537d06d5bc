"""Products, windows, pooling, normalisation; `tests/numbers` compares them with torch."""

from __future__ import annotations

import numpy as np
import pytest

from lazulite import ShapeError, Tensor, dtypes


def test_products_of_whole_numbers_are_exact() -> None:
    x, y = np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)

    assert (x @ y).tolist() == (Tensor(x) @ Tensor(y)).tolist() == Tensor(x).dot(Tensor(y)).tolist()
    assert (x @ y).tolist() == Tensor(y).matmul(Tensor(x), reverse=True).tolist() == (x @ Tensor(y)).tolist()


def test_products_of_narrow_types_are_summed_wide() -> None:
    assert dtypes.int32 is (Tensor([[1]], dtype="int8") @ Tensor([[1]], dtype="int8")).dtype
    assert 200 * 200 == Tensor([200], dtype="uint8").dot(Tensor([200], dtype="uint8")).item()
    ones = Tensor.ones(4096, dtype="float16").clone()
    assert (4096.0, dtypes.float16) == (ones.dot(ones).item(), ones.dot(ones).dtype)
    assert dtypes.float64 is ones.dot(ones, dtype="float64").dtype


def test_a_product_in_place_writes_the_tensor() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    x @= Tensor([[0.0, 1.0], [1.0, 0.0]])

    assert [[2.0, 1.0], [4.0, 3.0]] == x.tolist()


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((4, 3), (5, 2), "inner sizes must be equal, got 3 and 5"),
        ((), (2,), "needs an axis on both sides"),
        ((2, 2, 3), (3, 3, 2), "batch axes do not broadcast"),
    ],
)
def test_shapes_that_do_not_multiply_raise(left: tuple[int, ...], right: tuple[int, ...], message: str) -> None:
    with pytest.raises(ShapeError, match=f"matmul: {message}"):
        Tensor.ones(*left) @ Tensor.ones(*right)


def test_a_linear_layer_takes_a_matrix_or_a_scale() -> None:
    x = Tensor([[1.0, 2.0]])

    assert [[3.5]] == x.linear(Tensor([[1.0], [1.0]]), Tensor([0.5])).tolist()
    assert [[2.0, 6.0]] == x.linear(Tensor([2.0, 3.0])).tolist()


def test_a_tall_kernel_meets_a_tall_input() -> None:
    """B097"""
    x, w = Tensor([[[[2.0], [1.0], [0.0]]]]), Tensor([[[[0.0], [3.0], [1.0]]]])

    assert [[[[3.0]]]] == x.conv2d(w).tolist()


@pytest.mark.parametrize(
    ("weight", "facts", "message"),
    [
        ((2, 3, 2, 2), {}, "do not fit"),
        ((2, 1, 2, 2), {"groups": 3}, "do not fit"),
        ((2, 2, 5, 2), {}, "no window of size 5"),
        ((2, 2, 2, 2), {"stride": 0}, "no window"),
        ((2, 2, 2, 2), {"padding": (1, 2, 3)}, "does not give one number"),
    ],
)
def test_convolutions_that_do_not_fit_raise(weight: tuple[int, ...], facts: dict[str, object], message: str) -> None:
    with pytest.raises(ShapeError, match=f"conv2d: .*{message}"):
        Tensor.ones(1, 2, 4, 4).conv2d(Tensor.ones(*weight), **facts)  # type: ignore[arg-type]


def test_padding_never_wins_a_maximum() -> None:
    """B094"""
    x = Tensor([[[[-5, -6], [-7, -8]]]])
    pooled = x.max_pool2d(2, stride=1, padding=1)

    assert dtypes.int32 is pooled.dtype
    assert [[[[-5, -5, -6], [-5, -5, -6], [-7, -7, -8]]]] == pooled.tolist()


def test_ceil_mode_counts_padding_but_not_what_lies_beyond() -> None:
    """B095"""
    x = Tensor.arange(1, 17, dtype="float32").reshape(1, 1, 4, 4)
    pooled = x.avg_pool2d(3, stride=2, padding=1, ceil_mode=True)
    expected = [1.5556, 3.3333, 2.0, 6.3333, 11.0, 6.0, 4.5, 7.5, 4.0]

    assert expected == pytest.approx(pooled.flatten().tolist(), abs=1e-4)


def test_a_window_that_begins_behind_the_tensor_is_left_out() -> None:
    x = Tensor.arange(3, dtype="float32").reshape(1, 1, 1, 3)

    assert [[[[0.0, 2.0]]]] == x.max_pool2d((1, 2), stride=(1, 3), padding=(0, 1), ceil_mode=True).tolist()


def test_pools_know_what_they_need() -> None:
    with pytest.raises(ShapeError, match=r"max_pool2d: .* fewer axes"):
        Tensor.ones(3).max_pool2d()
    with pytest.raises(ShapeError, match="avg_pool2d: no window of size 4"):
        Tensor.ones(1, 1, 3, 3).avg_pool2d(4)


def test_layer_norm_survives_a_large_offset() -> None:
    """B079"""
    x = Tensor([40000.0, 40001.0, 40002.0, 40003.0])

    assert [-1.3416, -0.4472, 0.4472, 1.3416] == pytest.approx(x.layernorm().tolist(), abs=1e-4)
    assert dtypes.float16 is Tensor([1.0, 2.0], dtype="float16").layernorm().dtype


def test_batch_norm_runs_along_its_axis() -> None:
    x = Tensor([[3.0, 10.0], [5.0, 30.0]])
    mean, scale = Tensor([4.0, 20.0]), Tensor([1.0, 0.1])

    assert np.array([[-1.0, -1.0], [1.0, 1.0]]) == pytest.approx(x.batchnorm(None, None, mean, scale).numpy(), abs=1e-6)
    shifted = x.batchnorm(Tensor([2.0, 2.0]), Tensor([0.0, 1.0]), mean, scale)
    assert np.array([[-2.0, -1.0], [2.0, 3.0]]) == pytest.approx(shifted.numpy(), abs=1e-6)
