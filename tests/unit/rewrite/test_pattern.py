"""Patterns match what they spell, commutative ops in either order."""

from __future__ import annotations

import linecache

import pytest

from lazulite.ir import ops
from lazulite.ir.dtype import FLOATS, INTS, dtypes
from lazulite.ir.uop import UOp
from lazulite.rewrite.pattern import Pattern, any_, const, each, matchers, may_match, names_of, orders, var

x, y, c = var("x"), var("y"), const("c")
A, B = (UOp(ops.SCALAR, dtypes.int32, (), (slot, None, None)) for slot in range(2))
F = UOp(ops.SCALAR, dtypes.float32, (), (2, None, None))


def match(pattern: Pattern, node: UOp, *names: str) -> tuple[UOp, ...] | None:
    """What the first order of operands that fits binds."""
    for ordered, function in matchers(pattern, names, "a test"):
        if may_match(ordered, node.op, node.src[0].dtype, [s.op for s in node.src]):
            bound = function(node)
            if bound is not None:
                return bound
    return None


def test_names_bind_in_the_order_that_is_asked_for():
    assert match(x - y, A - B, "y", "x", "root") == (B, A, A - B)


def test_operands_of_commutative_ops_match_in_either_order():
    assert match(x + c, UOp.const(dtypes.int32, 3) + A, "x", "c") == (A, UOp.const(dtypes.int32, 3))
    assert match(x - c, UOp.const(dtypes.int32, 3) - A, "x") is None


def test_every_order_of_nested_operands_is_tried():
    three = UOp.const(dtypes.int32, 3)

    assert len(list(orders((x + c) * y))) == 4
    for node in ((A + 3) * B, B * (A + 3), (three + A) * B, B * (three + A)):
        assert match((x + c) * y, node, "x", "y") == (A, B)


def test_the_same_name_twice_is_the_same_node():
    assert match(x * x, A * A, "x") == (A,)
    assert match(x * x, A * B, "x") is None
    assert len(matchers(x * x, ["x"], "a test")) == 1


def test_types_narrow_a_variable():
    assert match(var("x", FLOATS) * y, A * B, "x") is None
    assert match(var("x", INTS) * y, A * B, "x") == (A,)


def test_a_number_is_compared_by_its_bits():
    assert match(x + -0.0, F + -0.0, "x") == (F,)
    assert match(x + -0.0, F + 0.0, "x") is None
    assert match(x + -0.0, A + 0, "x") is None
    assert match(x * 1, F * 1.0, "x") == (F,)
    assert match(x * 1, A * 1, "x") == (A,)


def test_one_pattern_may_name_several_ops():
    pattern = each((ops.MAX, ops.MIN), x, y, name="pick")

    assert match(pattern, A.maximum(B), "pick") == (A.maximum(B),)
    assert match(pattern, A + B, "pick") is None


def test_any_sources_will_do_for_any_():
    assert match(-any_(ops.ADD, "sum"), -(A + B), "sum") == (A + B,)
    assert match(-any_(ops.ADD, "sum"), -(A * B), "sum") is None


@pytest.mark.parametrize(("pattern", "node"), [
    (x // y, A // B), (x % y, A % B), (x / y, F / F), (x & y, A & B), (x | y, A | B), (x ^ y, A ^ B), (x << y, A << B),
    (x >> y, A >> B), (x < y, A < B), (x <= y, A <= B), (x.eq(y), A.eq(B)), (x.ne(y), A.ne(B)), (-x, -A), (~x, ~A),
    (x.maximum(y), A.maximum(B)), (x.minimum(y), A.minimum(B)), (3 + x, 3 + A), (3 * x, 3 * A), (3 - x, 3 - A),
    (x.cast(), A.cast(dtypes.int8)), (c.where(x, y), UOp.const(dtypes.bool, True).where(A, B)),
])  # fmt: skip
def test_every_operator_of_patterns_is_that_of_nodes(pattern, node):
    assert match(pattern, node, "x") == ((F,) if node.op is ops.DIV else (A,))


def test_the_names_of_a_pattern_include_the_root():
    assert names_of((x + c) * y) == {"x", "c", "y", "root"}


def test_the_source_of_a_matcher_can_be_read_in_a_debugger():
    ((_, function),) = matchers(-(-x), ["x"], "twice")

    assert "node.src" in linecache.getline(function.__code__.co_filename, 2)
