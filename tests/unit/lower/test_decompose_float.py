"""Maximum, minimum, negation and rounding where no instruction keeps the language's rules."""

import random

import pytest

from float_samples import array, assert_same, processor, samples
from lazulite.ir import ops
from lazulite.ir.dtype import INTS, dtypes
from lazulite.ir.uop import UOp
from lazulite.lower.decompose import decompose
from numpy_oracle import evaluate, leaf

WIDE = [dtypes.float32, dtypes.float64]


@pytest.mark.parametrize("dtype", [*WIDE, *sorted(INTS, key=lambda t: t.number), dtypes.bool], ids=repr)
@pytest.mark.parametrize("op", [ops.MAX, ops.MIN], ids=repr)
def test_maximum_and_minimum_keep_nan_and_order_zeros(op, dtype):
    x, y = leaf(dtype, 0), leaf(dtype, 1)
    rng, base = random.Random(2), samples(dtype, 300)
    left, right = ([rng.choice(base) for _ in range(3000)] for _ in range(2))
    if dtype.is_float:
        left, right = [*left, 0.0, -0.0, 0.0, -0.0], [*right, -0.0, 0.0, 0.0, -0.0]

    found = evaluate(decompose(UOp.apply(op, x, y), lambda node: node.op not in (ops.MAX, ops.MIN)),
                     {x: array(dtype, left), y: array(dtype, right)})  # fmt: skip

    means = [op.meaning(a, b) for a, b in zip(left, right, strict=True)]
    assert_same(array(dtype, means), found, left, right)


@pytest.mark.parametrize("dtype", WIDE, ids=repr)
@pytest.mark.parametrize("op", [ops.ROUND, ops.FLOOR, ops.TRUNC, ops.NEG], ids=repr)
def test_rounding_keeps_large_values_and_the_sign_of_zero(op, dtype):
    x = leaf(dtype)
    values = [*samples(dtype, 3000), 0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 2.0**23 + 1, 2.0**52 + 1]
    values = [dtype.round(value) for value in values]

    found = evaluate(decompose(UOp.apply(op, x), processor), {x: array(dtype, values)})

    assert_same(array(dtype, [dtype.round(op.meaning(value)) for value in values]), found, values)


@pytest.mark.parametrize("dtype", sorted(INTS, key=lambda t: t.number), ids=repr)
def test_the_negative_of_the_least_integer_wraps(dtype):
    x, values = leaf(dtype), samples(dtype, 50)

    found = evaluate(decompose(-x, processor), {x: array(dtype, values)})

    assert_same(array(dtype, [dtype.round(-value) for value in values]), found)
