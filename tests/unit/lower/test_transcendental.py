"""The elementary functions stay within 2 units in the last place of float32 over its whole range."""

import math
import random

import numpy as np
import pytest

from float_samples import around, cost, every_float32, modern_processor, processor, ulps, wide_processor
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.meaning import rounded
from lazulite.ir.uop import UOp, toposort
from lazulite.lower.decompose import decompose
from numpy_oracle import evaluate, leaf

_erf = np.vectorize(math.erf, otypes=[np.float64])
REFERENCES = {
    ops.EXP: np.exp, ops.EXP2: np.exp2, ops.LOG: np.log, ops.LOG2: np.log2, ops.TANH: np.tanh, ops.ERF: _erf,
}  # fmt: skip
EDGES = {
    ops.EXP: around(0.0, -87.33654, -103.97208, 88.72284, 0.34657359, -0.34657359),
    ops.EXP2: around(0.0, 128.0, -126.0, -149.0, -150.0, 0.5, -0.5),
    ops.LOG: around(1.0, 2.0**0.5, 0.5**0.5, 2.0**-126),
    ops.LOG2: around(1.0, 2.0**0.5, 0.5**0.5, 2.0**-126),
    ops.TANH: around(0.55, -0.55, 9.01, 20.0),
    ops.ERF: around(0.84375, -0.84375, 3.92, 4.0),
}
MACHINES = [pytest.param(machine, id=name) for name, machine in
            [("scaleb", wide_processor), ("fma", modern_processor), ("no fma", processor)]]  # fmt: skip
FUNCTIONS = pytest.mark.parametrize("op", REFERENCES, ids=repr)


def expanded(op, dtype, native):
    x = leaf(dtype)
    return x, decompose(UOp.apply(op, x), native)


@pytest.mark.parametrize("native", MACHINES)
@FUNCTIONS
def test_float32_results_are_within_two_units_in_the_last_place(op, native):
    x, root = expanded(op, dtypes.float32, native)
    values = np.concatenate([every_float32(100_003), EDGES[op], around(2.0**-140, -(2.0**-140), 1.0, -1.0)])

    with np.errstate(all="ignore"):
        error = ulps(evaluate(root, {x: values}), REFERENCES[op](values.astype(np.float64)))

    assert error.max() <= 2.0, f"{error.max()} at {values[error.argmax()]}"


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
def test_float64_results_are_within_three_units_of_the_c_library(op, native):
    x, root = expanded(op, dtypes.float64, native)
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.uniform(-1, 1, 1000), rng.uniform(-30, 30, 1000), rng.uniform(-750, 715, 1000),
                             1 + rng.normal(0, 1e-3, 1000), rng.uniform(0, 1e-3, 1000) ** 90])  # fmt: skip
    values = np.abs(values) if op in (ops.LOG, ops.LOG2) else values

    found = evaluate(root, {x: values})

    means = np.array([op.meaning(float(value)) for value in values])
    finite = np.isfinite(means)
    assert np.all(found[~finite] == means[~finite])
    found, means = found[finite], means[finite]
    assert np.all(np.abs(found - means) <= 3 * np.spacing(np.abs(means)))


@FUNCTIONS
def test_one_element_at_a_time_gives_the_same(op):
    x, root = expanded(op, dtypes.float32, modern_processor)
    rng = random.Random(6)
    values = [dtypes.float32.round(rng.uniform(0, 3)) for _ in range(40)]

    for value in values:
        done = {x: value}
        for node in toposort(root):
            if node not in done:
                done[node] = node.value if node.op is ops.CONST else rounded(node)(*[done[s] for s in node.src])
        assert done[root] == evaluate(root, {x: np.array([value])})[0]
        assert abs(done[root] - op.meaning(value)) <= 2.1 * abs(np.spacing(np.float32(op.meaning(value))))


@pytest.mark.parametrize(
    ("op", "limit"), [(ops.EXP, 24), (ops.EXP2, 25), (ops.LOG, 36), (ops.LOG2, 37), (ops.TANH, 33), (ops.ERF, 36)]
)
def test_the_cost_in_operations_does_not_grow(op, limit):
    assert cost(expanded(op, dtypes.float32, modern_processor)[1]) <= limit


@pytest.mark.parametrize(("op", "limit"), [(ops.EXP, 16), (ops.EXP2, 17), (ops.TANH, 31), (ops.ERF, 34)])
def test_powers_of_two_are_one_operation_where_the_processor_has_it(op, limit):
    assert cost(expanded(op, dtypes.float32, wide_processor)[1]) <= limit
