"""The normal form: equal values everywhere, reached once, one node for expressions known to be equal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index, toposort
from lazulite.rewrite.trace import Trace
from lazulite.simplify.normal import normal, normalise, settled, shaped
from support.index_grid import grid, loop, values

RANGES = (loop(4, 0), loop(6, 1), loop(3, 2))


@st.composite
def sums(draw: st.DrawFn, depth: int = 4) -> UOp:
    """An INDEX expression over RANGES."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from([*RANGES, index(draw(st.integers(-9, 9)))]))
    kind = draw(st.sampled_from(["add", "add", "sub", "scale", "floordiv", "mod", "mod", "max", "min", "mul"]))
    left = draw(sums(depth - 1))
    if kind in ("scale", "floordiv", "mod"):
        constant = draw(st.integers(-3, 9)) if kind != "scale" else draw(st.integers(-4, 12))
        return {"scale": left * constant, "floordiv": left // constant, "mod": left % constant}[kind]
    right = draw(sums(depth - 1))
    return UOp.apply(ops.OPS[kind], left, right)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> UOp:
    """A bool expression over INDEX comparisons."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        op = draw(st.sampled_from([ops.LT, ops.LE, ops.EQ, ops.NE]))
        return UOp.apply(op, draw(sums(2)), draw(sums(2)))
    op = draw(st.sampled_from([ops.AND, ops.AND, ops.OR, ops.NOT]))
    return UOp.apply(op, *[draw(conditions(depth - 1)) for _ in range(op.operands or 0)])


def check(expression: UOp) -> None:
    (once,) = normalise(expression)
    (twice,) = normalise(once)
    known = grid(RANGES)

    assert np.array_equal(*np.broadcast_arrays(values(expression, known), values(once, known)))
    assert once is twice
    assert once.dtype is expression.dtype


@given(sums())
def test_index_expressions_keep_their_values_and_their_normal_form_is_final(expression):
    check(expression)


@given(conditions())
def test_conditions_keep_their_values_and_their_normal_form_is_final(expression):
    check(expression)


PARTS = st.sampled_from([*RANGES, RANGES[0] * 5, RANGES[1] // 4, RANGES[1] % 4, RANGES[2] * RANGES[0], index(3)])


@given(PARTS, PARTS, PARTS)
def test_regrouped_sums_are_one_node(a, b, c):
    first, second = normalise((a + b) + c * 7, (c + b + c * 5) + (a + c))

    assert first is second


FACTORS = st.integers(-12, 12)


@given(FACTORS, FACTORS, FACTORS, FACTORS, st.integers(1, 12))
def test_quotient_and_remainder_join_to_the_dividend(a, b, c, constant, divisor):
    value = RANGES[0] * a + RANGES[1] * b + RANGES[2] * c + constant
    joined, value = normalise((value // divisor) * divisor + value % divisor, value)

    assert joined is value


@given(sums(3), st.integers(1, 12))
def test_what_a_quotient_leaves_is_the_remainder(value, divisor):
    left, remainder = normalise(value - (value // divisor) * divisor, value % divisor)

    assert np.array_equal(*np.broadcast_arrays(values(left, grid(RANGES)), values(remainder, grid(RANGES))))


@given(sums())
def test_building_bottom_up_gives_what_rewriting_gives(expression):
    built: dict[UOp, UOp] = {}
    for node in toposort(expression):
        built[node] = normal(node.op, node.dtype, tuple([built[s] for s in node.src]), node.arg)

    assert built[expression] is normalise(expression)[0]


def test_terms_over_outer_ranges_come_first_and_the_constant_last():
    i, j, k = RANGES
    (result,) = normalise(7 + k + i * 18 + j * 3)

    assert result is ((i * 18 + j * 3) + k) + 7


def test_nesting_orders_may_be_tuples_of_different_length():
    outer, inner, next_ = (UOp(ops.RANGE, dtypes.index, (index(4),), (order, "loop")) for order in ((1,), (1, 0), (2,)))
    (result,) = normalise(next_ + inner + outer)

    assert result is (outer + inner) + next_


def test_order_of_equal_nesting_does_not_depend_on_how_it_was_written():
    i = RANGES[1]
    first, second = normalise(i // 4 + i % 3 + i // 5, i // 5 + (i // 4 + i % 3))

    assert first is second


def test_a_large_bool_graph_keeps_its_order_and_ends():
    x = UOp(ops.PARAM, dtypes.bool, (), (0, (4,), "CPU"))
    node = x
    for slot in range(1, 400):
        node = node & (UOp(ops.PARAM, dtypes.bool, (), (slot, (4,), "CPU")) | node)

    (result,) = normalise(node)
    assert result is x


# --- shapes of TENSOR graphs -----------------------------------------------------------------------


@pytest.mark.parametrize("build", [
    lambda t, g: g.where(UOp.const(dtypes.int32, 3), 3),
    lambda t, g: t * 0,
    lambda t, g: t - t,
    lambda t, g: UOp.const(dtypes.bool, True).where(UOp.const(dtypes.int32, 1), t),
    lambda t, g: (t & 7) % 8,
], ids=["equal choices", "times zero", "difference", "constant gate", "kept"])  # fmt: skip
def test_a_result_has_the_shape_of_what_it_replaces(build):
    t, g = (UOp(ops.PARAM, d, (), (0, (2, 3), "CPU")) for d in (dtypes.int32, dtypes.bool))
    node = build(t, g)

    assert normalise(node)[0].shape == node.shape == (2, 3)


def test_shaped_leaves_a_value_of_the_right_shape_alone():
    t = UOp(ops.PARAM, dtypes.int32, (), (0, (2,), "CPU"))

    assert shaped(t, t) is t
    assert shaped(UOp.const(dtypes.int32, 0), t).shape == (2,)


# --- floats -----------------------------------------------------------------------------------------

X = UOp(ops.PARAM, dtypes.float32, (), (0, (3,), "CPU"))


@pytest.mark.parametrize("node", [X * 0.0, X + 0.0, X - X, X / X, X.eq(X), X.ne(X), X / 3.0, 0.0 / X, X * 0.1 * 10.0],
                         ids=["x*0", "x+0", "x-x", "x/x", "x==x", "x!=x", "x/3", "0/x", "x*.1*10"])  # fmt: skip
def test_float_laws_that_fail_for_nan_inf_or_negative_zero_are_not_applied(node):
    """B049, B050."""
    assert normalise(node) == [node]


def test_settled_takes_a_node_whose_sources_are_normal():
    assert settled(RANGES[0] * 1) is RANGES[0]


def test_a_trace_names_what_fired():
    trace = Trace()
    normalise(X * 1.0, trace=trace)

    assert [event.rule for event in trace.fired()] == ["algebra.times_one"]
