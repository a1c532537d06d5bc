"""Movements of parts are the parts of the movement."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.placement import Placement
from lazulite.ir.uop import UOp
from lazulite.schedule.split import moved
from support import schedules
from support.random_graphs import movement
from support.spread_values import NAMES, joined, memory_of_parts, on, part_buffers, placed

THREE = Placement(NAMES[:3], 0, (2, 2, 6))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data())
def test_a_law_gives_the_parts_of_the_result(shape, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, shape[axis]), min_size=1, max_size=2)))
    where = Placement(NAMES[: len(cuts) + 1], axis, (*cuts, shape[axis]))
    name, arg = movement(data.draw, tuple(shape))
    x = on(where, schedules.buffer(1, *shape))
    memory = {x: list(range(math.prod(shape)))}
    law = moved(ops.OPS[name], arg, tuple(shape), where)
    whole = UOp(ops.OPS[name], x.dtype, (x,), arg)

    if law is not None:
        parts = [UOp(whole.op, x.dtype, (p,), a) for p, a in zip(part_buffers(x), law.args, strict=True)]
        assert [part.shape for part in parts] == [law.where.part_shape(whole.shape, i) for i in range(len(parts))]
    for copy in joined(placed([whole])[0], whole.shape, memory_of_parts(memory)):
        assert evaluate_tensors([whole], memory)[0] == copy


@pytest.mark.parametrize(
    ("shape", "to", "where"),
    [
        ((6, 4), (24,), Placement(NAMES[:3], 0, (8, 8, 24))),
        ((6, 4), (3, 8), Placement(NAMES[:3], 0, (1, 1, 3))),
        ((6, 4), (3, 2, 4), Placement(NAMES[:3], 0, (1, 1, 3))),
        ((6, 4), (1, 6, 4), Placement(NAMES[:3], 1, (2, 2, 6))),
    ],
)
def test_a_reshape_keeps_parts_where_they_are(shape, to, where):
    law = moved(ops.RESHAPE, to, shape, THREE)
    assert law is not None and where == law.where


@pytest.mark.parametrize(
    ("op", "arg", "shape"), [(ops.RESHAPE, (2, 12), (6, 4)), (ops.RESHAPE, (4, 0), (6, 0)), (ops.FLIP, (0,), (6, 4))]
)
def test_what_moves_elements_between_parts_has_no_law(op, arg, shape):
    assert moved(op, arg, shape, THREE) is None


def test_an_axis_of_one_element_that_is_repeated_has_no_law():
    assert moved(ops.EXPAND, (5, 2), (1, 2), Placement(NAMES[:2], 0, (1, 1))) is None


def test_what_is_whole_everywhere_moves_everywhere():
    law = moved(ops.FLIP, (0,), (3,), Placement(NAMES[:2]))
    assert law is not None and ((0,), (0,)) == law.args
