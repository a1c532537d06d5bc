"""Collectives send what is lacking, and combine in one order."""

from __future__ import annotations

import itertools
import math

import pytest

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.placement import Placement
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.collectives import Collectives, Placed, combined, cut
from support.schedules import buffer, expanded, nothing
from support.spread_values import NAMES, joined, memory_of_parts, on, part_buffers

LAYOUTS = [
    Placement(NAMES[:3]), Placement(NAMES[:3], 0, (1, 1, 5)), Placement(NAMES[:3], 0, (2, 4, 5)),
    Placement(NAMES[:3], 1, (1, 2, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), list(itertools.product(LAYOUTS, LAYOUTS)), ids=str)
def test_a_value_is_dealt_out_in_any_layout(first, second):
    x = on(first, buffer(1, 5, 4))
    value = Placed(part_buffers(x), first)
    parts = Collectives(nothing).dealt(value, (5, 4), second)
    memory = memory_of_parts({x: list(range(20))})

    for copy in joined(Placed(parts, second), (5, 4), memory):
        assert list(range(20)) == copy


def test_only_what_a_device_lacks_goes_there():
    first, second = Placement(NAMES[:2], 0, (2, 4)), Placement(NAMES[:2], 0, (3, 4))
    parts = Collectives(nothing).dealt(Placed(part_buffers(on(first, buffer(1, 4))), first), (4,), second)
    assert [(1,)] == [node.shape for node in toposort(*parts) if node.op is ops.COPY]


def test_constants_are_on_every_device():
    one = UOp.const(dtypes.float32, 1)
    assert one is Collectives(nothing).sent(one, "CPU:1")


def test_the_home_of_a_value_in_memory_is_that_of_its_memory():
    made = buffer(1, 4) * 2.0
    stored = buffer(2, 4).replace(arg=(2, 0, (4,), "CPU:3"))
    assert "CPU:3" == Collectives({made: stored}.get).home(made + 1.0)


def test_narrow_floats_travel_narrow_and_are_added_wide():
    """A22: what is sent is half as large as what is added."""
    parts = [buffer(n, 2, dtype=dtypes.float16) for n in range(3)]
    sent = Collectives(nothing).reduced([p.replace(arg=(*p.arg[:3], NAMES[p.arg[0]])) for p in parts], ops.ADD, NAMES)
    assert {dtypes.float16} == {node.dtype for node in toposort(*sent) if node.op is ops.COPY}
    (total,) = evaluate_tensors(
        [combined(parts, ops.ADD)], {p: [2048.0, 1.0] for p in parts[:1]} | {p: [1.0, 1.0] for p in parts[1:]}
    )
    assert [2050.0, 3.0] == total


@pytest.mark.parametrize("way", ["naive", "ring", "all-to-all"])
@pytest.mark.parametrize("shape", [(1,), (2, 3), (7,)], ids=str)
def test_every_way_combines_on_every_device(way, shape):
    """A22"""
    parts = [on(device, buffer(n, *shape)) for n, device in enumerate(NAMES)]
    sent = Collectives(nothing, way).reduced(parts, ops.ADD, NAMES)
    memory = {part: [float(10**n + i) for i in range(math.prod(shape))] for n, part in enumerate(parts)}

    assert [shape] * 4 == [each.shape for each in sent]
    assert [[1111.0 + 4 * i for i in range(math.prod(shape))]] * 4 == evaluate_tensors(sent, memory)


def test_an_all_to_all_agrees_with_the_naive_way_in_every_bit():
    parts = [on(device, buffer(n, 5)) for n, device in enumerate(NAMES)]
    memory = {part: [1e8 * (-1) ** n + 1.3 * i for i in range(5)] for n, part in enumerate(parts)}
    naive, pieces = [Collectives(nothing, way).reduced(parts, ops.ADD, NAMES) for way in ("naive", "all-to-all")]
    assert evaluate_tensors(naive, memory) == evaluate_tensors(pieces, memory)


def test_a_device_combines_a_piece_of_what_is_large():
    parts = [on(device, buffer(n, 1 << 16)) for n, device in enumerate(NAMES)]
    sent = Collectives(nothing).reduced(parts, ops.ADD, NAMES)
    assert {(1 << 14,)} == {node.shape for node in toposort(*sent) if node.op is ops.COPY}


def test_a_ring_goes_on_without_devices_that_hold_nothing():
    parts = [on(device, buffer(n, 3)) for n, device in enumerate(NAMES[:2])]
    sent = Collectives(nothing, "ring").reduced(parts, ops.MAX, NAMES)
    assert [[4.0, 5.0, 6.0]] * 4 == evaluate_tensors(sent, {parts[0]: [4.0, 2.0, 6.0], parts[1]: [1.0, 5.0, 3.0]})


def test_partial_results_are_combined_in_the_order_of_the_devices():
    parts = [buffer(n, 1) for n in range(3)]
    (total,) = evaluate_tensors([combined(parts, ops.ADD)], dict(zip(parts, ([1e30], [-1e30], [1.0]), strict=True)))
    assert [1.0] == total


def test_a_piece_of_what_repeats_has_fewer_repetitions():
    x = expanded(buffer(1, 1, 3), 8, 3)
    assert expanded(buffer(1, 1, 3), 2, 3) is cut(x, 0, 4, 6)
