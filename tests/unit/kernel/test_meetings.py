"""Turns of a loop that never meet in memory are told from those that may."""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import target
from lazulite.ir.uop import UOp
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.meetings import apart
from support.kernels import listed, load, loop, param, reduce, sink, store

MATRIX, TABLE = param(0, 6 * 32), param(1, 6, dtypes.int32)
TARGET = target("CPU:LLVM", (), 48 << 10, 2 << 20)


def _row(at: UOp) -> UOp:
    """The begin of a row whose number stands in a table."""
    return load(TABLE, at).cast(dtypes.index) * 32


def _meeting(kernel: UOp) -> list[int]:
    """The extents of the ranges whose turns may meet."""
    facts = KernelFacts(kernel, TARGET)
    return sorted(int(r.src[0].value) for r in listed(kernel, ops.RANGE) if r not in apart(facts))


def test_columns_of_rows_that_are_named_by_a_table_stay_apart() -> None:
    k, j = loop(0, 6), loop(1, 32)
    changed = load(MATRIX, _row(k) + j) - load(MATRIX, _row(k * 0) + j) * load(MATRIX, _row(k))

    assert [6] == _meeting(sink(store(MATRIX, _row(k) + j, changed)))


def test_two_rows_may_be_written_at_once() -> None:
    k, j = loop(0, 6), loop(1, 32)
    one, two = _row(k) + j, _row(k * 0) + j
    kernel = sink(store(MATRIX, one, load(MATRIX, two)), store(MATRIX, two, load(MATRIX, one)))

    assert [6] == _meeting(kernel)


def test_neighbours_and_other_strides_meet() -> None:
    k, j = loop(0, 6), loop(1, 16)
    next_one = sink(store(MATRIX, _row(k) + j + 1, load(MATRIX, _row(k) + j)))
    mirrored = sink(store(MATRIX, _row(k) + j, load(MATRIX, _row(k) + (j * -1 + 15))))

    assert [6, 16] == _meeting(next_one) == _meeting(mirrored)


def test_what_each_turn_reads_for_itself_meets_what_others_write() -> None:
    """The same read is harmless before the loop, and not where a loop or a reduction is within each turn."""
    k, j, i, p = loop(0, 6), loop(1, 4), loop(2, 8), loop(3, 5)
    corner = load(MATRIX, _row(k))
    loops = sink(store(MATRIX, _row(k) + j * 8 + i, corner + 1.0))
    scaled = reduce(ops.ADD, load(MATRIX, _row(k) + p) * load(param(2, 20), j * 5 + p), p)
    reductions = sink(store(MATRIX, _row(k) + j, scaled))

    assert [4, 6] == _meeting(loops)
    assert [4, 6] == _meeting(reductions)


def test_a_read_of_written_memory_stays_in_the_loop_that_writes() -> None:
    """Without a loop of its own, what a short sum reads would be read once, before all turns."""

    def substitution(size: int) -> UOp:
        solved, i, p = param(0, size), loop(0, 6), loop(1, size)
        row = load(TABLE, i).cast(dtypes.index)
        known = reduce(ops.ADD, load(param(2, 6 * size), row * size + p) * load(solved, p), p)
        return sink(store(solved, row, known))

    assert [4, 6] == _meeting(substitution(4))
    assert [6] == _meeting(substitution(64))


def test_rows_whose_elements_are_looked_up_stay_apart_as_far_as_the_places_are_inside() -> None:
    i, k = loop(0, 6), loop(1, 4)
    place = load(TABLE, k).cast(dtypes.index)
    inside = place.minimum(31).maximum(0)
    for row, meeting in (
        (i * 32 + inside, [4]),
        (i * 32 + inside + 192, [4]),
        (i * 31 + inside, [4, 6]),
        (i * 32 + place, [4, 6]),
    ):
        counting = sink(store(MATRIX, row, load(MATRIX, row) + 1.0))
        assert meeting == _meeting(counting)
