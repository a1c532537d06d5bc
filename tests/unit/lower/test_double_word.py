"""Sums and products with what rounding cut off, checked in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from float_samples import modern_processor, processor
from lazulite.ir.dtype import dtypes
from lazulite.lower.decompose import decompose
from lazulite.lower.double_word import odd_sum, two_product, two_sum
from numpy_oracle import evaluate, leaf

NUMBERS = st.floats(2.0**-60, 2.0**60) | st.floats(-(2.0**60), -(2.0**-60))
X, Y = leaf(dtypes.float64, 0), leaf(dtypes.float64, 1)


def value(root, x, y, native=processor):
    return float(np.ravel(evaluate(decompose(root, native), {X: np.array([x]), Y: np.array([y])}))[0])


@given(NUMBERS, NUMBERS)
def test_a_sum_and_its_error_are_exact(x, y):
    total, error = (value(part, x, y) for part in two_sum(X, Y))

    assert Fraction(x) + Fraction(y) == Fraction(total) + Fraction(error)


@pytest.mark.parametrize("fused", [True, False])
@given(x=NUMBERS, y=NUMBERS)
def test_a_product_and_its_error_are_exact(fused, x, y):
    product, error = (value(part, x, y, modern_processor) for part in two_product(X, Y, fused))

    assert Fraction(x) * Fraction(y) == Fraction(product) + Fraction(error)


@given(NUMBERS, NUMBERS)
def test_an_inexact_sum_is_odd_and_next_to_the_exact_one(x, y):
    total, exact = value(odd_sum(X, Y), x, y), Fraction(x) + Fraction(y)

    if Fraction(total) != exact:
        assert dtypes.float64.to_bits(total) & 1
        assert abs(Fraction(total) - exact) < Fraction(float(np.spacing(abs(total))))
