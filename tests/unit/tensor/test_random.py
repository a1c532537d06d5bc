"""Random numbers: fixed by seed and place, uniform, exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import ArgumentError, Context, DTypeError, Tensor, dtypes
from lazulite.ir import ops


def test_a_seed_fixes_every_draw_and_draws_differ() -> None:
    """B112, A48"""
    Tensor.manual_seed(7)
    first, second = Tensor.rand(4).tolist(), Tensor.rand(4).tolist()
    Tensor.manual_seed(7)

    assert (first, second) == (Tensor.rand(4).tolist(), Tensor.rand(4).tolist())
    assert first != second
    Tensor.manual_seed(8)
    assert first != Tensor.rand(4).tolist()


def test_a_draw_does_not_depend_on_when_or_where_it_is_computed() -> None:
    """A48"""
    Tensor.manual_seed(1)
    x, y = Tensor.rand(5), Tensor.randn(5)
    late = y.tolist(), x.tolist()
    Tensor.manual_seed(1)
    z = Tensor.rand(5, device="PYTHON")

    assert late[1] == z.tolist()


def test_the_bits_are_those_of_threefry() -> None:
    """A48"""
    Tensor.manual_seed(3)
    node = Tensor.rand(2).uop
    while node.op is not ops.THREEFRY:
        node = node.src[0]
    counter, key = node.src
    start = counter.src[1].value
    bits = [ops.THREEFRY.meaning(start + i, key.value) for i in range(2)]  # type: ignore[misc, operator]
    Tensor.manual_seed(3)

    assert [(word >> 40) * 2.0**-24 for word in bits] == Tensor.rand(2).tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_floats_lie_in_the_interval_and_use_every_bit(dtype: str) -> None:
    Tensor.manual_seed(0)
    x = np.array(Tensor.rand(5000, dtype=dtype).tolist())

    assert 0.0 <= x.min() < 0.01 and 0.99 < x.max() < 1.0
    assert 0.5 == pytest.approx(x.mean(), abs=0.02)
    assert 1 / 12 == pytest.approx(x.var(), abs=0.01)


def test_uniform_takes_other_bounds() -> None:
    x = Tensor.uniform(1000, low=-2.0, high=6.0).numpy()

    assert -2.0 <= x.min() < -1.9 and 5.9 < x.max() <= 6.0


def test_normal_floats_have_mean_and_deviation() -> None:
    Tensor.manual_seed(0)
    x = Tensor.normal(20_000, mean=3.0, std=2.0).numpy()

    assert 3.0 == pytest.approx(x.mean(), abs=0.06)
    assert 2.0 == pytest.approx(x.std(), abs=0.04)
    assert 0.6827 == pytest.approx((abs(x - 3.0) < 2.0).mean(), abs=0.02)
    assert dtypes.float16 is Tensor.randn(3, dtype="float16").dtype


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**63))
def test_integers_lie_in_any_range(low: int, size: int) -> None:
    """B113"""
    high = min(low + size, 2**63)
    drawn = Tensor.randint(20, low=low, high=high, dtype="int64").tolist()

    assert all(low <= value < high for value in drawn)


def test_integers_reach_both_ends_and_are_even() -> None:
    """B113"""
    Tensor.manual_seed(0)
    values, counts = np.unique(Tensor.randint(6000, low=2**24, high=2**24 + 3).numpy(), return_counts=True)

    assert [2**24, 2**24 + 1, 2**24 + 2] == values.tolist()
    assert np.all(abs(counts - 2000) < 150)


def test_integers_are_the_wide_product_of_bits_and_size() -> None:
    Tensor.manual_seed(5)
    words = Tensor.randint(8, low=0, high=2**64, dtype="uint64").tolist()
    for size in (3, 2**32, 10**18 + 9):
        Tensor.manual_seed(5)
        drawn = Tensor.randint(8, low=0, high=size, dtype="uint64").tolist()
        assert all(abs(value - (word * size >> 64)) <= (size > 2**32) for value, word in zip(drawn, words, strict=True))


def test_draws_of_a_wrong_type_or_range_raise() -> None:
    with pytest.raises(DTypeError, match="gives integers"):
        Tensor.randint(2, dtype="float32")
    with pytest.raises(DTypeError, match="gives floats"):
        Tensor.rand(2, dtype="int32")
    with pytest.raises(ArgumentError, match="nothing from 3 to below 3"):
        Tensor.randint(2, low=3, high=3)
    with pytest.raises(OverflowError, match="int8 does not hold"):
        Tensor.randint(2, high=300, dtype="int8")


def test_initial_weights_lie_in_their_bounds() -> None:
    for name, bound in (
        ("scaled_uniform", 1 / math.sqrt(800)),
        ("glorot_uniform", math.sqrt(6 / (40 + 20))),
        ("kaiming_uniform", math.sqrt(6 / (1.0001 * 20))),
    ):
        x = getattr(Tensor, name)(40, 20).numpy()
        assert bound == pytest.approx(abs(x).max(), rel=0.02)
    assert math.sqrt(2 / (1.0001 * 20)) == pytest.approx(Tensor.kaiming_normal(100, 20).numpy().std(), rel=0.1)
    assert (0, 3) == Tensor.glorot_uniform(0, 3).shape


def test_dropout_drops_in_training_only() -> None:
    x = Tensor.ones(4000).clone()
    assert x is x.dropout(0.5)
    with Context(TRAINING=1):
        y = x.dropout(0.25).numpy()
        assert [0.0, 0.0] == Tensor([1.0, 2.0]).dropout(1.0).tolist()
        assert x is x.dropout(0.0)

    assert {0.0, np.float32(1 / 0.75)} == set(y.tolist()) | {0.0, np.float32(1 / 0.75)}
    assert 0.25 == pytest.approx((y == 0).mean(), abs=0.03)
    with pytest.raises(ArgumentError, match="a probability"):
        x.dropout(1.5)
