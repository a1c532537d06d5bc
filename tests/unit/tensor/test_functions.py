"""Elementwise functions at the points where they are hard; `tests/numbers` sweeps them."""

from __future__ import annotations

import math

import pytest

from lazulite import ArgumentError, Tensor, dtypes

INF, NAN = math.inf, math.nan


def signs(values: list[float]) -> list[float]:
    return [math.copysign(1.0, value) for value in values]


def test_functions_of_integers_are_floats_and_roundings_are_not() -> None:
    assert dtypes.float32 is Tensor([1]).exp().dtype
    assert dtypes.int32 is Tensor([1]).floor().dtype is Tensor([1]).ceil().dtype is Tensor([1]).round().dtype
    assert dtypes.float16 is Tensor([1.0], dtype="float16").exp().dtype


def test_limits_are_those_of_ieee() -> None:
    assert [NAN, 0.0, INF] == pytest.approx(Tensor([-1.0, 0.0, INF]).sqrt().tolist(), nan_ok=True)
    assert [-INF, NAN] == pytest.approx(Tensor([0.0, -1.0]).log().tolist(), nan_ok=True)
    assert [INF, 0.0] == Tensor([1000.0, -1000.0]).exp().tolist()
    assert [INF, -INF] == Tensor([0.0, -0.0]).reciprocal().tolist()


def test_rounding_is_half_to_even_and_keeps_the_sign_of_zero() -> None:
    """B064"""
    rounded = Tensor([0.5, 1.5, 2.5, -0.5, 8388609.0]).round().tolist()

    assert [0.0, 2.0, 2.0, -0.0, 8388609.0] == rounded
    assert -1.0 == signs(rounded)[3] == signs(Tensor([-0.5]).ceil().tolist())[0]


def test_the_absolute_value_of_minus_zero_is_zero() -> None:
    assert [1.0] == signs(Tensor([-0.0]).abs().tolist())
    assert [3, -(2**31)] == Tensor([-3, -(2**31)]).abs().tolist()
    assert [200] == Tensor([200], dtype="uint8").abs().tolist()


def test_the_sign_keeps_zeros_and_nan() -> None:
    assert [1.0, -1.0, NAN] == pytest.approx(Tensor([INF, -2.0, NAN]).sign().tolist(), nan_ok=True)
    assert [-1.0, 1.0] == signs(Tensor([-0.0, 0.0]).sign().tolist())
    assert [-1, 0, 1] == Tensor([-5, 0, 5]).sign().tolist()
    assert [0, 1] == Tensor([0, 5], dtype="uint8").sign().tolist()
    assert [True] == Tensor([True]).sign().tolist()


def test_copysign_sees_the_sign_of_zero() -> None:
    assert [-1.0, 2.0] == Tensor([1.0, -2.0]).copysign(Tensor([-0.0, 0.0])).tolist()


def test_steps_have_gradient_zero() -> None:
    x = Tensor([0.3, -1.7])
    for name in ("floor", "ceil", "trunc", "round", "sign"):
        assert [0.0, 0.0] == getattr(x, name)().sum().gradient(x)[0].tolist()


def test_small_values_keep_their_digits() -> None:
    assert [1e-6] == pytest.approx(Tensor([1e-6]).sinh().tolist(), rel=1e-6)
    assert [math.exp(-20.0)] == pytest.approx(Tensor([-20.0]).softplus().tolist(), rel=1e-5)


def test_logaddexp_neither_overflows_nor_loses_infinities() -> None:
    x, y = Tensor([1000.0, -INF, INF, 0.0]), Tensor([1000.0, -INF, INF, -INF])

    assert [1000.0 + math.log(2), -INF, INF, 0.0] == pytest.approx(x.logaddexp(y).tolist())


def test_clip_bounds_from_either_side() -> None:
    x = Tensor([1, 5, 9])

    assert [2, 5, 6] == x.clip(2, 6).tolist()
    assert [1, 5, 6] == x.clamp(max_=6).tolist()
    assert dtypes.float32 is x.clip(2.5).dtype
    assert [NAN] == pytest.approx(Tensor([NAN]).clip(0.0, 1.0).tolist(), nan_ok=True)
    with pytest.raises(ArgumentError, match="a lower or an upper bound"):
        x.clip()


def test_special_values_are_found() -> None:
    x = Tensor([1.0, NAN, INF, -INF])

    assert [False, True, False, False] == x.isnan().tolist()
    assert [False, False, True, True] == x.isinf().tolist()
    assert [False, False, False, True] == x.isinf(detect_positive=False).tolist()
    assert [False] * 4 == x.isinf(False, False).tolist()
    assert [True, False, False, False] == x.isfinite().tolist()
    assert [False] == Tensor([1]).isnan().tolist() == Tensor([1]).isinf().tolist()


def test_closeness_is_relative_to_the_other() -> None:
    """B062"""
    assert [True, False] == Tensor([1.0, 2.0]).isclose(1.0).tolist()
    x, y = Tensor([INF, INF, NAN, 1e10]), Tensor([INF, 1.0, NAN, 1e10 + 1e4])
    assert [True, False, False, True] == x.isclose(y).tolist()
    assert [True, False, True, True] == x.isclose(y, equal_nan=True).tolist()


def test_lerp_goes_part_of_the_way() -> None:
    assert [1.0, 7.5] == Tensor([0.0, 5.0]).lerp(Tensor([4.0, 15.0]), 0.25).tolist()
