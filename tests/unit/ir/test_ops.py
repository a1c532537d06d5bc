import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import FLOATS, dtypes
from lazulite.ir.meaning import element_function
from lazulite.ir.ops import OPS, by_name

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, -3.0, math.inf, -math.inf, math.nan]
TABLE = list(OPS.values())
MEANT = [op for op in TABLE if op.meaning is not None and op is not ops.THREEFRY]


def samples(dtype):
    if dtype is dtypes.bool:
        return [False, True]
    return SPECIAL if dtype.is_float else [-128, -127, -7, -1, 0, 1, 2, 3, 8, 100, 127]


def types_of(op):
    return [t for t in (dtypes.bool, dtypes.int8, dtypes.float32) if t in op.accepts]


def computed(op, dtype, *values):
    result = op.result(*[dtype] * len(values)) if op.result else dtype
    return element_function(op, dtypes.bool if result is dtypes.bool else dtype, dtype)(*values)


def same(x, y):
    return (x == y and math.copysign(1, x) == math.copysign(1, y)) or (x != x and y != y)


# --- the table ---------------------------------------------------------------------------------


@pytest.mark.parametrize("op", TABLE, ids=lambda op: op.name)
def test_an_op_stays_itself_through_a_pickle(op):
    assert op is pickle.loads(pickle.dumps(op)) is by_name(op.name)


@pytest.mark.parametrize("op", TABLE, ids=lambda op: op.name)
def test_an_op_says_what_it_does(op):
    assert op.doc.endswith(".")
    assert repr(op) == op.name.upper()


@pytest.mark.parametrize("op", [op for op in MEANT if op.commutes], ids=lambda op: op.name)
def test_ops_that_commute_do(op):
    for dtype in types_of(op):
        for x, y in itertools.product(samples(dtype), repeat=2):
            assert same(computed(op, dtype, x, y), computed(op, dtype, y, x)), (dtype, x, y)


@pytest.mark.parametrize("op", [op for op in MEANT if op.associates], ids=lambda op: op.name)
def test_ops_that_associate_do_on_integers(op):
    """On floats sums and products do not, which is why no law regroups them."""
    for dtype in [t for t in types_of(op) if t.is_integral]:
        for x, y, z in itertools.product(samples(dtype), repeat=3):
            left = computed(op, dtype, computed(op, dtype, x, y), z)
            assert left == computed(op, dtype, x, computed(op, dtype, y, z))


@pytest.mark.parametrize("op", [op for op in MEANT if op.identity], ids=lambda op: op.name)
def test_the_identity_changes_nothing(op):
    for dtype in types_of(op):
        for x in samples(dtype):
            result = computed(op, dtype, op.identity(dtype), x)
            assert same(result, x) or (op is ops.ADD and x == result == 0)  # 0.0 + -0.0 is 0.0


@pytest.mark.parametrize("op", [o for o in MEANT if dtypes.float32 in o.accepts and o.operands], ids=lambda o: o.name)
def test_no_value_of_a_float_raises(op):
    for dtype in FLOATS:
        for values in itertools.product(SPECIAL, repeat=op.operands):
            if op is not ops.WHERE:
                computed(op, dtype, *values)


@pytest.mark.parametrize(
    "op", [op for op in MEANT if dtypes.int8 in op.accepts and op.operands == 2], ids=lambda o: o.name
)
def test_no_value_of_an_integer_raises(op):
    for x, y in itertools.product(range(-128, 128), repeat=2):
        if y or op not in (ops.CDIV, ops.CMOD):
            assert dtypes.int8.min <= computed(op, dtypes.int8, x, y) <= dtypes.int8.max


# --- what some ops mean ------------------------------------------------------------------------


def test_integer_division_floors_and_never_faults():
    for x, y in itertools.product(range(-128, 128), repeat=2):
        quotient, rest = (computed(op, dtypes.int8, x, y) for op in (ops.FLOORDIV, ops.MOD))
        assert (quotient, rest) == ((0, 0) if y == 0 else (dtypes.int8.round(x // y), x % y))
    assert -128 == computed(ops.FLOORDIV, dtypes.int8, -128, -1)


@pytest.mark.parametrize("op", [ops.MAX, ops.MIN], ids=lambda op: op.name)
def test_nan_propagates_and_zeros_are_ordered(op):
    assert all(math.isnan(computed(op, dtypes.float32, *v)) for v in ((math.nan, 1.0), (1.0, math.nan)))
    assert same(0.0 if op is ops.MAX else -0.0, computed(op, dtypes.float32, 0.0, -0.0))


@given(st.floats(), st.floats())
def test_division_is_that_of_ieee_754(x, y):
    with np.errstate(all="ignore"):
        expected = float(np.float64(x) / np.float64(y))
    assert same(expected, computed(ops.DIV, dtypes.float64, x, y))


@given(st.floats(), st.floats(), st.floats())
def test_a_fused_multiply_add_of_special_values_is_that_of_the_parts(x, y, z):
    if all(map(math.isfinite, (x, y, z))):
        return
    assert same(x * y + z, computed(ops.FMA, dtypes.float64, x, y, z))


UNARY = [ops.SQRT, ops.EXP, ops.EXP2, ops.LOG, ops.LOG2, ops.SIN, ops.COS, ops.TAN, ops.TANH, ops.FLOOR, ops.TRUNC]


@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
@given(st.floats())
def test_functions_agree_with_numpy_on_every_float(op, x):
    with np.errstate(all="ignore"):
        expected = float(getattr(np, op.name)(np.float64(x)))
    result = computed(op, dtypes.float64, x)
    np.testing.assert_allclose(result, expected, rtol=4e-16, atol=0)
    assert math.copysign(1, result) == math.copysign(1, expected) or result != result


@given(st.floats())
def test_round_goes_to_the_even_neighbour(x):
    assert same(float(np.round(np.float64(x))), computed(ops.ROUND, dtypes.float64, x))


@given(st.floats(), st.floats())
def test_powers_agree_with_numpy(x, y):
    with np.errstate(all="ignore"):
        expected = float(np.float64(x) ** np.float64(y))
    np.testing.assert_allclose(computed(ops.POW, dtypes.float64, x, y), expected, rtol=4e-16, atol=0)


@pytest.mark.parametrize("x", SPECIAL)
@pytest.mark.parametrize("y", SPECIAL)
def test_powers_of_special_values_follow_ieee_754(x, y):
    with np.errstate(all="ignore"):
        expected = float(np.float64(x) ** np.float64(y))
    np.testing.assert_equal(computed(ops.POW, dtypes.float64, x, y), expected)


@pytest.mark.parametrize(
    ("counter", "key", "bits"),
    [
        (0, 0, (0x6B200159, 0x99BA4EFE)),
        ((1 << 64) - 1, (1 << 64) - 1, (0x1CB996FC, 0xBB002BE7)),
        (0x85A308D3_243F6A88, 0x03707344_13198A2E, (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_random_bits_are_the_published_ones(counter, key, bits):
    """The known answers of Random123 for threefry2x32 with 20 rounds."""
    assert bits[0] | bits[1] << 32 == computed(ops.THREEFRY, dtypes.uint64, counter, key)
