"""Ranges are split where memory has borders, and the meaning stays."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.uop import UOp, index
from lazulite.kernel.borders import regroup
from support.kernels import (
    assert_close,
    interpreted,
    listed,
    load,
    loop,
    param,
    random_kernel,
    random_memory,
    reduce,
    sink,
    store,
)


@given(st.randoms(use_true_random=False))
def test_splitting_keeps_the_meaning(rng: Random) -> None:
    kernel = random_kernel(rng)
    memory = random_memory(kernel, rng)

    assert_close(interpreted(kernel, memory), interpreted(regroup(kernel), memory))


def _tiled(size: int, extent: int, sums: int = 3) -> UOp:
    """The sums over the middle axis of (tiles, sums, size), stored in order."""
    i, k = loop(0, extent), loop(1, sums)
    value = load(param(1, extent * sums), i // size * (size * sums) + k * size + i % size)
    return sink(store(param(0, extent), i, reduce(ops.ADD, value, k)))


def _sizes(kernel: UOp) -> list[int]:
    return sorted(int(r.src[0].value) for r in listed(kernel, ops.RANGE))


def test_a_border_that_an_index_knows_ends_a_range() -> None:
    kernel = regroup(_tiled(32, 96))

    assert [3, 3, 32] == _sizes(kernel)
    assert not listed(kernel, ops.FLOORDIV) and not listed(kernel, ops.MOD)
    memory = random_memory(kernel, Random(0))
    assert_close(interpreted(_tiled(32, 96), memory), interpreted(kernel, memory))


def test_a_range_of_a_reduction_is_split_too() -> None:
    k = loop(0, 64)
    kernel = sink(store(param(0, 1), index(0), reduce(ops.ADD, load(param(1, 128), k // 16 * 32 + k % 16), k)))
    found = regroup(kernel)

    assert [4, 16] == _sizes(found)
    memory = random_memory(kernel, Random(0))
    assert_close(interpreted(kernel, memory), interpreted(found, memory))


def test_short_and_uneven_parts_stay_together() -> None:
    assert [3, 96] == _sizes(regroup(_tiled(8, 96)))
    assert [3, 80] == _sizes(regroup(_tiled(32, 80)))


def test_turns_that_write_one_place_again_stay_turns() -> None:
    """Of a range that stores know by its remainder only, the other part would be lost."""
    turn = loop(0, 96)
    kernel = sink(store(param(0, 32), turn % 32, load(param(0, 32), turn % 32) + 1.0))

    assert [96] == _sizes(regroup(kernel))
