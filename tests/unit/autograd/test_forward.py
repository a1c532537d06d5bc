"""Each tangent is the slope of the graph in the direction of the given one."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from lazulite.autograd.forward import TANGENTS, tangents
from lazulite.autograd.scatter import scattered
from lazulite.base.errors import GradientError
from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo
from lazulite.ir.dtype import FLOATS, dtypes
from lazulite.ir.functions import function_of
from lazulite.ir.launches import launch
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.ir.verify import ALLOWED
from unit.autograd.graphs import Values, leaf, values

WITHOUT_SOURCES = {ops.CONST, ops.SCALAR, ops.PARAM, ops.IOTA}
EFFECTS = {ops.AFTER, ops.STORE, ops.SINK, ops.CALL}
"""What `engine.effects.differentiable` takes out of a graph before it is differentiated."""


def moved(op: Op, x: UOp, arg: object) -> UOp:
    return UOp(op, x.dtype, (x,), arg)


def assert_tangent_is_the_slope(build: Callable[..., UOp], *operands: tuple[tuple[int, ...], Values]) -> None:
    leaves = [leaf(number, shape) for number, (shape, _) in enumerate(operands)]
    ways = [leaf(100 + number, shape) for number, (shape, _) in enumerate(operands)]
    memory = {node: held for node, (_, held) in zip(leaves, operands, strict=True)}
    directions = {node: [0.3 + 0.2 * i - 0.5 * (i % 2) for i in range(math.prod(node.shape))] for node in ways}
    root, step = build(*leaves), 1e-6

    (found,) = tangents([root], dict(zip(leaves, ways, strict=True)))

    assert found is not None and found.shape == root.shape

    def at(reach: float) -> Values:
        shifted = {
            node: [x + reach * way for x, way in zip(memory[node], directions[other], strict=True)]
            for node, other in zip(leaves, ways, strict=True)
        }
        return values([root], shifted)[0]

    slope = [(x - y) / (2 * step) for x, y in zip(at(step), at(-step), strict=True)]
    assert values([found], memory | directions)[0] == pytest.approx(slope, rel=1e-5, abs=1e-5)


def test_every_op_that_can_carry_a_float_has_a_rule() -> None:
    """The empty cells of the table, by name."""
    allowed = ALLOWED["TENSOR"] - WITHOUT_SOURCES - EFFECTS - ops.ONLY_LOWERED - {ops.BUFFER}
    no_floats = {op for op in ops.ELEMENTWISE if not op.accepts & FLOATS} | ops.COMPARISONS

    assert allowed - no_floats - TANGENTS.keys() == set()


UNARY = (ops.NEG, ops.SQRT, ops.EXP, ops.EXP2, ops.LOG, ops.LOG2, ops.SIN, ops.COS, ops.TAN, ops.TANH, ops.ERF)


@pytest.mark.parametrize("op", UNARY, ids=repr)
def test_functions(op: Op) -> None:
    assert_tangent_is_the_slope(lambda x: UOp.apply(op, x), ((3,), [0.4, 0.9, 1.3]))


@pytest.mark.parametrize("op", [ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.MAX, ops.MIN, ops.POW], ids=repr)
@pytest.mark.parametrize("shapes", [((2,), (2,)), ((), (2,)), ((2,), ()), ((), ())], ids=str)
def test_two_operands(op: Op, shapes: tuple[tuple[int, ...], ...]) -> None:
    contents = [[1.5, 0.3], [0.7, 2.2]]
    operands = [(s, held[: math.prod(s)]) for s, held in zip(shapes, contents, strict=True)]

    assert_tangent_is_the_slope(lambda x, y: UOp.apply(op, x, y), *operands)


def test_choices_and_multiply_add() -> None:
    three = [((2,), [1.5, 0.3]), ((2,), [0.7, 2.2]), ((2,), [0.1, -3.0])]

    assert_tangent_is_the_slope(lambda x, y, z: UOp.apply(ops.FMA, x, y, z), *three)
    assert_tangent_is_the_slope(lambda x, y, z: (x < y).where(z * x, y), *three)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: moved(ops.RESHAPE, x, (3, 2)), lambda x: moved(ops.PERMUTE, x, (1, 0)),
        lambda x: moved(ops.EXPAND, x, (2, 2, 3)), lambda x: moved(ops.PAD, x, ((1, 0), (0, 2))),
        lambda x: moved(ops.SHRINK, x, ((1, 2), (0, 2))), lambda x: moved(ops.FLIP, x, (0, 1)),
        lambda x: moved(ops.COPY, x, "OTHER"), lambda x: x.cast(dtypes.float32).cast(dtypes.float64),
    ],
)  # fmt: skip
def test_what_is_linear_moves_its_tangent(build: Callable[[UOp], UOp]) -> None:
    numbers = [0.5, 1.25, -2.0, 0.75, 3.0, -0.25]
    x, way = leaf(0, (2, 3)), leaf(1, (2, 3))
    (found,) = tangents([build(x)], {x: way})
    assert found is not None

    assert values([found], {way: numbers}) == values([build(x)], {x: numbers})


@pytest.mark.parametrize("op", [ops.ADD, ops.MUL, ops.MAX, ops.MIN], ids=repr)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=str)
def test_reductions(op: Op, axes: tuple[int, ...]) -> None:
    numbers = [((i * 5) % 7) / 4 + 0.5 for i in range(6)]

    assert_tangent_is_the_slope(lambda x: UOp(ops.REDUCE, x.dtype, (x,), (op, axes)), ((2, 3), numbers))


def test_the_tangent_of_a_product_is_right_beside_a_zero() -> None:
    assert_tangent_is_the_slope(lambda x: UOp(ops.REDUCE, x.dtype, (x,), (ops.MUL, (0,))), ((3,), [2.0, 0.0, 3.0]))


def test_writes_gathers_and_scatters() -> None:
    region = (("permute", (1, 0)), ("shrink", ((1, 3), (0, 2))))
    six, four = ((2, 3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), ((2, 2), [0.1, 0.2, 0.3, 0.4])
    assert_tangent_is_the_slope(lambda x, v: UOp(ops.WRITE, x.dtype, (x * x, v * v), region), six, four)

    def positions(size: int) -> UOp:
        return UOp(ops.IOTA, dtypes.int32, (), 4) % size

    assert_tangent_is_the_slope(lambda x: UOp(ops.GATHER, x.dtype, (x * x, positions(2))), six)
    for op in (ops.ADD, ops.MUL, None):
        assert_tangent_is_the_slope(
            lambda x, v, op=op: scattered(op, x * x, [positions(3)], v * v),
            ((3,), [1.0, 2.0, 3.0]), ((4,), [0.1, 0.2, 0.3, 0.4]),
        )  # fmt: skip


def test_a_gradient_of_ones_own_is_turned_round() -> None:
    """The value is a square, and the gradient says that it is a cube."""
    x, way = leaf(0, (2,)), leaf(1, (2,))
    operand, upstream = [UOp(ops.PARAM, x.dtype, (), (slot, (2,), "CPU")) for slot in (0, 1)]
    (found,) = tangents([function_of(x * x, [x], [upstream * operand * operand * 3])], {x: way})
    assert found is not None

    assert [[12.0 * 0.5, 27.0 * 2.0]] == values([found], {x: [2.0, 3.0], way: [0.5, 2.0]})


def test_how_the_value_of_such_a_function_came_about_does_not_matter() -> None:
    """It may be made by a kernel without a gradient."""
    x, way = leaf(0, (2,)), leaf(1, (2,))
    memory = UOp(ops.PARAM, x.dtype, (), (0, (2,), ""))
    place = memory[UOp.range(2, 0)]
    (made,) = launch(UOp.sink(place.store(place * 2), arg=KernelInfo("double")), x)
    upstream = UOp(ops.PARAM, x.dtype, (), (1, (2,), "CPU"))
    (found,) = tangents([function_of(made, [x], [upstream * 2])], {x: way})
    assert found is not None

    assert [[2.0, 6.0]] == values([found], {way: [1.0, 3.0]})


def test_integers_bits_and_detached_values_have_no_tangent() -> None:
    x = leaf(0, (2,))
    roots = [x.cast(dtypes.int32).cast(dtypes.float64), *[UOp(op, x.dtype, (x,)) for op in (ops.BITCAST, ops.DETACH)]]

    assert [None, None, None, None] == tangents([*roots, leaf(1, (2,))], {x: x})


def test_history_is_walked_through() -> None:
    x, stored = leaf(0, (2,)), leaf(1, (2,))
    (found,) = tangents([stored * stored], {x: x}, lambda node: x * 3 if node is stored else None)
    assert found is not None

    assert [[18.0]] == [values([found], {x: [1.0, 1.0], stored: [3.0, 3.0]})[0][:1]]


def test_a_kernel_without_a_gradient_has_no_tangent_either() -> None:
    x = leaf(0, (2,))
    memory = UOp(ops.PARAM, x.dtype, (), (0, (2,), ""))
    place = memory[UOp.range(2, 0)]
    (made,) = launch(UOp.sink(place.store(place * 2), arg=KernelInfo("double")), x)

    with pytest.raises(GradientError, match="a kernel without a gradient"):
        tangents([made], {x: x})
