"""Each gradient rule is the slope of its operation."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.autograd.backward import gradient
from lazulite.autograd.rules import GRADIENTS
from lazulite.ir import ops
from lazulite.ir.dtype import FLOATS, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from unit.autograd.graphs import assert_gradient_is_the_slope, gradients, leaf, total, values, weighted

UNARY = (ops.NEG, ops.SQRT, ops.EXP, ops.EXP2, ops.LOG, ops.LOG2, ops.SIN, ops.COS, ops.TAN, ops.TANH, ops.ERF)
BINARY = (ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.MAX, ops.MIN, ops.POW)


def apply(op: Op, *src: UOp) -> UOp:
    return UOp.apply(op, *src)


def move(op: Op, node: UOp, arg: object) -> UOp:
    return UOp(op, node.dtype, (node,), arg)


def reduce(op: Op, node: UOp, axes: tuple[int, ...]) -> UOp:
    return UOp(ops.REDUCE, node.dtype, (node,), (op, axes))


def test_every_elementwise_op_on_floats_has_a_rule() -> None:
    integral_result = ops.COMPARISONS
    floats = {op for op in ops.ELEMENTWISE if op.accepts & FLOATS} - integral_result

    assert floats - ops.ONLY_LOWERED <= set(GRADIENTS)


@pytest.mark.parametrize("op", UNARY, ids=repr)
@settings(max_examples=10, deadline=None)
@given(x=st.lists(st.floats(0.1, 1.4), min_size=1, max_size=3))
def test_the_gradient_of_a_function_is_its_slope(op: Op, x: list[float]) -> None:
    assert_gradient_is_the_slope(lambda node: apply(op, node), ((len(x),), x))


@pytest.mark.parametrize("op", BINARY, ids=repr)
@pytest.mark.parametrize("shapes", [((2,), (2,)), ((), (2,)), ((2,), ()), ((), ())], ids=str)
def test_the_gradient_of_two_operands_is_the_slope_in_each(op: Op, shapes: tuple[tuple[int, ...], ...]) -> None:
    """An operand of rank 0 beside a shaped one gets the sum."""
    contents = [[1.5, 0.3], [0.7, 2.2]]
    operands = [(s, held[: math.prod(s)]) for s, held in zip(shapes, contents, strict=True)]

    assert_gradient_is_the_slope(lambda x, y: apply(op, x, y), *operands)


def test_fma_where_and_cast_pass_gradients_on() -> None:
    three = [((2,), [1.5, 0.3]), ((2,), [0.7, 2.2]), ((2,), [0.1, -3.0])]

    assert_gradient_is_the_slope(lambda x, y, z: apply(ops.FMA, x, y, z), *three)
    assert_gradient_is_the_slope(lambda x, y, z: (x < y).where(z * x, y), *three)

    x = leaf(0, (2,), dtypes.float16)
    assert [[3.0, 3.0]] == gradients(total(x.cast(dtypes.float32) * 3.0), {x: [1.0, 2.0]})


def test_integers_bits_and_detached_values_pass_nothing() -> None:
    x = leaf(0, (2,))
    for node in (
        x.cast(dtypes.int32).cast(dtypes.float64),
        *[UOp(op, x.dtype, (x,)) for op in (ops.BITCAST, ops.DETACH)],
    ):
        assert [None] == gradient(total(node), [x])


@pytest.mark.parametrize("op", [ops.FLOOR, ops.TRUNC, ops.ROUND], ids=repr)
def test_a_step_function_is_flat(op: Op) -> None:
    x = leaf(0, (2,))

    assert [[0.0, 0.0]] == gradients(total(apply(op, x)), {x: [1.25, -0.5]})


MOVEMENTS: dict[str, tuple[tuple[int, ...], Callable[[UOp], UOp]]] = {
    "reshape": ((2, 3), lambda x: move(ops.RESHAPE, x, (3, 2))),
    "permute": ((2, 3, 1), lambda x: move(ops.PERMUTE, x, (2, 0, 1))),
    "expand": ((2, 1), lambda x: move(ops.EXPAND, x, (4, 2, 3))),
    "expand of rank 0": ((), lambda x: move(ops.EXPAND, x, (2, 2))),
    "pad": ((2, 2), lambda x: move(ops.PAD, x, ((1, 0), (0, 2)))),
    "shrink": ((3, 4), lambda x: move(ops.SHRINK, x, ((1, 3), (0, 2)))),
    "flip": ((2, 3), lambda x: move(ops.FLIP, x, (1,))),
    "copy": ((2,), lambda x: UOp(ops.COPY, x.dtype, (x,), "OTHER")),
}


@pytest.mark.parametrize("name", MOVEMENTS)
def test_a_movement_is_undone(name: str) -> None:
    shape, build = MOVEMENTS[name]

    assert_gradient_is_the_slope(lambda x: build(x * x), (shape, [0.5 + i for i in range(math.prod(shape))]))


def test_the_gradient_of_a_copy_returns_to_the_device_of_the_source() -> None:
    x = leaf(0, (2,), device="HERE")
    (found,) = gradient(total(UOp(ops.COPY, x.dtype, (x,), "THERE")), [x])

    assert found is not None and (found.op, found.arg) == (ops.COPY, "HERE")


@pytest.mark.parametrize("op", [ops.ADD, ops.MUL, ops.MAX, ops.MIN], ids=repr)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (0, 2)], ids=str)
def test_the_gradient_of_a_reduction_is_its_slope(op: Op, axes: tuple[int, ...]) -> None:
    x = [((i * 7) % 13) / 4 + 0.5 for i in range(12)]

    assert_gradient_is_the_slope(lambda node: reduce(op, node, axes), ((2, 3, 2), x))


def test_equal_operands_of_max_and_min_share_the_gradient() -> None:
    x, y = leaf(0, (2,)), leaf(1, (2,))
    for op in (ops.MAX, ops.MIN):
        assert [[0.5, 0.5], [0.5, 0.5]] == gradients(total(apply(op, x, y)), {x: [1.0, 2.0], y: [1.0, 2.0]})


def test_ties_of_a_reduction_share_the_gradient() -> None:
    """B037"""
    x = leaf(0, (3,))

    assert [[0.5, 0.5, 0.0]] == gradients(total(reduce(ops.MAX, x, (0,))), {x: [1.0, 1.0, 0.0]})


def test_seventy_thousand_tied_halves_share_one() -> None:
    """A3: a half cannot count to 70,000."""
    x = leaf(0, (70_000,), dtypes.float16)
    (found,) = gradients(total(reduce(ops.MAX, x, (0,))), {x: [1.0] * 70_000})

    assert abs(sum(found) - 1.0) < 0.01


@pytest.mark.parametrize(
    ("x", "expected"), [([2.0, 0.0, 3.0], [0.0, 6.0, 0.0]), ([0.0, 0.0, 3.0], [0.0, 0.0, 0.0]), ([5.0], [1.0])]
)
def test_the_gradient_of_a_product_with_zeros_is_the_product_of_the_others(
    x: list[float], expected: list[float]
) -> None:
    """B032"""
    node = leaf(0, (len(x),))

    assert [expected] == gradients(total(reduce(ops.MUL, node, (0,))), {node: x})


def test_the_second_derivative_of_a_product_is_right_beside_a_zero() -> None:
    x = leaf(0, (3,))
    (first,) = gradient(total(reduce(ops.MUL, x, (0,))), [x])
    assert first is not None

    assert [[3.0, 5.0, 2.0]] == gradients(total(first), {x: [2.0, 0.0, 3.0]})


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [(0.0, 2.0, (0.0, 0.0)), (0.0, 1.0, (1.0, 0.0)), (3.0, 0.0, (0.0, math.log(3.0))), (0.0, 0.0, (0.0, 0.0)),
     (-2.0, 3.0, (12.0, math.nan))],
)  # fmt: skip
def test_power_has_its_gradient_at_special_points(x: float, y: float, expected: tuple[float, float]) -> None:
    base, exponent = leaf(0, ()), leaf(1, ())
    found = gradients(apply(ops.POW, base, exponent), {base: [x], exponent: [y]})

    assert expected == pytest.approx((found[0][0], found[1][0]), nan_ok=True)


def test_a_write_splits_the_gradient_between_what_was_and_what_is_written() -> None:
    """A3: y[:1].assign(0) gives [0, 1]; an overwrite by a constant gives 0."""
    x, v = leaf(0, (2,)), leaf(1, (1,))
    region = (("shrink", ((0, 1),)),)
    written = UOp(ops.WRITE, x.dtype, (x, v), region)
    memory = {x: [2.0, 3.0], v: [5.0]}

    assert [[0.0, 1.0], [1.0]] == gradients(total(written), memory)

    whole = UOp(ops.WRITE, x.dtype, (x, move(ops.EXPAND, UOp.const(x.dtype, 7.0), (2,))), ())
    assert [[0.0, 0.0]] == gradients(total(whole), {x: [2.0, 3.0]})


def test_a_write_through_a_transposed_view_sends_each_element_home() -> None:
    region = (("permute", (1, 0)), ("shrink", ((1, 3), (0, 2))), ("flip", (0,)))

    assert_gradient_is_the_slope(
        lambda x, v: UOp(ops.WRITE, x.dtype, (x * x, v * v), region),
        ((2, 3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ((2, 2), [0.1, 0.2, 0.3, 0.4]),
    )


def test_weights_of_the_check_tell_elements_apart() -> None:
    x = leaf(0, (2, 2))

    assert 4 == len(set(gradients(weighted(x), {x: [0.0] * 4})[0]))
    assert [[2.0]] == values([total(x * 0.5)], {x: [1.0] * 4})
