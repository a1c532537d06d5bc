"""Sine, cosine and tangent of every finite float32, and of float64 far beyond any table."""

import math

import numpy as np
import pytest

from float_samples import around, cost, every_float32, modern_processor, processor, ulps
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.lower.decompose import decompose
from numpy_oracle import evaluate, leaf

REFERENCES = {ops.SIN: (np.sin, 2.0), ops.COS: (np.cos, 2.0), ops.TAN: (np.tan, 4.0)}
MACHINES = [pytest.param(modern_processor, id="fma"), pytest.param(processor, id="no fma")]
FUNCTIONS = pytest.mark.parametrize("op", REFERENCES, ids=repr)


def expanded(op, dtype, native):
    x = leaf(dtype)
    return x, decompose(UOp.apply(op, x), native)


def near_quarter_turns(count=4000):
    """The floats nearest to multiples of pi / 2, where a reduction loses most."""
    multiples = np.concatenate([np.arange(1, count), np.floor(2.0 ** np.linspace(12, 52, count))])
    return around(*(multiples * (math.pi / 2)).astype(np.float32)[::7], count=2)


@pytest.mark.parametrize("native", MACHINES)
@FUNCTIONS
def test_float32_results_keep_their_bound_for_every_exponent(op, native):
    """2 units in the last place; tan 4."""
    reference, bound = REFERENCES[op]
    x, root = expanded(op, dtypes.float32, native)
    values = np.concatenate(
        [every_float32(200_003), near_quarter_turns(), around(math.pi / 4, 1.0, 2.0**-126, 2.0**77)]
    )

    with np.errstate(all="ignore"):
        error = ulps(evaluate(root, {x: values}), reference(values.astype(np.float64)))

    assert error.max() <= bound, f"{error.max()} at {values[error.argmax()]}"


@pytest.mark.parametrize("native", MACHINES)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=repr)
@FUNCTIONS
def test_special_values_are_exact(op, dtype, native):
    x, root = expanded(op, dtype, native)
    values = [0.0, -0.0, math.inf, -math.inf, math.nan]

    found = evaluate(root, {x: np.array(values, dtype.name)})

    assert [repr(op.meaning(value)) for value in values] == [repr(float(value)) for value in found]


@pytest.mark.parametrize("native", MACHINES)
@FUNCTIONS
def test_float64_results_are_within_three_units_of_the_c_library_up_to_the_largest_number(op, native):
    x, root = expanded(op, dtypes.float64, native)
    rng = np.random.default_rng(2)
    values = np.concatenate([
        rng.uniform(-10, 10, 1000), rng.integers(0, 1 << 63, 2000, dtype=np.uint64).view(np.float64),
        np.floor(rng.uniform(0, 1e9, 1000)) * (math.pi / 2), [2.0**1023, dtypes.float64.largest],
    ])  # fmt: skip
    values = values[np.isfinite(values)]

    found = evaluate(root, {x: values})

    means = np.array([op.meaning(float(value)) for value in values])
    assert np.all(np.abs(found - means) <= 3 * np.spacing(np.abs(means)))


def test_the_double_nearest_to_a_multiple_of_a_quarter_turn_keeps_all_its_digits():
    """Its cosine is -4.6871659242546276111e-19; C libraries lose the last digits."""
    x, root = expanded(ops.COS, dtypes.float64, modern_processor)

    found = evaluate(root, {x: np.array([6381956970095103 * 2.0**797])})

    assert [-4.6871659242546276111e-19] == list(found)


@pytest.mark.parametrize(("op", "limit"), [(ops.SIN, 49), (ops.COS, 48), (ops.TAN, 50)])
def test_the_cost_in_operations_does_not_grow(op, limit):
    assert cost(expanded(op, dtypes.float32, modern_processor)[1]) <= limit
