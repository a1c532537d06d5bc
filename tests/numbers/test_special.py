"""Special functions stay within two units in the last place of float32, over all magnitudes of their domains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from float_samples import ulps
from lazulite import Tensor

special = pytest.importorskip("scipy.special", reason="notimpl: SciPy, the reference, is not installed here")

Function = Callable[[Any], Any]

REFERENCES: dict[str, tuple[Function, float, float]] = {
    "log1p": (np.log1p, -1, 1e30), "expm1": (np.expm1, -100, 80), "sinh": (np.sinh, -80, 80),
    "cosh": (np.cosh, -80, 80),
    "erfc": (special.erfc, -6, 9), "erfinv": (special.erfinv, -1, 1), "lgamma": (special.gammaln, 1e-30, 1e30),
    "digamma": (special.digamma, 1e-30, 1e30), "i0": (special.i0, -80, 80), "sinc": (np.sinc, -30, 30),
    "logit": (special.logit, 0, 1), "deg2rad": (np.deg2rad, -1e30, 1e30), "rad2deg": (np.rad2deg, -1e30, 1e30),
    "atan": (np.arctan, -1e30, 1e30), "asinh": (np.arcsinh, -1e30, 1e30), "atanh": (np.arctanh, -1, 1),
    "acosh": (np.arccosh, 1, 1e30), "log10": (np.log10, 1e-30, 1e30),
}  # fmt: skip
"""Each function with its definition in float64 and the interval that is sampled."""


def spread(low: float, high: float) -> np.ndarray:
    """Floats of an interval: evenly spaced ones, and ones of every magnitude."""
    rng = np.random.default_rng(6)
    even = rng.uniform(max(low, -1e3), min(high, 1e3), 4000)
    magnitudes = rng.choice([-1.0, 1.0], 4000) * 10.0 ** rng.uniform(-30, 30, 4000)
    near_ends = 10.0 ** rng.uniform(-7, 0, 500)
    values = np.concatenate([even, magnitudes, low + near_ends, high - near_ends])
    values = values.astype(np.float32)
    return values[(values > low) & (values < high)]


@pytest.mark.parametrize("name", REFERENCES)
def test_a_function_is_right_to_two_units_in_the_last_place(name: str) -> None:
    reference, low, high = REFERENCES[name]
    values = spread(low, high)
    with np.errstate(all="ignore"):
        expected = reference(values.astype(np.float64))
    errors = ulps(getattr(Tensor(values), name)().numpy(), expected)
    usable = np.abs(expected) >= 2.0**-126  # below, results are subnormal and have fewer digits
    assert errors[usable].max() <= 2, values[usable][errors[usable].argmax()]


@pytest.mark.parametrize("name", ["atan2", "hypot"])
def test_a_function_of_two_values_is_right_to_two_units_in_the_last_place(name: str) -> None:
    x, y = spread(-1e30, 1e30), spread(-1e30, 1e30)[::-1].copy()
    reference = {"atan2": np.arctan2, "hypot": np.hypot}[name]
    expected = reference(x.astype(np.float64), y.astype(np.float64))
    errors = ulps(getattr(Tensor(x), name)(Tensor(y)).numpy(), expected)
    usable = np.abs(expected) >= 2.0**-126
    assert errors[usable].max() <= 2


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_derivatives_of_the_gamma_function_are_right_to_two_units_in_the_last_place(order: int) -> None:
    values = spread(1e-6, 1e4)
    expected = special.polygamma(order, values.astype(np.float64))
    errors = ulps(Tensor(values).polygamma(order).numpy(), expected)
    near_zero = np.abs(expected) < 1e-3  # digamma crosses zero, where float64 itself loses digits
    assert errors[~near_zero].max() <= 2
