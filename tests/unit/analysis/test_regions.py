"""Regions lead to places in a value, and back, and tell when they share none."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lazulite.analysis.regions import Region, apply_region, invert, may_share
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.uop import UOp

SHAPE = (4, 6)
X = UOp(ops.BUFFER, dtypes.int32, (), (0, 0, SHAPE, "CPU"))


def elements(node: UOp, contents: list[int]) -> list[int]:
    return evaluate_tensors([node], {X: contents})[0]


@st.composite
def regions(draw: st.DrawFn) -> Region:
    """A box, perhaps turned, mirrored or flattened, perhaps every second element of it."""
    cut = []
    for size in SHAPE:
        begin = draw(st.integers(0, size - 1))
        cut.append((begin, draw(st.integers(begin + 1, size))))
    region: list[tuple[str, object]] = [("shrink", tuple(cut))]
    sizes = [end - begin for begin, end in cut]
    if draw(st.booleans()):
        region.append(("permute", (1, 0)))
        sizes.reverse()
    if draw(st.booleans()):
        region.append(("flip", (draw(st.integers(0, 1)),)))
    count = prod(sizes)
    if draw(st.booleans()):
        region.append(("reshape", (count,)))
        if count % 2 == 0 and draw(st.booleans()):
            odd = draw(st.integers(0, 1))
            region += [("reshape", (count // 2, 2)), ("shrink", ((0, count // 2), (odd, odd + 1)))]
    return tuple(region)


@given(regions(), regions())
def test_regions_that_share_an_element_are_never_told_apart(left: Region, right: Region) -> None:
    """A1."""
    both = [set(elements(apply_region(X, region), list(range(24)))) for region in (left, right)]

    assert may_share(SHAPE, left, right) or both[0].isdisjoint(both[1])


@given(regions())
def test_a_region_turned_round_brings_its_elements_back(region: Region) -> None:
    there = apply_region(X, region)
    back = np.array(elements(apply_region(there, invert(region, SHAPE)), list(range(1, 25))))

    assert set(elements(there, list(range(1, 25)))) == set(back.tolist()) - {0}
    assert all(value in (0, place) for place, value in enumerate(back.tolist(), 1))


def test_rows_columns_and_strides_are_told_apart() -> None:
    def strided(odd: int) -> Region:
        return ("reshape", (24,)), ("reshape", (12, 2)), ("shrink", ((0, 12), (odd, odd + 1)))

    def column(place: int) -> Region:
        return (("shrink", ((0, 4), (place, place + 1))),)

    assert not may_share(SHAPE, column(1), column(2))
    assert not may_share((24,), strided(0), strided(1))
    assert may_share((24,), strided(0), ())
