"""Division by constants through multiplication (A11) and division of INDEX expressions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from float_samples import array, assert_same, processor, samples
from lazulite.ir import ops
from lazulite.ir.dtype import INTS, dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.lower.constant_division import floor_quotient, reciprocal
from lazulite.lower.decompose import decompose
from numpy_oracle import evaluate, leaf

TYPES = sorted(INTS, key=lambda t: t.number)
LANE = UOp(ops.RANGE, dtypes.index, (UOp.const(dtypes.index, 16),), ((0,), "lane"))


def lanes(dtype):
    return UOp(ops.LOAD, dtype, (UOp(ops.PARAM, dtype, (), (0, (16,), "CPU")), LANE))


def divisors(dtype):
    return st.integers(int(dtype.min), int(dtype.max)) | st.integers(max(-40, int(dtype.min)), 40)


@given(st.data(), st.sampled_from(TYPES), st.booleans())
def test_quotient_and_remainder_equal_pythons(data, dtype, vector):
    """A11: every width, signed and unsigned, positive, negative, zero and power-of-two divisors."""
    divisor = data.draw(divisors(dtype))
    x = lanes(dtype) if vector else leaf(dtype)
    multiples = [dtype.round(divisor * k + d) for k in (-3, -1, 1, 2, 1000) for d in (-1, 0, 1)]
    values = array(dtype, samples(dtype, 60) + multiples)

    for op in (ops.FLOORDIV, ops.MOD):
        found = evaluate(decompose(UOp.apply(op, x, UOp.const(dtype, divisor)), processor), {x: values})
        means = [dtype.round(op.meaning(int(value), divisor)) for value in values]
        assert_same(array(dtype, means), found, values)


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 20), st.integers(1, 1 << 20))
def test_bounds_of_the_dividend_are_used_and_kept(low, extent, divisor):
    x = leaf(dtypes.int64, 0, low, low + extent)
    values = np.array([low, low + extent, low + extent // 2, low + extent // divisor * divisor])

    found = evaluate(decompose(floor_quotient(x, divisor), processor), {x: values})

    assert_same(values // divisor, found, values)


@given(st.integers(2, 1 << 32), st.integers(1, 1 << 32))
def test_the_reciprocal_is_exact_up_to_its_bound(divisor, largest):
    factor, shift = reciprocal(divisor, largest)

    for value in {largest, largest // divisor * divisor, largest // divisor * divisor - 1, largest // 2} - {-1}:
        assert value // divisor == value * factor >> shift


@pytest.mark.parametrize("dtype", [dtypes.uint32, dtypes.int32, dtypes.uint64, dtypes.int64], ids=repr)
def test_a_vector_is_never_divided(dtype):
    root = decompose(lanes(dtype) // 7, processor)

    assert {ops.CDIV, ops.DIV}.isdisjoint({node.op for node in toposort(root)})


@pytest.mark.parametrize("dtype", [dtypes.uint64, dtypes.int64], ids=repr)
def test_one_lane_of_64_bits_is_left_to_the_scalar_code_generator(dtype):
    assert ops.CDIV in {node.op for node in toposort(decompose(leaf(dtype) // 7, processor))}


@given(st.integers(-1000, 1000), st.integers(0, 1000), st.integers(-50, 50))
def test_index_quotient_and_remainder_round_down(low, extent, divisor):
    x, y = leaf(dtypes.index, 0, low, low + extent), UOp.const(dtypes.index, divisor)
    values = np.arange(low, low + extent + 1)

    for op in (ops.FLOORDIV, ops.MOD):
        found = evaluate(decompose(UOp.apply(op, x, y), lambda node: False), {x: values})
        assert_same(np.array([op.meaning(int(v), divisor) for v in values]), found, values)


@given(st.integers(-60, 60), st.integers(0, 50), st.integers(-9, 9), st.integers(0, 9))
def test_index_division_by_a_variable_rounds_down(low, extent, least, more):
    x, y = leaf(dtypes.index, 0, low, low + extent), leaf(dtypes.index, 1, least, least + more)
    left, right = (
        grid.ravel() for grid in np.meshgrid(np.arange(low, low + extent + 1), np.arange(least, least + more + 1))
    )

    for op in (ops.FLOORDIV, ops.MOD):
        found = evaluate(decompose(UOp.apply(op, x, y), _keeps_index_arithmetic), {x: left, y: right})
        expected = np.array([op.meaning(int(a), int(b)) for a, b in zip(left, right, strict=True)])
        assert_same(expected, found, left, right)


def _keeps_index_arithmetic(node):
    return node.op in (ops.MAX, ops.EQ, ops.LT, ops.WHERE, ops.ADD, ops.MUL, ops.CDIV, ops.CMOD)


def test_an_index_without_known_bounds_is_divided_by_cases():
    x = leaf(dtypes.index)
    values = np.array([-(1 << 40), -7, -1, 0, 1, 6, 1 << 40])

    assert_same(values // 7, evaluate(decompose(x // 7, lambda node: False), {x: values}))
