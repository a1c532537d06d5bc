"""A choice between a value and what changes nothing is a value under a gate."""

import pytest

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.gates import split_gate
from support.kernels import load, loop, param

X = load(param(0, 8), loop(0, 8))
NEAR, FAR = loop(0, 8) < 5, 2 < loop(0, 8)


def test_a_plain_value_has_no_gate():
    assert (None, X) == split_gate(ops.ADD, X)


@pytest.mark.parametrize("op", [ops.ADD, ops.MUL, ops.MAX, ops.MIN], ids=repr)
def test_a_choice_with_the_identity_is_a_gate(op):
    assert (NEAR, X) == split_gate(op, NEAR.where(X, UOp.const(dtypes.float32, op.identity(dtypes.float32))))


def test_gates_in_a_row_hold_together():
    assert (FAR & NEAR, X) == split_gate(ops.ADD, FAR.where(NEAR.where(X, 0.0), 0.0))


def test_another_number_is_a_value_like_any():
    value = NEAR.where(X, 1.0)

    assert (None, value) == split_gate(ops.ADD, value)
