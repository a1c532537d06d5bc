"""Writes of memory that is read in the same program."""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.uop import UOp
from lazulite.schedule.versions import stores_of
from support.schedules import buffer, matmul, moved, reduced, scheduled

X, Y = buffer(1, 4, 4), buffer(2, 4, 4)


def write(previous: UOp, value: UOp, *region: tuple[str, object]) -> UOp:
    return UOp(ops.WRITE, previous.dtype, (previous, value), region)


def test_an_elementwise_update_is_one_kernel_in_place() -> None:
    result = scheduled([X * 2.5 + X], [X])

    assert 1 == len(result.kernels)
    assert (0,) == result.schedule.plan.launches[0].writes
    assert () == result.schedule.plan.temporaries


def test_a_reader_of_the_old_contents_runs_first() -> None:
    result = scheduled([reduced(X, 0, 1), X * 2.5], [None, X])
    reader, writer = result.schedule.plan.launches

    assert (0,) == writer.writes
    assert reader.writes != (0,)


def test_a_transposed_update_is_computed_aside() -> None:
    result = scheduled([moved(ops.PERMUTE, X, (1, 0)) * 2.5], [X])

    assert 2 == len(result.kernels)
    assert 1 == len(result.schedule.plan.temporaries)


def test_a_cross_update_needs_one_copy() -> None:
    """Both targets are read by the other's new value: no order does without a copy."""
    result = scheduled([X + reduced_spread(Y), Y + reduced_spread(X)], [X, Y])

    assert {0, 1} == {w for launch in result.schedule.plan.launches for w in launch.writes if w < 2}


def reduced_spread(x: UOp) -> UOp:
    return UOp(ops.EXPAND, x.dtype, (reduced(x, 0, 1),), x.shape)


def test_a_write_to_a_part_stores_that_part_only() -> None:
    row = ("shrink", ((0, 1), (0, 4)))
    value = moved(ops.SHRINK, X, row[1]) * 2.5
    result = scheduled([write(X, value, row)], [X])
    (launch,) = result.schedule.plan.launches

    assert (0,) == launch.writes
    assert 4 == sum_of_extents(result.kernels[0])


def sum_of_extents(kernel: UOp) -> int:
    return sum(int(r.vmax) + 1 for r in kernel.src[0].ranges)


def test_a_chain_of_partial_writes_is_stored_in_program_order() -> None:
    first, second = ("shrink", ((0, 2), (0, 4))), ("shrink", ((1, 3), (0, 4)))
    one = moved(ops.SHRINK, Y, first[1])
    value = write(write(X, one, first), one * 2.5, second)

    assert [0, 1] == [s.destination.sequence for s in stores_of(value, X, 0)]
    assert 2 == len(scheduled([value], [X]).kernels)


def test_writing_a_value_that_was_not_there_before_replaces_everything() -> None:
    (store,) = stores_of(X + Y, X, 0)

    assert () == store.destination.region


def test_a_product_into_its_own_operand_is_computed_aside() -> None:
    result = scheduled([matmul(X, Y)], [X])

    assert 2 == len(result.kernels)
