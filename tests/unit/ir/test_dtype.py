import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lazulite.ir.dtype import ALL, EIGHT_BITS, STORED, by_name, dtypes, names, promote

NUMPY_FLOATS = {dtypes.float16: np.float16, dtypes.float32: np.float32, dtypes.float64: np.float64}
FLOATS = [t for t in STORED if t.is_float]
INTS = [t for t in STORED if t.is_int]
types = st.sampled_from(STORED)


def bits_of(value):
    return np.float64(value).tobytes()


def nearest_in(dtype, value):
    """Round to nearest even by exact arithmetic: the definition, however slow."""
    beyond = math.copysign(math.inf, value) if dtype.specials == "ieee" else math.nan
    if not math.isfinite(value):
        return beyond
    if value == 0:
        return dtype.round(0.0) if dtype.specials == "unsigned" else value
    exact, exponent = Fraction(abs(value)), math.frexp(value)[1] - 1
    exponent = max(exponent, 1 - dtype.bias)
    quantum = Fraction(2) ** (exponent - dtype.mantissa_bits)
    rounded = round(exact / quantum) * quantum  # `round` of a Fraction is to even
    if rounded > Fraction(dtype.largest):
        return beyond
    return 0.0 if rounded == 0 and dtype.specials == "unsigned" else math.copysign(float(rounded), value)


# --- rounding ----------------------------------------------------------------------------------


@given(st.sampled_from(list(NUMPY_FLOATS)), st.floats())
@example(dtypes.float16, 65520.0)
@example(dtypes.float16, 65519.99999999999)
@example(dtypes.float32, 3.4028235677973366e38)
@example(dtypes.float32, 1e-46)
def test_floats_round_as_numpy_does(dtype, value):
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        expected = float(NUMPY_FLOATS[dtype](value))
    rounded = dtype.round(value)
    assert (math.isnan(expected) and math.isnan(rounded)) or bits_of(expected) == bits_of(rounded)


@given(st.sampled_from(FLOATS), st.floats(allow_nan=False))
@example(dtypes.bfloat16, 3.3961775292304957e38)
@example(dtypes.bfloat16, 3.39617752923049e38)
@example(dtypes.bfloat16, 1.0039062500000002)
def test_floats_round_once_to_nearest_even(dtype, value):
    assert bits_of(nearest_in(dtype, value)) == bits_of(dtype.round(value))


def test_bfloat16_rounds_as_ml_dtypes_does():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.random.default_rng(0).integers(0, 1 << 32, 20000, dtype=np.uint32).view(np.float32)
    values = values[~np.isnan(values)]
    with np.errstate(all="ignore"):
        expected = values.astype(ml_dtypes.bfloat16).astype(np.float64)
    assert expected.tolist() == [dtypes.bfloat16.round(float(v)) for v in values]


@given(st.sampled_from(FLOATS), st.integers(-(1 << 1100), 1 << 1100))
@example(dtypes.float32, (1 << 53) + (1 << 29) + 1)  # halfway in float32 only if it went by way of a double
def test_integers_of_any_size_round_once(dtype, value):
    exact = Fraction(value)
    rounded = dtype.round(value)
    if not math.isfinite(rounded):
        assert abs(exact) > Fraction(dtype.largest)
        assert (rounded > 0) == (value > 0) or dtype.specials != "ieee"
    else:
        assert abs(Fraction(rounded) - exact) <= max(abs(exact), 1) * Fraction(2) ** -dtype.mantissa_bits
    if dtype is dtypes.float64 and math.isfinite(rounded):
        beside = [math.nextafter(rounded, way) for way in (-math.inf, math.inf)]
        assert all(math.isinf(v) or abs(Fraction(rounded) - exact) <= abs(Fraction(v) - exact) for v in beside)


@given(st.sampled_from(INTS), st.integers(-(1 << 70), 1 << 70))
def test_integers_wrap_around(dtype, value):
    rounded = dtype.round(value)
    assert dtype.min <= rounded <= dtype.max and (rounded - value) % (1 << dtype.bits) == 0


