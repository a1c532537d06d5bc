"""Staging copies an operand once for every turn of the loops around it."""

from random import Random

import pytest

from lazulite.analysis.access import coefficient
from lazulite.ir import ops
from lazulite.ir.blocks import effects_of
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import target
from lazulite.kernel.apply import apply
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Keep, Split, Stage, Tile, Vectorize
from lazulite.lower.linear import block_of
from lazulite.lower.loops import build
from lazulite.lower.stage_memory import stage_memory
from lazulite.pipeline import compile_kernel
from support.kernels import (
    TARGETS,
    assert_close,
    compiled,
    convolution,
    interpreted,
    listed,
    load,
    loop,
    matmul,
    param,
    random_memory,
    reduce,
    sink,
    softmax,
    store,
)
from support.products import Product

STEPS = (Split((1,), 4), Vectorize((1, 1)), Stage(2, ((2,), (1, 1))))


def _staged():
    return stage_memory(apply(matmul(3, 8, 5), STEPS), STEPS)


def test_the_copy_has_the_size_of_its_axes():
    (scratch,) = listed(_staged(), ops.SCRATCH)

    assert (0, 20, 64) == scratch.arg


def test_the_copy_is_made_in_the_loop_it_varies_with_and_not_further_in():
    (copy,) = listed(_staged(), ops.FOR)

    assert (1, 0) == block_of(copy).arg[0][1:]


def test_gates_move_into_the_copy():
    steps = (Stage(1, ((4,), (5,), (6,), (3,))),)
    kernel = stage_memory(apply(convolution(1, 2, 3, 4, 5), steps), steps)
    from_scratch = [node for node in listed(kernel, ops.LOAD) if node.src[0].op is ops.AFTER]

    assert [2] == [len(node.src) for node in from_scratch]


def test_a_staged_kernel_computes_the_same():
    kernel = matmul(3, 8, 5)
    memory = random_memory(kernel, Random(7))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS["widest"], STEPS, memory))


KEPT = (Split((1,), 4), Vectorize((1, 1)), Split((3,), 4), Vectorize((3, 1)), Keep((3,), (1,)))


def test_a_kept_value_is_computed_once():
    kernel = softmax(3, 8)

    assert 2 == len(listed(apply(kernel, KEPT), ops.EXP))
    assert 1 == len(listed(stage_memory(apply(kernel, KEPT), KEPT), ops.EXP))


def test_a_kept_value_is_stored_on_the_way_by_the_loop_that_reduces_it():
    program = build(stage_memory(apply(softmax(3, 8), KEPT), KEPT), TARGETS["widest"])
    (kept,) = [node for node in listed(program, ops.STORE) if node.src[0].op is ops.SCRATCH]
    (turn,) = [node for node in listed(program, ops.FOR) if kept in effects_of(node)]

    assert 1 == turn.arg
    assert 1 == len(listed(program, ops.EXP))


@pytest.mark.parametrize("machine", TARGETS)
def test_each_lane_and_row_of_a_kept_value_has_a_place(machine):
    """The rows of a softmax over short lines are lanes: the scratch memory holds a line for each."""
    kernel = softmax(9, 3)
    memory = random_memory(kernel, Random(9))
    steps = (Split((0,), 8), Split((0, 1), 4), Tile((0, 1, 0)), Vectorize((0, 1, 1)), Keep((3,), (1,)))
    (scratch,) = listed(stage_memory(apply(kernel, steps), steps), ops.SCRATCH)

    assert 3 * 8 == scratch.arg[1]
    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[machine], steps, memory))


def test_each_lane_of_a_staged_operand_has_a_place():
    kernel, steps = matmul(3, 8, 5), (*STEPS[:2], Stage(2, ((2,),)))
    memory = random_memory(kernel, Random(7))
    (scratch,) = listed(stage_memory(apply(kernel, steps), steps), ops.SCRATCH)

    assert 5 * 4 == scratch.arg[1]
    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS["widest"], steps, memory))


def test_a_value_that_two_reductions_share_is_kept_once():
    i, j, k = loop(0, 3), loop(1, 5), loop(2, 5)
    row, kept = load(param(1, 15), i * 5 + k) * 2, load(param(1, 15), i * 5 + j) * 2
    value = kept + reduce(ops.ADD, row, k) * reduce(ops.MAX, row, k)
    kernel, steps = sink(store(param(0, 15), i * 5 + j, value)), (Keep((2,), (1,)),)
    memory = random_memory(kernel, Random(10))

    assert 1 == len(listed(stage_memory(apply(kernel, steps), steps), ops.SCRATCH))
    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS["widest"], steps, memory))


def test_a_value_whose_ranges_are_cut_differently_is_not_kept():
    steps = (*KEPT[2:4], KEPT[4])

    assert 2 == len(listed(stage_memory(apply(softmax(3, 8), steps), steps), ops.EXP))


@pytest.mark.parametrize("columns", [8, 19, 64])
@pytest.mark.parametrize("machine", TARGETS)
def test_a_softmax_keeps_its_exponentials(machine, columns):
    kernel = softmax(6, columns)
    memory = random_memory(kernel, Random(8))
    steps = choose(kernel, TARGETS[machine])

    assert any(isinstance(step, Keep) for step in steps)
    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[machine], steps, memory))


def test_lanes_of_a_copy_run_along_memory():
    """A transposed operand is copied row by row."""
    i, j = loop(0, 16), loop(1, 16)
    kernel = sink(store(param(0, 256), i * 16 + j, load(param(1, 256), j * 16 + i)))
    steps = (Vectorize((1,)), Stage(1, ((1,), (0,))))
    (copied,) = [n for n in listed(stage_memory(apply(kernel, steps), steps), ops.LOAD) if n.src[0].op is ops.PARAM]

    assert [1] == [coefficient(copied.src[1], r) for r in copied.ranges if r.arg[1] == "lane"]


@pytest.mark.parametrize("transposed", [(False, False), (False, True), (True, False)], ids=str)
def test_operands_of_dot_products_are_packed_in_loops_whatever_their_sizes(transposed):
    """Nothing is written out for each element, also where blocks do not fill up."""
    machine = target("CPU:LLVM", ("avx2", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512vnni", "fma"))
    types = (dtypes.int8, dtypes.int8, dtypes.int32)
    odd, whole = (
        compile_kernel(product.kernel, machine, choose(product.kernel, machine)).code
        for product in [Product(*sizes, types, None, *transposed) for sizes in ((500, 300, 200), (512, 512, 512))]
    )

    assert len(odd) < 2 * len(whole)
