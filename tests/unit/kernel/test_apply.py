"""Applying steps changes how a kernel is computed, never what."""

from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.evaluate import run_kernel
from lazulite.ir.uop import UOp, substitute
from lazulite.kernel.apply import apply
from lazulite.kernel.steps import Group, Parallel, Partition, Reorder, Split, Tile, Vectorize
from support.kernels import (
    assert_close,
    interpreted,
    legal,
    listed,
    load,
    loop,
    matmul,
    param,
    random_kernel,
    random_memory,
    random_steps,
    reduce,
    sink,
    store,
)


@given(st.randoms(use_true_random=False))
def test_steps_keep_the_meaning_of_a_kernel(rng: Random):
    kernel = random_kernel(rng)
    steps = random_steps(kernel, rng)
    assume(legal(kernel, steps))
    memory = random_memory(kernel, rng)

    assert_close(interpreted(kernel, memory), interpreted(apply(kernel, steps), memory))


def test_no_steps_only_number_the_ranges():
    kernel = apply(matmul(2, 3, 4), ())

    assert [(0, 0), (1, 1), (2, 2)] == sorted(r.arg[0] for r in listed(kernel, ops.RANGE))


def test_an_exact_split_needs_no_gate():
    kernel = apply(matmul(8, 3, 4), (Split((0,), 4),))

    assert all(len(node.src) == 2 for node in listed(kernel, ops.LOAD))


def test_a_remainder_gates_loads_and_stores_that_vary_with_the_range():
    kernel = apply(matmul(7, 3, 4), (Split((0,), 4), Tile((0, 1))))
    gated = {node.src[0].arg[0] for node in listed(kernel, ops.LOAD) if len(node.src) == 3}

    assert {1} == gated
    assert all(len(node.src) == 4 for node in listed(kernel, ops.STORE))


@pytest.mark.parametrize("least", [0, 1])
def test_rows_behind_an_end_that_varies_read_the_last_row_and_store_nothing(least: int):
    rows = UOp(ops.SCALAR, dtypes.index, (), (3, least, 9))
    (r,) = [node for node in listed(matmul(9, 3, 4), ops.RANGE) if node.src[0].is_const(9)]
    kernel = substitute([matmul(9, 3, 4)], {r: r.replace(src=(rows,))})[0]
    split = apply(kernel, (Split(r.arg[0], 4), Tile((*r.arg[0], 1))))

    assert all(len(node.src) == 2 for node in listed(split, ops.LOAD))
    assert all(len(node.src) == 4 for node in listed(split, ops.STORE))
    once = apply(kernel, (Split(r.arg[0], 9), Tile((*r.arg[0], 1))))  # no loop around the tile is left out for no row
    assert (3 if least == 0 else 2) == max(len(node.src) for node in listed(once, ops.LOAD))
    for turns in {least, 1, 4, 6, 9}:
        plain, tiled = ({slot: list(values) for slot, values in random_memory(kernel, Random(0)).items()} for _ in "ab")
        run_kernel(kernel, plain, {3: turns})
        run_kernel(split, tiled, {3: turns})
        assert plain == tiled


@pytest.mark.parametrize("least", [0, 1])
def test_loops_of_blocks_end_where_a_range_does_that_varies(least: int):
    """Without a gate, and without turns behind the end."""
    rows = UOp(ops.SCALAR, dtypes.index, (), (3, least, 9))
    (r,) = [node for node in listed(matmul(9, 3, 4), ops.RANGE) if node.src[0].is_const(9)]
    kernel = substitute([matmul(9, 3, 4)], {r: r.replace(src=(rows,))})[0]
    blocks = apply(kernel, (Split(r.arg[0], 4), Split((*r.arg[0], 0), 2)))

    assert all(len(node.src) == 3 for node in listed(blocks, ops.STORE))
    for turns in {least, 1, 4, 6, 9}:
        plain, blocked = (
            {slot: list(values) for slot, values in random_memory(kernel, Random(0)).items()} for _ in "ab"
        )
        run_kernel(kernel, plain, {3: turns})
        run_kernel(blocks, blocked, {3: turns})
        assert plain == blocked


