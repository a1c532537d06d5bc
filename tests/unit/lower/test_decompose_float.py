"""Maximum, minimum, negation and rounding where no instruction keeps the language's rules."""

import math
import random

import pytest

from float_samples import array, assert_same, modern_processor, processor, samples
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


@pytest.mark.parametrize("native", [processor, modern_processor])
@pytest.mark.parametrize("dtype", WIDE, ids=repr)
def test_a_product_with_a_power_of_two_is_rounded_once(dtype, native):
    x, n = leaf(dtype, 0), leaf(dtype, 1)
    rng, base = random.Random(3), samples(dtype, 3000)
    left = [*base, *[dtype.from_bits(rng.getrandbits(dtype.mantissa_bits)) for _ in range(1000)], 1.0, math.nan]
    right = [float(rng.choice((1, 2)) * rng.randint(-1200, 1200) // rng.choice((1, 8))) + rng.choice((0.0, 0.25))
             for _ in left]  # fmt: skip
    right[-2] = math.nan

    found = evaluate(decompose(UOp.apply(ops.SCALEB, x, n), native), {x: array(dtype, left), n: array(dtype, right)})

    means = [dtype.round(ops.SCALEB.meaning(a, b)) for a, b in zip(left, right, strict=True)]
    assert_same(array(dtype, means), found, left, right)
