"""Laws of stored numbers: what is folded, what is declined and why."""

from __future__ import annotations

import math

import pytest

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.rewrite.trace import Trace
from lazulite.simplify.algebra import algebra
from lazulite.simplify.normal import normalise

X = UOp(ops.SCALAR, dtypes.float32, (), (0, None, None))
H = UOp(ops.SCALAR, dtypes.float16, (), (1, None, None))
U = UOp(ops.SCALAR, dtypes.uint8, (), (2, None, None))


def const(dtype, value) -> UOp:
    return UOp.const(dtype, value)


def reason(node: UOp, rule: str) -> str:
    trace = Trace()
    algebra.step(node, trace)
    return trace.declined(rule)[0].reason


@pytest.mark.parametrize(("node", "expected"), [
    (const(dtypes.int8, 100) + 100, -56),
    (const(dtypes.int32, -(2**31)) // -1, -(2**31)),
    (const(dtypes.int32, 5) // 0, 0),
    (const(dtypes.uint32, 3) % 0, 0),
    (const(dtypes.float32, 0.1) + 0.2, dtypes.float32.round(dtypes.float32.round(0.1) + dtypes.float32.round(0.2))),
    (const(dtypes.float16, 60000) + 60000, math.inf),
    (const(dtypes.float32, 1) / 0, math.inf),
    (const(dtypes.float32, -1).maximum(-0.0), -0.0),
    (UOp.apply(ops.SQRT, const(dtypes.float32, 2)), dtypes.float32.round(math.sqrt(2))),
])  # fmt: skip
def test_constants_fold_as_a_kernel_would_compute_them(node, expected):
    """B043, B044, B047."""
    assert normalise(node) == [const(node.dtype, expected)]


@pytest.mark.parametrize("op", [ops.EXP, ops.SIN, ops.LOG, ops.TANH, ops.POW])
def test_functions_that_are_not_exactly_rounded_are_not_folded(op):
    node = UOp(op, dtypes.float32, (const(dtypes.float32, 0.5),) * (op.operands or 0))

    assert normalise(node) == [node]


@pytest.mark.parametrize(("divisor", "why"), [
    (3.0, "not a power of two"), (math.inf, "not a power of two"), (0.0, "not a power of two"),
    (2.0**-24, "not a normal number"),
])  # fmt: skip
def test_a_division_stays_where_the_reciprocal_is_not_exact(divisor, why):
    assert why in reason(H / divisor, "algebra.multiply_by_reciprocal")


def test_a_chain_of_float_constants_is_not_gathered():
    node = (X + 0.1) + 0.2

    assert normalise(node) == [node]


def test_unsigned_constants_stay_subtracted():
    assert normalise(U - 3) == [U - 3]


def test_bounds_of_masks_remove_divisions():
    assert normalise((U & 7) // 8, (U & 7) % 8, (U & 7) < 8) == [const(U.dtype, 0), U & 7, const(dtypes.bool, True)]
