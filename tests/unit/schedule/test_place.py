"""The parts that devices compute are together what one device computes, whatever the graph and the layout."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import DeviceError
from lazulite.ir import ops
from lazulite.ir.calls import Run
from lazulite.ir.dtype import dtypes
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.placement import Placement, split
from lazulite.ir.uop import UOp, substitute, toposort
from support.random_graphs import tensor_graphs
from support.schedules import buffer, expanded, matmul, moved, reduced
from support.spread_values import NAMES, joined, memory_of_parts, on, placed

TWO = NAMES[:2]


def sums_floats(root: UOp) -> bool:
    """Whether another order of adding could give another value."""
    inexact = (ops.ADD, ops.MUL)
    return any(n.op is ops.REDUCE and n.dtype.is_float and n.arg[0] in inexact for n in toposort(root))


@st.composite
def placements(draw, shape):
    devices = NAMES[: draw(st.integers(2, 4))]
    axis = draw(st.sampled_from([None, *range(len(shape))]))
    if axis is None:
        return Placement(devices)
    cuts = sorted(draw(st.integers(0, shape[axis])) for _ in devices[1:])
    return Placement(devices, axis, (*cuts, shape[axis]))


def contents(node: UOp) -> list[object]:
    count = math.prod(node.shape)
    numbers = [(7 * i + 3) % 11 - 5 for i in range(count)]
    if node.dtype is dtypes.bool:
        return [n > 0 for n in numbers]
    return [node.dtype.convert(abs(n) if not node.dtype.is_float else n / 2) for n in numbers]


def same(left: object, right: object) -> bool:
    return left == right or (left != left and right != right)


@given(tensor_graphs(), st.data())
def test_parts_are_together_the_value(graph, data):
    """A22: graphs of every family of nodes, each buffer laid out in its own way over the same devices."""
    if sums_floats(graph):
        return
    count = data.draw(st.integers(2, 4))
    table = {}
    for node in toposort(graph):
        if node.op is ops.BUFFER:
            where = data.draw(placements(node.shape))
            cuts = where.ends[: count - 1] + where.ends[-1:] * (count - len(where.ends[: count - 1]))
            ends = (*cuts[:-1], where.ends[-1]) if where.ends else ()
            table[node] = on(Placement(NAMES[:count], where.axis, ends), node)
    (spread,) = substitute([graph], table)
    memory = {node: contents(node) for node in toposort(spread) if node.op in (ops.BUFFER, ops.SCALAR)}

    expected = evaluate_tensors(spread.src, memory)
    for root, value, whole in zip(spread.src, placed(spread.src), expected, strict=True):
        for copy in joined(value, root.shape, memory_of_parts(memory)):
            assert all(map(same, whole, copy))


@given(tensor_graphs(), st.data())
def test_every_target_gets_the_value(graph, data):
    """A value is laid out as the memory that it is written to."""
    if sums_floats(graph):
        return
    root = graph.src[0]
    target = data.draw(placements(root.shape))
    spread = UOp(ops.COPY, root.dtype, (root,), Placement(target.devices))
    memory = {node: contents(node) for node in toposort(root) if node.op in (ops.BUFFER, ops.SCALAR)}
    (value,) = placed([spread], [target])

    assert target == value.where
    (expected,) = evaluate_tensors([root], memory)
    for copy in joined(value, root.shape, memory_of_parts(memory)):
        assert all(map(same, expected, copy))


def halves(*shape: int, axis: int = 0, number: int = 1) -> UOp:
    return on(split(TWO, axis, shape[axis]), buffer(number, *shape))


def copies(parts: tuple[UOp, ...]) -> list[tuple[int, ...]]:
    """The shapes of what travels."""
    return [node.shape for node in toposort(*parts) if node.op is ops.COPY]


def test_what_a_split_does_not_reach_is_left_as_it_is():
    node = buffer(1, 4) * 2.0
    assert [((node,), None)] == placed([node])


def test_elementwise_work_on_equal_layouts_sends_nothing():
    (value,) = placed([halves(4, 3) * halves(4, 3, number=2) + 1.0])
    assert (0, []) == (value.where.axis, copies(value.parts))


def test_what_is_whole_everywhere_is_cut_where_it_meets_a_split():
    (value,) = placed([on(Placement(TWO), buffer(1, 4)) + halves(4, number=2)])
    assert (0, []) == (value.where.axis, copies(value.parts))


def test_a_sum_over_the_split_sends_partial_results_only():
    (value,) = placed([reduced(halves(4, 3), 0)])
    assert (None, [(1, 3)] * 2) == (value.where.axis, copies(value.parts))


def test_a_sum_over_another_axis_sends_nothing():
    (value,) = placed([reduced(halves(4, 3), 1)])
    assert (0, []) == (value.where.axis, copies(value.parts))


def test_a_product_with_whole_weights_keeps_the_batch_split():
    (value,) = placed([matmul(halves(4, 3), on(Placement(TWO), buffer(2, 3, 5)))])
    assert (0, []) == (value.where.axis, copies(value.parts))


def test_a_product_whose_inner_axis_is_split_adds_partial_products():
    (value,) = placed([matmul(halves(4, 6, axis=1), halves(6, 5, number=2))])
    assert (None, [(4, 5, 1)] * 2) == (value.where.axis, copies(value.parts))


def test_the_smaller_operand_travels_and_before_it_is_repeated():
    (value,) = placed([expanded(halves(1, 3, axis=1, number=2), 8, 3) * halves(8, 3)])
    assert 0 == value.where.axis
    assert all(shape in ((1, 2), (1, 1)) for shape in copies(value.parts))


def test_a_slice_stays_where_it_is():
    """O14, as far as movement goes: each device keeps what it has of the box."""
    (value,) = placed([moved(ops.SHRINK, halves(4, 2), ((1, 3), (0, 2)))])
    assert ((1, 2), []) == (value.where.ends, copies(value.parts))


def test_a_write_of_a_slice_touches_the_parts_that_have_it():
    x = halves(4)
    region = (("shrink", ((0, 2),)),)
    (value,) = placed([UOp(ops.WRITE, x.dtype, (x, UOp.const(x.dtype, 7)), region)])
    assert [ops.WRITE, ops.BUFFER] == [part.op for part in value.parts]


def test_rows_picked_by_split_positions_stay_split():
    table, positions = on(Placement(TWO), buffer(1, 9, 3)), halves(4, number=2).cast(dtypes.int32)
    (value,) = placed([UOp(ops.GATHER, table.dtype, (table, positions))])
    assert (0, []) == (value.where.axis, copies(value.parts))


def test_devices_that_hold_nothing_take_no_part():
    """B118: two elements over four devices."""
    x = on(split(NAMES, 0, 2), buffer(1, 2))
    (value,) = placed([reduced(x, 0)])
    assert [3.0] * 4 == [copy[0] for copy in joined(value, (1,), memory_of_parts({x: [1.0, 2.0]}))]


def test_a_kernel_bound_to_its_memory_is_refused():
    run = Run("", (0,), (0,), (0,), result=0)
    launch = UOp(ops.LAUNCH, dtypes.float32, (halves(4),), run)
    with pytest.raises(DeviceError, match=r"launch works on memory.*axis 0 in CPU 0\.\.2, CPU:1 2\.\.4"):
        placed([launch])
