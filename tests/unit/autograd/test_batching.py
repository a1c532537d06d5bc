"""Entry i of a batched value is what the graph gives for example i: for every op, whatever operands are batched."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest

from lazulite.autograd.backward import gradient
from lazulite.autograd.batching import BATCHING, batched, repeated
from lazulite.autograd.scatter import scattered
from lazulite.base.errors import GradientError
from lazulite.ir import ops
from lazulite.ir.dtype import BOOL, FLOATS, INTS, DType, dtypes
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.functions import function_of
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp, substitute
from lazulite.ir.verify import ALLOWED, verify
from unit.autograd.graphs import leaf

SIZE = 3
WITHOUT_SOURCES = {ops.CONST, ops.SCALAR, ops.PARAM, ops.IOTA, ops.BUFFER}
EFFECTS = {ops.AFTER, ops.STORE, ops.SINK, ops.CALL}


def numbers(dtype: DType, count: int, start: int) -> list[bool] | list[int] | list[float]:
    if dtype is dtypes.bool:
        return [(i * 7 + start) % 3 == 0 for i in range(count)]
    if dtype.is_int:
        return [(i * 5 + start) % 4 for i in range(count)]
    return [0.4 + ((i * 7 + start) % 11) / 8 for i in range(count)]


def assert_batched(build: Callable[..., UOp], *operands: tuple[DType, tuple[int, ...]]) -> None:
    """Every choice of operands that differ between examples."""
    for each in itertools.product([False, True], repeat=len(operands)):
        if any(each):
            _assert_batched(build, operands, each)


def _assert_batched(
    build: Callable[..., UOp], operands: tuple[tuple[DType, tuple[int, ...]], ...], each: tuple[bool, ...]
) -> None:
    inner = [leaf(number, shape, dtype) for number, (dtype, shape) in enumerate(operands)]
    outer = [leaf(100 + n, (SIZE, *node.shape), node.dtype) for n, node in enumerate(inner)]
    lanes = {i: o for i, o, many in zip(inner, outer, each, strict=True) if many}
    root = build(*inner)
    (made,) = batched([root], lanes, SIZE)
    made = repeated(root, SIZE) if made is None else made
    assert made.shape == (SIZE, *root.shape)
    verify(made, "TENSOR")
    contents = {o: numbers(o.dtype, math.prod(o.shape), n) for n, o in enumerate(outer)}
    shared = {i: numbers(i.dtype, math.prod(i.shape), n) for n, i in enumerate(inner)}
    (found,) = evaluate_tensors([made], contents | shared)
    expected = []
    for example in range(SIZE):
        memory = dict(shared)
        for node, many in lanes.items():
            count = math.prod(node.shape)
            memory[node] = contents[many][example * count : (example + 1) * count]
        expected += evaluate_tensors([root], memory)[0]
    assert expected == found


def test_every_op_that_can_depend_on_an_example_has_a_rule() -> None:
    """The empty cells of the table, by name."""
    assert ALLOWED["TENSOR"] - WITHOUT_SOURCES - EFFECTS - ops.ONLY_LOWERED - BATCHING.keys() == set()


def dtype_for(op: Op) -> DType:
    if op is ops.THREEFRY:
        return dtypes.uint64
    return next(
        t for t, kind in ((dtypes.float64, FLOATS), (dtypes.int32, INTS), (dtypes.bool, BOOL)) if op.accepts & kind
    )


@pytest.mark.parametrize(
    "op",
    sorted(ops.ELEMENTWISE - ops.ONLY_LOWERED - {ops.CAST, ops.BITCAST, ops.WHERE}, key=lambda o: o.name),
    ids=repr,
)
def test_elementwise(op: Op) -> None:
    """Operands of rank 0 stand beside those with a shape, batched or not."""
    dtype, count = dtype_for(op), op.operands or 0
    for shapes in itertools.product([(), (2,)], repeat=count):
        assert_batched(lambda *x: UOp.apply(op, *x), *[(dtype, shape) for shape in shapes])


def test_choices_and_casts() -> None:
    for shapes in itertools.product([(), (2,)], repeat=3):
        types = (dtypes.bool, dtypes.float64, dtypes.float64)
        assert_batched(lambda g, x, y: g.where(x, y), *zip(types, shapes, strict=True))
    assert_batched(lambda x: x.cast(dtypes.int32), (dtypes.float64, (2,)))
    assert_batched(lambda x: UOp(ops.BITCAST, dtypes.int32, (x,)), (dtypes.float32, (2,)))
    assert_batched(lambda x: UOp(ops.BITCAST, dtypes.int16, (x,)), (dtypes.float32, (2,)))
    assert_batched(lambda x: UOp(ops.DETACH, x.dtype, (x,)), (dtypes.float64, (2,)))


@pytest.mark.parametrize(
    ("op", "arg"),
    [
        (ops.RESHAPE, (3, 2)), (ops.PERMUTE, (1, 0)), (ops.EXPAND, (4, 2, 3)), (ops.PAD, ((1, 0), (0, 2))),
        (ops.SHRINK, ((1, 2), (0, 2))), (ops.FLIP, (0, 1)), (ops.COPY, "CPU"), (ops.REDUCE, (ops.ADD, (1,))),
        (ops.REDUCE, (ops.MAX, (0, 1))),
    ],
)  # fmt: skip
def test_movements_copies_and_reductions(op: Op, arg: object) -> None:
    assert_batched(lambda x: UOp(op, x.dtype, (x,), arg), (dtypes.float64, (2, 3)))


def test_a_number_is_expanded_for_each_example() -> None:
    assert_batched(lambda x: UOp(ops.EXPAND, x.dtype, (x,), (2, 2)), (dtypes.float64, ()))


@pytest.mark.parametrize("shape", [(), (2,), (2, 2)], ids=str)
def test_gathers(shape: tuple[int, ...]) -> None:
    """Positions on one axis, and on two; some lie outside."""
    x, p = (dtypes.float64, (3, 2, 2)), (dtypes.int32, shape)
    assert_batched(lambda x, p: UOp(ops.GATHER, x.dtype, (x, p)), x, p)
    assert_batched(lambda x, p, q: UOp(ops.GATHER, x.dtype, (x, p, q)), x, p, p)


def test_writes() -> None:
    region = (("permute", (1, 0)), ("shrink", ((1, 3), (0, 2))))
    for shape in [(), (2, 2)]:
        assert_batched(
            lambda x, v: UOp(ops.WRITE, x.dtype, (x, v), region), (dtypes.float64, (2, 3)), (dtypes.float64, shape)
        )


@pytest.mark.parametrize("op", [None, ops.ADD, ops.MAX, ops.MUL], ids=repr)
def test_scatters_and_their_gradients(op: Op | None) -> None:
    operands = (dtypes.float64, (3,)), (dtypes.int32, (4,)), (dtypes.float64, (4,))
    assert_batched(lambda x, p, v: scattered(op, x, [p], v), *operands)

    def slope(x: UOp, p: UOp, v: UOp) -> UOp:
        (found,) = gradient(scattered(op, x, [p], v), [v], UOp.const(x.dtype, 1))
        assert found is not None
        return found

    assert_batched(slope, *operands)


@pytest.mark.parametrize("batched_operand", [0, 1])
def test_a_gradient_of_ones_own_is_batched_with_its_value(batched_operand: int) -> None:
    """The gradient of the batched value is that of each example; an operand that all share gets the sum."""
    x, y = leaf(0, (2,)), leaf(1, (2,))
    own = [UOp(ops.PARAM, x.dtype, (), (slot, (2,), "CPU")) for slot in range(3)]
    value = function_of(x * y, [x, y], [own[2] * own[1] * 10, own[2] * own[0] * 20])
    single = (x, y)[batched_operand]
    many = leaf(2, (SIZE, 2))
    (made,) = batched([value], {single: many}, SIZE)
    assert made is not None
    parts = gradient(made, [many, (y, x)[batched_operand]], UOp.const(x.dtype, 1))
    plain = gradient(x * y * 1, [x, y], UOp.const(x.dtype, 1))
    weights = (10.0, 20.0)
    held = [float(n) for n in range(6)]
    memory = {many: held, x: [2.0, 3.0], y: [4.0, 5.0]}
    assert all(part is not None for part in [*parts, *plain])
    for_many, for_shared = evaluate_tensors([part for part in parts if part is not None], memory)
    other = memory[(y, x)[batched_operand]]
    assert for_many == [weights[batched_operand] * o for _ in range(SIZE) for o in other]
    assert for_shared == [weights[1 - batched_operand] * sum(held[i::2]) for i in range(2)]


def test_what_depends_on_no_example_stays_as_it_is() -> None:
    x, y = leaf(0, (2,)), leaf(1, (2,))
    many = leaf(2, (SIZE, 2))

    assert [None] == batched([y * 2], {x: many}, SIZE)
    assert (SIZE, 2) == repeated(y, SIZE).shape
    assert [y * 2] == substitute([y * 2], {x: many})


def test_an_effect_cannot_be_batched() -> None:
    x = leaf(0, (2,))
    with pytest.raises(GradientError, match="store cannot be done for several examples at once"):
        batched([UOp.sink(x.store(x * 2))], {x: leaf(1, (SIZE, 2))}, SIZE)
