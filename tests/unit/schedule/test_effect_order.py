"""Two views overlap only where some element lies in both."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.schedule.effect_order import View, overlap

X = UOp(ops.BUFFER, dtypes.int32, (), (0, 0, (4, 6), "CPU"))


@st.composite
def boxes(draw):
    """A box of the storage, perhaps seen with its axes exchanged, and its elements."""
    cut = []
    for size in X.shape:
        begin = draw(st.integers(0, size - 1))
        cut.append((begin, draw(st.integers(begin + 1, size))))
    region = [("shrink", tuple(cut))]
    if draw(st.booleans()):
        region.append(("permute", (1, 0)))
    elements = np.arange(24).reshape(X.shape)[tuple(slice(*ends) for ends in cut)]
    return View(X, tuple(region)), set(elements.ravel().tolist())


@given(boxes(), boxes())
def test_boxes_overlap_exactly_where_they_share_elements(left, right):
    assert bool(left[1] & right[1]) == overlap(left[0], right[0])


def test_every_second_element_leaves_the_others():
    def strided(begin):
        return (("reshape", (24,)), ("reshape", (12, 2)), ("shrink", ((0, 12), (begin, begin + 1))))

    flat = UOp(ops.BUFFER, dtypes.int32, (), (0, 0, (24,), "CPU"))

    assert not overlap(View(flat, strided(0)), View(flat, strided(1)))
    assert overlap(View(flat, strided(0)), View(flat))
