"""The small builders: bits that are only reinterpreted, and floats that hold integers."""

import numpy as np
import pytest

from float_samples import processor
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.lower.build import absolute, bitcast, flip_sign, is_vector, sign_of, small_integer
from lazulite.lower.decompose import decompose
from numpy_oracle import evaluate, leaf


def test_reinterpreting_back_and_forth_leaves_the_value():
    x = leaf(dtypes.float32)

    assert bitcast(bitcast(x, dtypes.uint32), dtypes.float32) is x


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=repr)
def test_a_size_and_a_sign_make_the_value_again(dtype):
    x = leaf(dtype)
    values = np.array([1.5, -1.5, 0.0, -0.0, np.inf, -np.inf], dtype.name)

    found = evaluate(flip_sign(absolute(x), sign_of(x)), {x: values})

    assert list(map(repr, values)) == list(map(repr, found))


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.int32, dtypes.uint32], ids=repr)
def test_a_float_that_holds_an_integer_becomes_it(dtype):
    x = leaf(dtypes.float64)
    values = np.array([0, 1, 77, 127, dtype.min], np.float64)

    assert list(values) == list(evaluate(decompose(small_integer(x, dtype), processor), {x: values}))


def test_only_lanes_make_a_vector():
    extent = UOp.const(dtypes.index, 8)
    loop, lane = (UOp(ops.RANGE, dtypes.index, (extent,), ((0,), kind)) for kind in ("loop", "lane"))

    assert (False, True) == (is_vector(loop + 1), is_vector(loop + lane))
