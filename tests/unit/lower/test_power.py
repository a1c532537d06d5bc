"""x to the power y: IEEE's special cases (B038) and the bound of 4 units in the last place."""

import itertools
import math

import numpy as np
import pytest

from float_samples import array, modern_processor, processor, ulps
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.lower.decompose import decompose
from numpy_oracle import evaluate, leaf

MACHINES = [pytest.param(modern_processor, id="fma"), pytest.param(processor, id="no fma")]
WIDE = [dtypes.float32, dtypes.float64]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1.5, -1.5, math.inf, -math.inf, math.nan, 1e30, -1e30,
           1e-30, -1e-30, 16777215.0, 16777216.0, 2.0**52, 2.0**52 + 2]  # fmt: skip


def expanded(dtype, native):
    x, y = leaf(dtype, 0), leaf(dtype, 1)
    return x, y, decompose(UOp.apply(ops.POW, x, y), native)


@pytest.mark.parametrize("native", MACHINES)
@pytest.mark.parametrize("dtype", WIDE, ids=repr)
def test_special_cases_are_those_of_ieee(dtype, native):
    """B038, A10: zeros, infinities, NaN, ones, odd and even integers, fractions of negative numbers."""
    x, y, root = expanded(dtype, native)
    numbers = [*SPECIAL, dtype.from_bits(1), dtype.largest]
    left, right = (list(column) for column in zip(*itertools.product(numbers, numbers), strict=True))

    found = evaluate(root, {x: array(dtype, left), y: array(dtype, right)})

    means = array(dtype, [dtype.round(ops.POW.meaning(a, b)) for a, b in zip(left, right, strict=True)])
    with np.errstate(all="ignore"):
        near = np.abs(found - means) <= 4 * np.spacing(np.abs(means))
    same = (found == means) & (np.signbit(found) == np.signbit(means)) | (np.isnan(found) & np.isnan(means)) | near
    wrong = [(left[i], right[i], found[i], means[i]) for i in np.flatnonzero(~same)]
    assert [] == wrong


@pytest.mark.parametrize("native", MACHINES)
def test_float32_results_are_within_four_units_in_the_last_place(native):
    x, y, root = expanded(dtypes.float32, native)
    left, right = bases_and_exponents(np.float32, 149)

    with np.errstate(all="ignore"):
        error = ulps(evaluate(root, {x: left, y: right}), np.power(left.astype(float), right.astype(float)))

    assert error.max() <= 4.0, f"{error.max()} at {left[error.argmax()]}, {right[error.argmax()]}"


@pytest.mark.parametrize("native", MACHINES)
def test_float64_results_are_within_three_units_of_the_c_library(native):
    x, y, root = expanded(dtypes.float64, native)
    left, right = bases_and_exponents(np.float64, 1074)

    found = evaluate(root, {x: left, y: right})

    with np.errstate(all="ignore"):
        means = np.power(left, right)
        far = np.abs(found - means) > 3 * np.spacing(np.abs(means))
    assert not np.any(far & (found != means))


def bases_and_exponents(kind, limit):
    """Bases of every magnitude, with exponents that lead to every magnitude of results, and some beyond."""
    rng = np.random.default_rng(7)
    bits = rng.integers(0, int(np.array(np.inf, kind).view(f"u{kind().itemsize}")), 20000, dtype=np.uint64)
    left = np.concatenate([bits.astype(f"u{kind().itemsize}").view(kind), 1 + rng.normal(0, 1e-4, 20000).astype(kind),
                           rng.uniform(0.5, 2, 20000).astype(kind)])  # fmt: skip
    left = left[(left != 1) & (left > 0)]
    target = rng.uniform(-1.1 * limit, 1.1 * limit, len(left))
    return left, (target / np.log2(left.astype(np.float64))).astype(kind)
