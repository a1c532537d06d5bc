"""Integer division, remainder, shifts and complement (A11, B043): Python's integers are the reference."""

import numpy as np
import pytest

from float_samples import array, assert_same, processor, samples
from lazulite.ir import ops
from lazulite.ir.dtype import INTS, dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.lower.decompose import decompose
from numpy_oracle import evaluate, leaf

TYPES = sorted(INTS, key=lambda t: t.number)
OPERATIONS = [ops.FLOORDIV, ops.MOD, ops.SHL, ops.SHR]
LANE = UOp(ops.RANGE, dtypes.index, (UOp.const(dtypes.index, 16),), ((0,), "lane"))


def lanes(dtype, slot):
    """A variable with several lanes."""
    return UOp(ops.LOAD, dtype, (UOp(ops.PARAM, dtype, (), (slot, (16,), "CPU")), LANE))


def pairs(dtype):
    """Values of a type combined with small and large ones, 0 and -1 among them."""
    left, right = samples(dtype, 150), samples(dtype, 10, seed=1) + [v for v in range(-3, 12) if v >= dtype.min]
    grid = np.meshgrid(array(dtype, left), array(dtype, right))
    return grid[0].ravel(), grid[1].ravel()


@pytest.mark.parametrize("variable", [leaf, lanes], ids=["scalar", "vector"])
@pytest.mark.parametrize("dtype", TYPES, ids=repr)
@pytest.mark.parametrize("op", OPERATIONS, ids=repr)
def test_every_pair_gives_what_the_operation_means(op, dtype, variable):
    """A11, B043: also x // 0, x % 0, MIN // -1 and shifts by the width or more, and nothing traps."""
    x, y = variable(dtype, 0), variable(dtype, 1)
    left, right = pairs(dtype)

    found = evaluate(decompose(UOp.apply(op, x, y), processor), {x: left, y: right})

    means = [dtype.round(op.meaning(int(a), int(b))) for a, b in zip(left, right, strict=True)]
    assert_same(array(dtype, means), found, left, right)


def test_a_vector_of_32_bit_quotients_uses_no_integer_division():
    root = decompose(lanes(dtypes.int32, 0) // lanes(dtypes.int32, 1), processor)

    assert ops.CDIV not in {node.op for node in toposort(root)}


def test_a_shift_by_a_count_in_range_is_left_alone():
    x = leaf(dtypes.uint32)
    root = x << (leaf(dtypes.uint32, 1) & 31)

    assert decompose(root, processor) is root


@pytest.mark.parametrize("dtype", [*TYPES, dtypes.bool], ids=repr)
def test_complement_flips_every_bit(dtype):
    x = leaf(dtype)
    values = array(dtype, samples(dtype, 50))

    assert_same(np.invert(values), evaluate(decompose(~x, processor), {x: values}))
