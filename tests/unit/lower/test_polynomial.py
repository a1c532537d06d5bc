"""Polynomials, nearest integers and powers of two in float arithmetic."""

import numpy as np
import pytest

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import toposort
from lazulite.lower.polynomial import Floats, clamped, floats
from numpy_oracle import evaluate, leaf

TYPES = pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=repr)


@TYPES
def test_a_polynomial_is_multiply_adds_where_they_are_instructions(dtype):
    x = leaf(dtype)
    fused, plain = (Floats(dtype, fused).polynomial(x, (1.0, 2.0, 3.0)) for fused in (True, False))

    assert [ops.FMA] * 2 == [node.op for node in toposort(fused) if node.src]
    assert ops.FMA not in {node.op for node in toposort(plain)}
    assert [17.0, 6.0] == list(evaluate(plain, {x: np.array([2.0, 1.0])}))


@TYPES
def test_the_word_of_a_rounded_number_scales_by_its_power_of_two(dtype):
    f, x = Floats(dtype, False), leaf(dtype)
    values = np.arange(-140.0, 127.0)

    whole = f.rounded(x)

    assert list(values) == list(evaluate(whole.value, {x: values + 0.25}))
    assert list(np.ldexp(1.5, values.astype(int))) == list(evaluate(f.scaled(f.const(1.5), whole), {x: values}))


def test_clamping_keeps_nan():
    x = leaf(dtypes.float32)

    found = evaluate(clamped(x, -1.0, 2.0), {x: np.array([-5.0, 0.5, 5.0, np.nan])})

    assert [-1.0, 0.5, 2.0, "nan"] == [*found[:3], str(found[3])]


def test_the_target_says_whether_multiply_add_is_one_instruction():
    assert (True, False) == tuple(floats(dtypes.float32, lambda node, has=has: has).fused for has in (True, False))
