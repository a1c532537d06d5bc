"""Kernels stand in an order that copies only what no order can keep apart, and of that the smaller side."""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.uop import UOp, toposort
from support.schedules import Scheduled, buffer, expanded, moved, reduced, reshaped, scheduled

X, Y = buffer(1, 4, 8), buffer(2, 4, 8)


def box(begin: int, end: int) -> tuple[str, object]:
    return "shrink", ((begin, end), (0, 8))


def rows(x: UOp, begin: int, end: int | None = None) -> UOp:
    return moved(ops.SHRINK, x, box(begin, begin + 1 if end is None else end)[1])


def write(previous: UOp, value: UOp, begin: int, end: int | None = None) -> UOp:
    region = (box(begin, begin + 1 if end is None else end),)
    return UOp(ops.WRITE, previous.dtype, (previous, value), region)


def copied(result: Scheduled) -> list[int]:
    """The sizes of what lies aside."""
    return sorted(t.nbytes for t in result.schedule.plan.temporaries)


def test_a_reader_of_a_part_goes_before_the_write_of_that_part() -> None:
    """The second write reads what the first replaces: it only has to be done first."""
    value = write(write(X, rows(Y, 1), 0), rows(X, 0) * 2.5, 2)
    result = scheduled([value], [X])

    assert (2, []) == (len(result.kernels), copied(result))


def test_writes_of_parts_that_others_read_elsewhere_need_no_copy() -> None:
    value = X
    for row in range(3):
        value = write(value, rows(value, 3) * 2.5, row)
    result = scheduled([value], [X])

    assert (3, []) == (len(result.kernels), copied(result))


def test_a_value_that_is_written_and_read_again_is_not_read_from_the_target() -> None:
    """Each row is made of the row above: no row is computed twice, and nothing is copied."""
    value = X
    for row in range(3):
        value = write(value, rows(value, row) * 2.5, row + 1)

    assert 3 == len(scheduled([value], [X]).kernels)


def test_one_side_of_a_swap_is_copied() -> None:
    value = write(write(X, rows(X, 2, 4), 0, 2), rows(X, 0, 2), 2, 4)
    result = scheduled([value], [X])

    assert (3, [64]) == (len(result.kernels), copied(result))


def test_the_smaller_side_of_a_cycle_is_copied() -> None:
    spread = expanded(rows(X, 0), 4, 8)
    result = scheduled([write(X, rows(Y, 1) * 2.5, 0), Y + spread], [X, Y])

    assert [32] == copied(result)


def test_each_of_two_cycles_is_cut_once() -> None:
    a, b = buffer(3, 16), buffer(4, 16)
    result = scheduled([Y, X, b, a], [X, Y, a, b])

    assert [64, 128] == copied(result)
    assert 6 == len(result.kernels)


def test_a_transposed_update_of_a_part_copies_that_part() -> None:
    square = rows(reshaped(X, 4, 8), 0, 4)
    part = moved(ops.SHRINK, square, ((0, 4), (0, 4)))
    region = (("shrink", ((0, 4), (0, 4))),)
    turned = moved(ops.PERMUTE, part, (1, 0))
    result = scheduled([UOp(ops.WRITE, X.dtype, (X, turned * 2.5), region)], [X])

    assert [64] == copied(result)


def test_a_reader_that_is_no_write_still_comes_first() -> None:
    result = scheduled([reduced(X, 0, 1), write(X, rows(Y, 0), 1)], [None, X])

    assert (2, []) == (len(result.kernels), copied(result))
    assert (0,) == result.schedule.plan.launches[-1].writes


def test_what_is_written_in_part_and_then_read_is_loaded_once_it_is_stored() -> None:
    """A cache with a new row: no reader chooses between old and new elements, so nothing of it is copied."""
    held = write(X, rows(Y, 1), 0)
    result = scheduled([held, reduced(held * Y, 0, 1)], [X, None])

    assert (2, []) == (len(result.kernels), copied(result))
    assert not any(node.op is ops.WHERE for kernel in result.kernels for node in toposort(kernel))
    assert 0 in result.schedule.plan.launches[1].reads


def test_old_and_new_contents_in_one_kernel_are_told_apart() -> None:
    """The reader cannot come before the write and after it: it chooses between old and new elements itself."""
    held = write(X, rows(Y, 1), 0)
    result = scheduled([held, held + X * 2.5], [X, None])

    assert any(node.op is ops.WHERE for kernel in result.kernels for node in toposort(kernel))
