"""half and bfloat16: every operation rounds to its own type, as if computed exactly and rounded once."""

import math
import random

import numpy as np
import pytest

from float_samples import array, assert_same, cost, processor, samples
from lazulite.ir import ops
from lazulite.ir.dtype import NARROW, dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.lower.decompose import decompose
from lazulite.lower.decompose_narrow import widened
from numpy_oracle import evaluate, leaf

OPERATIONS = (ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.SQRT, ops.NEG, ops.MAX, ops.MIN, ops.LT, ops.LE, ops.EQ, ops.NE,
              ops.FLOOR, ops.TRUNC, ops.ROUND)  # fmt: skip


@pytest.mark.parametrize("dtype", sorted(NARROW, key=lambda t: t.number), ids=repr)
@pytest.mark.parametrize("op", OPERATIONS, ids=repr)
def test_an_operation_rounds_once(op, dtype):
    operands = [leaf(dtype, slot) for slot in range(op.operands)]
    rng, base = random.Random(1), samples(dtype, 1500)
    columns = [[rng.choice(base) for _ in range(6000)] for _ in operands]

    root = decompose(UOp.apply(op, *operands), processor)
    found = evaluate(root, {x: array(dtype, column) for x, column in zip(operands, columns, strict=True)})

    means = [root.dtype.round(op.meaning(*row)) for row in zip(*columns, strict=True)]
    assert_same(array(root.dtype, means), found, *columns)


def test_a_function_is_that_of_float32_rounded():
    """B052: exp(12) in bfloat16 is 162816."""
    x = leaf(dtypes.bfloat16)

    found = evaluate(decompose(UOp.apply(ops.EXP, x), processor), {x: np.array([12.0, 0.0, -1.0])})

    assert [162816.0, 1.0, dtypes.bfloat16.round(math.exp(-1.0))] == list(found)


def test_wide_operations_are_left_alone():
    x = leaf(dtypes.float32)

    assert None is widened(x + x)


def test_between_two_bfloat16_operations_the_value_never_leaves_its_32_bits():
    x = leaf(dtypes.bfloat16)
    two = decompose((x + x) * x, processor)

    assert 2 == sum(node.op is ops.CAST for node in toposort(two))
    assert cost(two) < 2 * cost(decompose(x + x, processor))
