"""Blocks are what one turn of shared ranges writes and reads."""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.schedule.cuts import adds_over, cut_added_up, cut_beside, cut_of, vanishes
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


def summed(place, outer, r):
    """A sum over one range."""
    return store(param(3, 4096), outer, reduce(ops.ADD, load(MEMORY, place), r))


def test_a_sum_over_the_rows_of_another_kernel_is_added_up_in_its_turns():
    other = reader(A * 32 + B * 8 + C, (A * 4 + B) * 16 + D, C)
    one = summed(H * 32 + R * 8 + J, (H * 8 + J) * 16 + D, R)

    assert {H: A, R: B} == cut_added_up(one, other, [one.src[2].src[0]], loads(other))


def test_a_sum_over_other_rows_is_not():
    other = reader(A * 32 + B * 8 + C, (A * 4 + B) * 16 + D, C)
    sums = [
        summed(H * 32 + R * 8 + J, (H * 4 + R) * 16 + D, J),
        summed(H * 32 + R * 8 + J, (J * 2 + H) * 16 + D, R),
        summed(H * 32 + R * 8 + J, (R * 8 + J) * 16 + D, H),
    ]

    assert all(cut_added_up(one, other, [one.src[2].src[0]], loads(other)) is None for one in sums)


def total(memory, place, value, r):
    """A statement that adds to what the turn of a range before has left."""
    return store(memory, place, load(memory.after(r), place) + value)


def test_turns_that_add_to_a_result_are_around_what_is_added():
    other = reader(A * 32 + B * 8 + C, (A * 4 + B) * 16 + D, C).src[0]
    adding = total(param(3, 4096), (A * 8 + C) * 16 + D, load(MEMORY, A * 32 + B * 8 + C), B)
    both = sink(other, adding)
    read = [load(MEMORY, A * 32 + B * 8 + C)]

    assert [frozenset(), {B}] == [adds_over(other), adds_over(adding)]
    assert {H: A, R: B} == cut_of(WRITTEN, read, both, across=True).shared
    assert vanishes(read, both, cut_of(WRITTEN, read, both, across=True))
