"""Blocks are what one turn of shared ranges writes and reads."""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.schedule.cuts import cut_beside, cut_of, vanishes
from support.kernels import load, loop, param, reduce, sink, store

H, R, J = loop(0, 2), loop(1, 4), loop(2, 8)
MEMORY = param(0, 64)
WRITTEN = store(MEMORY, H * 32 + R * 8 + J, load(param(1, 64), H * 32 + R * 8 + J))
A, B, C, D = loop(0, 2), loop(1, 4), loop(2, 8), loop(3, 16)


def reader(place, outer, *reduced):
    """A kernel that sums what it reads."""
    return sink(store(param(2, 4096), outer, reduce(ops.ADD, load(MEMORY, place), *reduced)))


def loads(root):
    return [root.src[0].src[2].src[0]]


def test_the_outermost_ranges_are_shared():
    kernel = reader(A * 32 + B * 8 + C, A * 4 + B, C)
    cut = cut_of(WRITTEN, loads(kernel), kernel)

    assert {H: A, R: B} == cut.shared
    assert (8, 8) == (cut.elements, cut.turns)
    assert vanishes(loads(kernel), kernel, cut)


def test_a_result_as_long_as_a_block_does_not_vanish():
    value = load(MEMORY, A * 32 + B * 8 + C)
    kernel = sink(store(param(2, 64), A * 32 + B * 8 + C, value))

    assert not vanishes([value], kernel, cut_of(WRITTEN, [load(MEMORY, A * 32 + B * 8 + C)], reader(
        A * 32 + B * 8 + C, A * 4 + B, C)))  # fmt: skip


def test_rows_and_columns_are_cut_across_only_where_that_is_asked_for():
    kernel = reader(A * 32 + B * 8 + C, A * 8 + C, B)
    assert {H: A} == cut_of(WRITTEN, loads(kernel), kernel).shared
    cut = cut_of(WRITTEN, loads(kernel), kernel, across=True)

    assert {H: A, J: C} == cut.shared
    assert (4, 16) == (cut.elements, cut.turns)
    assert B is cut.within(linear(A * 32 + B * 8 + C), [A, C])
    assert R is cut.within(linear(WRITTEN.src[1]), [H, J])


def test_what_is_walked_as_no_block_is_not_cut():
    kernel = reader(A * 32 + B * 8 + C + 1, A * 4 + B, C)

    assert cut_of(WRITTEN, loads(kernel), kernel) is None


def test_results_over_the_same_rows_of_what_both_read_lie_beside_each_other():
    one, other = (
        reader(H * 32 + R * 8 + J, (H * 4 + R) * 16 + D, J),
        reader(A * 32 + B * 8 + C, (A * 4 + B) * 16 + D, C),
    )
    cut = cut_beside(one.src[0], other, loads(one), loads(other))

    assert {H: A, R: B} == cut.shared
    assert 16 == cut.elements


def test_results_over_rows_and_over_columns_do_not():
    one, other = (
        reader(H * 32 + R * 8 + J, (H * 4 + R) * 16 + D, J),
        reader(A * 32 + B * 8 + C, (A * 8 + C) * 16 + D, B),
    )

    assert cut_beside(one.src[0], other, loads(one), loads(other)) is None
