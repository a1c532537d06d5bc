import gc
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, difference, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.meaning import rounded
from lazulite.ir.uop import UOp, index, live_nodes, toposort

BINARY_INDEX = [ops.ADD, ops.SUB, ops.MUL, ops.FLOORDIV, ops.MOD, ops.MAX, ops.MIN]
BINARY_INT = [*BINARY_INDEX, ops.AND, ops.OR, ops.XOR, ops.SHL, ops.SHR]
COMPARISONS = [ops.LT, ops.LE, ops.EQ, ops.NE]


def scalar(slot, dtype, low=None, high=None):
    return UOp(ops.SCALAR, dtype, (), (slot, low, high))


@st.composite
def expressions(draw, dtype, least, greatest):
    """A tree over up to three bounded scalars and constants."""
    leaves = []
    for slot in range(3):
        low = draw(st.integers(least, greatest))
        leaves.append(scalar(slot, dtype, low, min(greatest, low + draw(st.integers(0, 3)))))
    nodes = [*leaves, UOp.const(dtype, draw(st.integers(least, greatest)))]
    for _ in range(draw(st.integers(1, 5))):
        x, y = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        kind = draw(st.sampled_from(["binary", "choice", "neg", "cast"]))
        if kind == "choice":
            gate = UOp.apply(draw(st.sampled_from(COMPARISONS)), x, y)
            other = UOp.apply(draw(st.sampled_from(COMPARISONS)), y, draw(st.sampled_from(nodes)))
            gate = UOp.apply(draw(st.sampled_from([ops.AND, ops.OR, ops.XOR])), gate, other)
            nodes.append(gate.where(x, y))
        elif kind == "neg":
            nodes.append(-x)
        elif kind == "cast" and dtype is not dtypes.index:
            nodes.append(x.cast(draw(st.sampled_from([dtypes.bool, dtypes.int16, dtypes.uint8]))).cast(dtype))
        else:
            known = BINARY_INDEX if dtype is dtypes.index else BINARY_INT
            nodes.append(UOp.apply(draw(st.sampled_from(known)), x, y))
    return nodes[-1]


def every_value(root):
    """For each choice of the scalars, the value of every node."""
    order = toposort(root)
    leaves = [node for node in order if node.op is ops.SCALAR]
    for choice in itertools.product(*[range(node.arg[1], node.arg[2] + 1) for node in leaves]):
        values = dict(zip(leaves, choice, strict=True))
        for node in order:
            if node.op is ops.CONST:
                values[node] = node.value
            elif node not in values:
                values[node] = rounded(node)(*[values[s] for s in node.src])
        yield values


def check_bounds(root):
    for values in every_value(root):
        for node, value in values.items():
            low, high = node.bounds
            assert low <= value <= high, f"{node!r} is {value}, outside {low}..{high}"


@given(expressions(dtypes.index, -6, 6))
def test_no_value_of_an_index_expression_leaves_its_bounds(root):
    check_bounds(root)


@given(expressions(dtypes.int8, -128, 124))
def test_no_value_of_a_wrapping_expression_leaves_its_bounds(root):
    check_bounds(root)


@given(expressions(dtypes.uint8, 0, 252))
def test_no_value_of_an_unsigned_expression_leaves_its_bounds(root):
    check_bounds(root)


@pytest.mark.parametrize("op", [ops.ADD, ops.MUL, ops.MAX, ops.MIN, ops.FLOORDIV], ids=lambda op: op.name)
def test_bounds_of_one_op_on_independent_operands_are_reached(op):
    x, y = scalar(0, dtypes.index, -3, 4), scalar(1, dtypes.index, 2, 5)
    node = UOp.apply(op, x, y)
    values = [known[node] for known in every_value(node)]
    assert (min(values), max(values)) == node.bounds


def test_an_interval_that_may_have_wrapped_is_the_whole_type():
    x = scalar(0, dtypes.int8, 100, 120)
    assert (-128, 127) == (x + 10).bounds
    assert (105, 125) == (x + 5).bounds


def test_a_range_reaches_from_0_to_one_below_its_extent():
    r = UOp(ops.RANGE, dtypes.index, (index(7),), ((0,), "loop"))
    assert (0, 6) == r.bounds
    assert (1, 25) == (r * 4 + 1).bounds
    assert (0, 1) == (r // 4).bounds


def test_a_constant_comparison_is_known():
    r = UOp(ops.RANGE, dtypes.index, (index(7),), ((0,), "loop"))
    assert (1, 1) == (r < 7).bounds
    assert (0, 0) == (r < 0).bounds
    assert (0, 1) == (r < 3).bounds


def test_floats_have_the_bounds_of_their_type():
    x = scalar(0, dtypes.float32)
    assert (float("-inf"), float("inf")) == (x + 1).bounds


# --- linear normal form ------------------------------------------------------------------------


@st.composite
def sums(draw):
    """INDEX sums, differences and multiples over three scalars and one product of them."""
    leaves = [scalar(slot, dtypes.index, -2, 2) for slot in range(3)]
    nodes = [*leaves, leaves[0] * leaves[1], index(draw(st.integers(-4, 4)))]
    for _ in range(draw(st.integers(1, 6))):
        x, y = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        c = draw(st.integers(-3, 3))
        nodes.append(draw(st.sampled_from([x + y, x * c, index(c) * x, x + c, UOp.apply(ops.SUB, x, y)])))
    return nodes[-1]


@given(sums())
def test_the_linear_form_has_the_same_values(root):
    form = linear(root)
    for values in every_value(root):
        assert values[root] == form.constant + sum(values[t] * f for t, f in form.terms.items())


@given(sums())
def test_bounds_of_the_linear_form_hold_every_value(root):
    low, high = linear(root).bounds
    assert all(low <= values[root] <= high for values in every_value(root))


@given(sums(), sums())
def test_the_difference_of_equal_sums_is_nothing(left, right):
    assert Linear() == difference(left + right, right + left)
    assert difference(left, right) == difference(right, left).scaled(-1)


def test_a_linear_form_of_a_deep_sum_is_found_without_recursion():
    x = scalar(0, dtypes.index, 0, 1)
    root = x
    for _ in range(100_000):
        root = root + x
    assert {x: 100_001} == linear(root).terms


def test_the_linear_form_of_a_sum_is_kept_with_it_and_outlives_no_user():
    gc.disable()
    try:
        before = live_nodes()
        x = UOp(ops.SCALAR, dtypes.index, (), (7, 0, 9))
        assert linear(x * 3 + x) is linear(x * 3 + x)
        assert {x: 1} == linear(x).terms and {x * x: 1} == linear(x * x).terms
        del x
        assert before == live_nodes()
    finally:
        gc.enable()
