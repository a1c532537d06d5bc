"""Inverse trigonometric and hyperbolic functions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lazulite import Tensor, dtypes

INSIDE = ("asin", "acos", "atanh")


def samples(name: str) -> np.ndarray:
    random = np.random.default_rng(0)
    if name in INSIDE:
        x = np.concatenate([np.linspace(-1, 1, 2001), [1e-30, -1e-30, -0.0, 0.99999994]])
    else:
        x = np.concatenate([np.linspace(-9, 9, 2001), 10 ** random.uniform(-37, 38, 500), [math.inf, -0.0, 0.0]])
    x = x.astype(np.float32)
    return abs(x[abs(x) >= 1]) if name == "acosh" else np.concatenate([x, -x])


@pytest.mark.parametrize("name", ["asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_values_are_right_to_the_last_place_and_keep_the_sign_of_zero(name: str) -> None:
    """A10"""
    x = samples(name)
    with np.errstate(divide="ignore"):
        expected = getattr(np, "arc" + name[1:])(x.astype(np.float64)).astype(np.float32)
    found = getattr(Tensor(x), name)().numpy()
    with np.errstate(invalid="ignore"):
        apart = np.where(expected == found, 0, abs(expected - found))

    assert (apart <= np.spacing(abs(expected), where=np.isfinite(expected), out=np.zeros_like(expected))).all()
    assert np.signbit(expected).tolist() == np.signbit(found).tolist()


def test_outside_the_domain_is_nan() -> None:
    results = [Tensor([1.5, -1.5]).asin(), Tensor([1.5, -1.5]).acos(), Tensor([0.5]).acosh(), Tensor([2.0]).atanh()]

    assert all(math.isnan(value) for result in results for value in result.tolist())
    assert all(math.isnan(getattr(Tensor([math.nan]), name)().item()) for name in (*INSIDE, "atan", "asinh", "acosh"))


def test_slopes_are_right_at_the_edges() -> None:
    x, zero = Tensor([-1.0, 0.0, 1.0]), Tensor([0.0])

    assert [math.inf, 1.0, math.inf] == x.asin().sum().gradient(x)[0].tolist()
    assert [-math.inf, -1.0, -math.inf] == x.acos().sum().gradient(x)[0].tolist()
    assert [math.inf, 1.0, math.inf] == x.atanh().sum().gradient(x)[0].tolist()
    assert [0.5, 1.0, 0.5] == pytest.approx(x.atan().sum().gradient(x)[0].tolist())
    assert [1.0] == zero.asinh().sum().gradient(zero)[0].tolist()


def test_types_stay_and_integers_become_floats() -> None:
    assert dtypes.float16 is Tensor([0.5], dtype="float16").asin().dtype
    assert dtypes.float32 is Tensor([1]).atan().dtype
    assert math.atan(0.3) == pytest.approx(Tensor([0.3], dtype="float64").atan().item(), rel=4e-16)