# --- conversion --------------------------------------------------------------------------------


@given(st.sampled_from(INTS), st.floats())
@example(dtypes.int64, 9.223372036854775807e18)
@example(dtypes.uint8, -0.9)
def test_a_cast_of_a_float_to_an_integer_saturates_and_nan_gives_zero(dtype, value):
    expected = 0 if math.isnan(value) else max(dtype.min, min(dtype.max, int(max(-1e30, min(1e30, value)))))
    assert expected == dtype.convert(value)
    assert isinstance(dtype.convert(value), int)


@given(st.one_of(st.floats(), st.integers(), st.booleans()))
def test_a_cast_to_bool_asks_whether_the_value_is_not_zero(value):
    assert (value != 0) is dtypes.bool.convert(value)


# --- bits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [t for t in STORED if t.bits <= 16], ids=lambda t: t.name)
def test_every_bit_pattern_of_a_narrow_type_is_one_value(dtype):
    for bits in range(1 << dtype.bits):
        value = dtype.from_bits(bits)
        assert value != value or bits == dtype.to_bits(value)
        assert value != value or value == dtype.round(value)


@given(st.sampled_from([t for t in STORED if t.bits > 16]), st.data())
def test_bits_and_values_of_wide_types_go_both_ways(dtype, data):
    bits = data.draw(st.integers(0, (1 << dtype.bits) - 1))
    value = dtype.from_bits(bits)
    assert value != value or bits == dtype.to_bits(value)


# --- promotion ---------------------------------------------------------------------------------


@given(types, types)
def test_promotion_is_symmetric(a, b):
    assert promote(a, b) is promote(b, a)


@given(types)
def test_promotion_with_itself_changes_nothing(a):
    assert a is promote(a, a) is promote(a)


@given(types, types, types)
def test_promotion_of_many_does_not_depend_on_their_order(a, b, c):
    assert promote(a, b, c) is promote(c, a, b) is promote(b, c, a)


@given(types, types, types)
def test_promotion_is_associative_away_from_mixed_signs_of_64_bits(a, b, c):
    """uint64 has no integer above it and a signed one: they go to a float, and a third type may come too late."""
    if dtypes.uint64 in (a, b, c) and any(t.kind == "int" for t in (a, b, c)):
        return
    if len(EIGHT_BITS & {a, b, c}) > 1:  # two formats of 8 bits meet in one of two floats of 16
        return
    assert promote(promote(a, b), c) is promote(a, promote(b, c))


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("bool", "int8", "int8"), ("int8", "uint8", "int16"), ("int32", "uint32", "int64"),
        ("int64", "float16", "float16"), ("float16", "bfloat16", "float32"), ("int64", "bfloat16", "bfloat16"),
        ("float32", "float64", "float64"), ("uint64", "float16", "float16"),
    ],
)  # fmt: skip
def test_promotion_meets_where_the_lattice_of_jax_does(a, b, result):
    assert by_name(result) is promote(by_name(a), by_name(b))


def test_the_promotion_table_shows_every_pair():
    head, *rows = [line.split() for line in dtypes.promotion_table().splitlines()]
    for name, *cells in rows:
        assert [by_name(cell) for cell in cells] == [promote(by_name(name), by_name(other)) for other in head]


# --- names and identity ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL, ids=lambda t: t.name)
def test_a_type_stays_itself_through_copies_and_pickles(dtype):
    assert dtype is copy.deepcopy(dtype) is copy.copy(dtype) is pickle.loads(pickle.dumps(dtype)) is by_name(dtype.name)


def test_every_alias_names_a_type():
    assert {"half", "float", "long"} <= set(names())
    assert all(getattr(dtypes, name) is by_name(name) for name in names())


@pytest.mark.parametrize("dtype", list(NUMPY_FLOATS), ids=lambda t: t.name)
def test_float_limits_are_those_of_numpy(dtype):
    info = np.finfo(NUMPY_FLOATS[dtype])
    assert (float(info.max), float(info.eps)) == (dtype.largest, dtype.epsilon)
