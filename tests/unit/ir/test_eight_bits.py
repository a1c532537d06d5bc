"""A9: floats of 8 bits: each code and each rounding as ml_dtypes has them, in the table, interpreted and compiled."""

from __future__ import annotations

import numpy as np
import pytest

from lazulite import Tensor, dtypes
from lazulite.ir.dtype import EIGHT_BITS, promote

ml_dtypes = pytest.importorskip("ml_dtypes", reason="notimpl: ml_dtypes is not installed here")

NAMES = {
    dtypes.fp8e4m3: ml_dtypes.float8_e4m3fn,
    dtypes.fp8e5m2: ml_dtypes.float8_e5m2,
    dtypes.fp8e4m3fnuz: ml_dtypes.float8_e4m3fnuz,
    dtypes.fp8e5m2fnuz: ml_dtypes.float8_e5m2fnuz,
}
KINDS = pytest.mark.parametrize("kind", sorted(NAMES, key=lambda t: t.number), ids=lambda t: t.name)


def values_of(kind):
    return np.arange(256, dtype=np.uint8).view(NAMES[kind]).astype(np.float64)


def samples(kind):
    """Random floats, every value of the type, the points halfway between two, and their neighbours."""
    known = values_of(kind)
    known = np.unique(known[np.isfinite(known)])
    middles = (known[1:] + known[:-1]) / 2
    random = np.random.default_rng(1).normal(size=2000) * 2.0 ** np.random.default_rng(2).integers(-20, 18, 2000)
    edges = np.float64(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1e30, 448, 464, 465, 480, 240, 248, 57344, 61440]
    )
    plain = np.concatenate([known, middles, random, edges, -edges]).astype(np.float32)
    return np.concatenate([plain, np.nextafter(plain, np.float32(np.inf)), np.nextafter(plain, np.float32(-np.inf))])


def same(own, other):
    own, other = np.float64(own), np.float64(other)
    return np.array_equal(own, other, equal_nan=True) and np.array_equal(
        np.signbit(own[own == 0]), np.signbit(other[own == 0])
    )


def test_there_are_four():
    assert set(NAMES) == EIGHT_BITS


@KINDS
def test_a_code_stands_for_what_it_stands_for_in_ml_dtypes(kind):
    own = [kind.from_bits(code) for code in range(256)]
    assert same(own, values_of(kind))
    assert [kind.to_bits(v) for v in own if v == v] == [code for code, v in enumerate(own) if v == v]
    assert kind.from_bits(kind.to_bits(float("nan"))) != kind.from_bits(kind.to_bits(float("nan")))


@KINDS
def test_a_float_rounds_as_in_ml_dtypes(kind):
    with np.errstate(all="ignore"):
        given = samples(kind)
        expected = given.astype(NAMES[kind]).astype(np.float64)
    assert same([kind.round(float(x)) for x in given], expected)


@KINDS
def test_limits_are_those_of_ml_dtypes(kind):
    info = ml_dtypes.finfo(NAMES[kind])
    assert (kind.largest, kind.epsilon) == (float(info.max), float(info.eps))


@KINDS
@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_conversions_both_ways_are_exact_on_every_device(kind, device):
    every = Tensor(np.arange(256, dtype=np.uint8), device=device).bitcast(kind)
    assert same(every.float().numpy(), values_of(kind))
    with np.errstate(all="ignore"):
        given = samples(kind)[:: 1 if device == "CPU" else 20]
        expected = given.astype(NAMES[kind]).astype(np.float64)
    assert same(Tensor(given, device=device).cast(kind).float().numpy(), expected)


@KINDS
def test_arithmetic_is_that_of_float32_rounded(kind):
    rng = np.random.default_rng(3)
    x, y = [rng.normal(size=200).astype(NAMES[kind]) for _ in range(2)]
    a, b = Tensor(x), Tensor(y)
    assert (a.dtype, (a + b).dtype, (a + 1.5).dtype) == (kind, kind, kind)
    wide = x.astype(np.float32), y.astype(np.float32)
    for own, other in (
        (a + b, wide[0] + wide[1]),
        (a * b, wide[0] * wide[1]),
        (-a, -wide[0]),
        (a.maximum(b), np.maximum(*wide)),
    ):
        assert same(own.numpy(), other.astype(NAMES[kind]).astype(np.float32))
    assert (a < b).tolist() == (wide[0] < wide[1]).tolist()


@KINDS
def test_sums_and_products_of_matrices_accumulate_in_float32(kind):
    rng = np.random.default_rng(4)
    x, y = [(rng.normal(size=(40, 40)) * 0.3).astype(NAMES[kind]) for _ in range(2)]
    exact = x.astype(np.float64) @ y.astype(np.float64)
    got = (Tensor(x) @ Tensor(y)).numpy()
    one = exact.astype(np.float32).astype(NAMES[kind]).astype(np.float64)
    assert np.max(np.abs(got - one) / np.maximum(np.abs(one), 2.0**-6)) <= kind.epsilon
    assert same(Tensor(x).max(1).numpy(), x.astype(np.float32).max(1))
    ones = Tensor(np.ones(300, NAMES[kind]))
    assert ones.mean().item() == 1.0


@KINDS
def test_lists_arrays_and_printing_show_the_values(kind):
    x = Tensor([1.0, -0.5, 1000000.0], dtype=kind)
    assert x.tolist()[:2] == [1.0, -0.5]
    assert f"dtype={kind.name}" in repr(x)
    array = np.float32([1.0, -0.5]).astype(NAMES[kind])
    assert Tensor(array).numpy().astype(NAMES[kind]).tobytes() == array.tobytes()
    assert Tensor(x.numpy(), dtype=kind).bitcast("uint8").tolist()[:2] == x.bitcast("uint8").tolist()[:2]


def test_promotion_is_that_of_tinygrad():
    e4m3, e5m2 = dtypes.fp8e4m3, dtypes.fp8e5m2
    assert promote(dtypes.int64, e4m3) is e4m3
    assert promote(e4m3, dtypes.float16) is dtypes.float16
    assert promote(e4m3, dtypes.bfloat16) is dtypes.bfloat16
    assert promote(e4m3, e5m2) is dtypes.float16
    assert promote(dtypes.int64, dtypes.uint64) is dtypes.default_float
