"""Norms in corners; values are compared in `tests/surface`."""

from __future__ import annotations

import math

import pytest

from lazulite import ArgumentError, ShapeError, Tensor, dtypes


@pytest.mark.parametrize(
    ("p", "value"), [(2, 5.0), (1, 7.0), (math.inf, 4.0), (-math.inf, 0.0), (0, 2.0), (3, 91 ** (1 / 3))]
)
def test_each_power_is_the_textbooks(p: float, value: float) -> None:
    assert Tensor([3.0, 0.0, -4.0]).vector_norm(p).item() == pytest.approx(value)


def test_the_slope_of_a_norm_of_zeros_is_zero() -> None:
    x = Tensor.zeros(3)

    assert [0.0] * 3 == x.vector_norm().gradient(x)[0].tolist()
    assert [0.0] * 3 == x.vector_norm(3).gradient(x)[0].tolist()


def test_narrow_floats_are_summed_in_float32() -> None:
    x = Tensor.full((4,), 200.0, dtype=dtypes.float16)

    assert x.vector_norm().item() == 400.0
    assert dtypes.float16 is x.vector_norm().dtype
    assert dtypes.float32 is Tensor([3, 4]).vector_norm().dtype


def test_what_is_no_norm_is_refused() -> None:
    with pytest.raises(ArgumentError, match="ord is 'fro'"):
        Tensor.zeros(2, 2).matrix_norm("max")
    with pytest.raises(ShapeError, match="a matrix has two axes"):
        Tensor.zeros(2).matrix_norm()
