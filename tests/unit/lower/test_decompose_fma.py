"""The multiply-add without an instruction: one rounding, for every float."""

import random

import pytest

from float_samples import array, assert_same, processor, samples
from lazulite.ir import ops
from lazulite.ir.dtype import FLOATS, dtypes
from lazulite.ir.uop import UOp
from lazulite.lower.decompose import decompose
from numpy_oracle import evaluate, leaf


def triples(dtype, count):
    """Any operands, and addends that nearly cancel the product or are far below its last place."""
    rng, base = random.Random(3), samples(dtype, 1000)
    for _ in range(count):
        x, y, z = (rng.choice(base) for _ in range(3))
        if rng.random() < 0.6:
            z = dtype.round(-x * y * (1 + rng.choice((0, 1, 2.0**-dtype.mantissa_bits, 2.0**-30, -1 + 2.0**-40))))
        yield x, y, z


@pytest.mark.parametrize("dtype", sorted(FLOATS, key=lambda t: t.number), ids=repr)
def test_the_result_is_the_exact_one_rounded_once(dtype):
    operands = [leaf(dtype, slot) for slot in range(3)]
    columns = list(zip(*triples(dtype, 8000), strict=True))

    root = decompose(UOp.apply(ops.FMA, *operands), processor)
    found = evaluate(root, {x: array(dtype, column) for x, column in zip(operands, columns, strict=True)})

    means = [dtype.round(ops.FMA.meaning(*row)) for row in zip(*columns, strict=True)]
    assert_same(array(dtype, means), found, *columns)


def test_subnormal_doubles_are_rounded_at_their_own_last_place():
    operands = [leaf(dtypes.float64, slot) for slot in range(3)]
    rng = random.Random(4)
    rows = [
        (rng.uniform(1, 2) * 2.0**-k, rng.uniform(1, 2) * 2.0 ** (k - 1072), rng.uniform(-4, 4) * 2.0**-1073)
        for k in (rng.randint(400, 700) for _ in range(4000))
    ]
    columns = [list(column) for column in zip(*rows, strict=True)]

    root = decompose(UOp.apply(ops.FMA, *operands), processor)
    found = evaluate(root, {x: array(dtypes.float64, c) for x, c in zip(operands, columns, strict=True)})

    means = [dtypes.float64.round(ops.FMA.meaning(*row)) for row in rows]
    assert_same(array(dtypes.float64, means), found, *columns)


def test_integers_wrap():
    x, y, z = (leaf(dtypes.int32, slot) for slot in range(3))
    columns = [[1 << 30, 7], [6, -3], [5, 1]]

    found = evaluate(decompose(UOp.apply(ops.FMA, x, y, z), processor),
                     {v: array(dtypes.int32, c) for v, c in zip((x, y, z), columns, strict=True)})  # fmt: skip

    assert [dtypes.int32.round((1 << 30) * 6 + 5), -20] == list(found)
