"""Arithmetic where it is not obvious; `tests/numbers` sweeps the operators."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import ArgumentError, DTypeError, Tensor, dtypes

INF, NAN = math.inf, math.nan


def test_bools_add_by_or_and_multiply_by_and() -> None:
    x, y = Tensor([True, True, False]), Tensor([True, False, False])

    assert [True, True, False] == (x + y).tolist()
    assert [True, False, False] == (x * y).tolist()
    with pytest.raises(DTypeError, match="sub: has no meaning for bool"):
        x.sub(y)
    with pytest.raises(DTypeError, match="neg"):
        x.neg()


def test_the_quotient_of_integers_is_a_float() -> None:
    assert dtypes.float32 is (Tensor([1]) / 2).dtype
    assert [0.5] == (Tensor([1], dtype="int64") / 2).tolist()


@given(st.integers(-20, 20), st.integers(-20, 20).filter(bool))
def test_integer_division_has_three_roundings(x: int, y: int) -> None:
    left = Tensor([x])

    assert [x // y] == left.div(y, rounding_mode="floor").tolist()
    assert [math.trunc(x / y)] == left.div(y, rounding_mode="trunc").tolist()
    assert [x % y] == (left % y).tolist()
    assert [int(math.fmod(x, y))] == left.fmod(y).tolist()


def test_division_of_integers_by_zero_gives_zero() -> None:
    """B044, B047"""
    assert [0, 0, 0] == (Tensor([5, 0, -5]) // Tensor([0, 0, 0])).tolist()
    assert [0, 0] == (Tensor([1, 2], dtype="uint32") % Tensor([0, 0], dtype="uint32")).tolist()


def test_the_smallest_integer_over_minus_one_wraps() -> None:
    """B043"""
    assert [-(2**31)] == (Tensor([-(2**31)]) // Tensor([-1])).tolist()


def test_division_of_floats_follows_ieee() -> None:
    """B046, B049, B050"""
    assert [INF, -INF] == (Tensor([1.0, -1.0]) // Tensor([0.0, 0.0])).tolist()
    x = Tensor([INF, NAN, 1.0])
    assert [NAN, NAN, 0.0] == pytest.approx((x * 0).tolist(), nan_ok=True)
    y = Tensor([0.0, INF, 1.0])
    assert [NAN, NAN, 1.0] == pytest.approx((y / y).tolist(), nan_ok=True)
    assert [0.0, NAN, 0.0] == pytest.approx((y - y).tolist(), nan_ok=True)


def test_an_infinite_divisor_leaves_the_rest() -> None:
    assert [1.0, INF, -1.0] == (Tensor([1.0, -1.0, -1.0]) % Tensor([INF, INF, -INF])).tolist()
    assert [1.0] == Tensor([1.0]).fmod(INF).tolist()


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16", "fp8e5m2"])
def test_the_remainder_of_floats_is_exact_however_large_the_quotient(dtype: str) -> None:
    spread = np.array([1e30, 65504.0, 1e-30, 123456789.0, 16777217.0, 5.5, 3.0, 1e-40, 0.1, 0.3, 6e-8, 7.0])
    x, y = [Tensor(part.ravel()).cast(dtype) for part in np.meshgrid(np.concatenate([spread, -spread]), spread)]
    exact = [math.fmod(a, b) if b and math.isfinite(a) else NAN for a, b in zip(x.tolist(), y.tolist(), strict=True)]

    assert exact == pytest.approx(x.fmod(y).tolist(), abs=0, rel=0, nan_ok=True)
    assert 123456789.0 % 0.3 == (Tensor([123456789.0], dtype="float64") % 0.3).item()
    assert -0.5 == math.copysign(0.5, Tensor([-6.0], dtype=dtype).fmod(3).item())


def test_the_gradient_of_a_remainder_is_the_quotient() -> None:
    x, y = Tensor([7.5, -7.5, 1e10]), Tensor([2.0, 2.0, 3.0])
    upstream, slope = x.fmod(y).sum().gradient(x, y)

    assert [1.0, 1.0, 1.0] == upstream.tolist()
    assert [-3.0, 3.0, -3333333333.0] == pytest.approx(slope.tolist(), rel=1e-6)


def test_a_rounding_mode_is_known() -> None:
    with pytest.raises(ArgumentError, match="rounding_mode"):
        Tensor([1]).div(2, rounding_mode="up")


def test_power_has_the_special_cases_of_ieee() -> None:
    """B038"""
    base, power = Tensor([-0.0, 1.0, -1.0, 0.0, -INF, NAN]), Tensor([-1.0, NAN, INF, -1.0, 3.0, 0.0])

    assert [-INF, 1.0, 1.0, INF, -INF, 1.0] == (base**power).tolist()
    assert [INF, 0.0] == (Tensor([0.0, INF]) ** -0.5).tolist()


def test_huge_exponents_are_even() -> None:
    """A10"""
    x = Tensor([0.5, 1.0, 2.0])

    assert [0.0, 1.0, INF] == (x ** (2.0**52)).tolist() == (x ** (2.0**52 + 2)).tolist()


@given(st.integers(-5, 5), st.integers(0, 12))
def test_integers_to_an_integer_power_are_exact(base: int, exponent: int) -> None:
    assert [base**exponent] == (Tensor([base]) ** exponent).tolist()
    assert [base**exponent] == (Tensor([base]) ** Tensor([exponent])).tolist()


def test_a_negative_power_of_integers_raises_or_rounds_to_zero() -> None:
    """B040"""
    with pytest.raises(DTypeError, match="integers have no power of -1"):
        Tensor([2, 1]) ** -1
    assert [81] == (Tensor([3], dtype="uint8") ** Tensor([4], dtype="uint8")).tolist()
    assert [0, 1, -1, 1] == (Tensor([2, 1, -1, -1]) ** Tensor([-1, -1, -1, -2])).tolist()


def test_integers_to_a_float_power_are_floats() -> None:
    """B041, O11"""
    result = Tensor([2, 3]) ** 0.5

    assert dtypes.float32 is result.dtype
    assert [2**0.5, 3**0.5] == pytest.approx(result.tolist(), rel=1e-6)


def test_operators_work_from_the_right() -> None:
    x = Tensor([2.0, 4.0])

    assert [3.0, 1.0] == (5 - x).tolist()
    assert [4.0, 2.0] == (8 / x).tolist()
    assert [6.0, 12.0] == (3 * x).tolist()
    assert [0.5, 0.25] == (x**-1).tolist()
    assert [1.0, 1.0] == (5 % x).tolist()
    assert [4.0, 16.0] == (2**x).tolist()
    assert [2.0, 1.0] == (5 // x).tolist()


def test_operators_in_place_write_the_tensor() -> None:
    x = Tensor([1.0, 2.0])
    before, same = x + 0, x
    x += 1
    x *= 3
    x -= 2
    x /= 4
    x **= 2
    x //= 1
    x %= 2

    assert same is x
    assert [1.0, 1.0] == x.tolist()
    assert [1.0, 2.0] == before.tolist()
    assert [-1.0, -1.0] == (-(+x)).tolist()


def test_maximum_lets_nan_through() -> None:
    """B055"""
    assert [NAN, NAN] == pytest.approx(Tensor([1.0, NAN]).maximum(Tensor([NAN, 1.0])).tolist(), nan_ok=True)