def test_a_remainder_of_a_sum_of_products_adds_zeros_and_no_choice():
    assert not listed(apply(matmul(2, 3, 7), (Split((2,), 4), Tile((2, 1)))), ops.WHERE)


def test_a_remainder_of_a_maximum_becomes_its_identity():
    i, k = loop(0, 2), loop(1, 7)
    kernel = sink(store(param(0, 2), i, reduce(ops.MAX, load(param(1, 14), i * 7 + k), k)))
    (choice,) = listed(apply(kernel, (Split((1,), 4), Tile((1, 1)))), ops.WHERE)

    assert choice.src[2].is_const(float("-inf"))


def test_a_partition_writes_the_statement_twice():
    assert 2 == len(apply(matmul(7, 3, 4), (Partition((0,), 4),)).src)


def test_a_group_is_a_reduction_of_reductions():
    kernel = apply(matmul(2, 3, 8), (Split((2,), 4), Group((2, 0))))

    assert [1, 1] == [len(node.src) - 1 for node in listed(kernel, ops.REDUCE)]


def test_ranges_with_one_turn_are_gone():
    assert 2 == len(listed(apply(matmul(1, 3, 4), ()), ops.RANGE))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ((Tile((9,)),), "there is no range 9"),
        ((Partition((0,), 8),), "cannot be parted at 8"),
        ((Split((0,), 2), Partition((0, 1), 1)), "part of a split"),
        ((Parallel((1,)),), "only the outermost loop can be parallel"),
        ((Vectorize((0,)), Vectorize((1,))), "two vectorized ranges"),
        ((Split((0,), 0),), "cannot be split by 0"),
        ((Tile((0,)), Split((0,), 2)), "marked already: row"),
        ((Vectorize((0,)), Tile((0,))), "marked already: lane"),
        ((Group((2,)), Split((2,), 2)), "marked already: group"),
        ((Group((0,)),), "belongs to no reduction"),
        ((Reorder(((0,), (0,))),), "named twice"),
        ((Parallel((2,)),), "of a reduction cannot be parallel"),
    ],
)
def test_illegal_steps_say_why(steps, message):
    with pytest.raises(StageError, match=message):
        apply(matmul(8, 8, 8), steps)


def test_a_reduction_can_be_ordered_outside_of_the_loops_of_its_statement():
    """Its partial sums then wait in the memory of the result."""
    kernel = apply(matmul(8, 8, 8), (Reorder(((2,), (0,), (1,))),))
    order = [r.arg[0][1:] for r in sorted(listed(kernel, ops.RANGE), key=lambda r: r.arg[0])]

    assert [(2,), (0,), (1,)] == order


def test_a_reduction_of_another_type_than_its_result_stays_inside():
    """Its partial sums cannot wait in the memory of the result."""
    i, j, k = loop(0, 4), loop(1, 4), loop(2, 4)
    product = load(param(1, 16), i * 4 + k) * load(param(2, 16), k * 4 + j)
    total = reduce(ops.ADD, product, k).cast(dtypes.int32)
    with pytest.raises(StageError, match="partial results cannot wait"):
        apply(sink(store(param(0, 16, dtypes.int32), i * 4 + j, total)), (Reorder(((2,), (0,), (1,))),))


def test_the_inner_loop_of_a_split_ends_early_in_the_last_block():
    kernel = apply(matmul(7, 3, 4), (Split((0,), 4),))
    inner = next(r for r in listed(kernel, ops.RANGE) if r.arg[0][1:] == (0, 1))

    assert (3, 4) == inner.src[0].bounds
    assert all(len(node.src) == 2 for node in listed(kernel, ops.LOAD))


def test_a_statement_over_nothing_is_gone_and_a_sum_of_nothing_is_zero():
    i, none = loop(0, 3), loop(1, 0)
    total = reduce(ops.ADD, load(param(1, 1), none), none)
    kernel = apply(sink(store(param(0, 3), i, total), store(param(2, 3), none, load(param(1, 1), none))), ())

    assert 1 == len(kernel.src)
    assert kernel.src[0].src[2].is_const(0.0)
