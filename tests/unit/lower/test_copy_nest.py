"""Copies hold each element once and are read and written in vectors where either side is contiguous."""

from random import Random

import numpy as np
import pytest

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.parse import parse
from lazulite.ir.target import target
from lazulite.kernel.apply import apply
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Split, Stage, Vectorize
from lazulite.kernel.steps import parse as parse_steps
from lazulite.lower.stage_memory import stage_memory
from lazulite.pipeline import lower
from support.kernels import (
    TARGETS,
    assert_close,
    compiled,
    convolution,
    interpreted,
    listed,
    load,
    loop,
    lowered,
    matmul,
    param,
    random_memory,
    sink,
    store,
)
from support.statements import attention

WINDOW = (Stage(1, ((4,), ((2,), (5,)), ((3,), (6,)))),)


def test_places_and_elements_of_a_window_share_an_axis_with_the_border():
    kernel = stage_memory(apply(convolution(1, 2, 3, 4, 5), WINDOW), WINDOW)

    assert [2 * 6 * 7] == [node.arg[1] for node in listed(kernel, ops.SCRATCH)]


@pytest.mark.parametrize("machine", TARGETS)
def test_a_copied_window_computes_the_same(machine):
    kernel = convolution(2, 3, 4, 6, 20)
    steps = (Split((3,), 4), Vectorize((3, 1)), Stage(1, ((4,), ((2,), (5,)), ((3, 0), (3, 1), (6,)))))
    memory = random_memory(kernel, Random(4))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[machine], steps, memory))


@pytest.mark.parametrize("machine", TARGETS)
def test_an_operand_that_lies_across_is_copied_in_square_blocks(machine):
    kernel = matmul(5, 40, 50, right=True)
    steps = (Split((1,), 8), Vectorize((1, 1)), Stage(2, ((2,), (1, 1))))
    memory = random_memory(kernel, Random(4))
    copied = listed(stage_memory(apply(kernel, steps), steps), ops.STORE)
    rows = {r.arg[1] for node in copied for r in node.src[2].ranges if r.arg[0][0] >= 1 << 16}

    assert {"loop", "row", "lane"} == rows
    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[machine], steps, memory))


def test_ranges_that_do_not_move_along_one_axis_cannot_share_one():
    i, j = loop(0, 4), loop(1, 3)
    kernel = sink(store(param(0, 12), i * 3 + j, load(param(1, 40), i * 3 + j, (i + j * 2) < 5)))
    steps = (Stage(1, (((0,), (1,)),)),)
    with pytest.raises(StageError, match="otherwise than along it"):
        stage_memory(apply(kernel, steps), steps)


def test_a_copy_of_nothing_but_zeros_reads_nothing():
    """Behind the border."""
    kernel = convolution(1, 1, 4, 1, 4)
    memory = random_memory(kernel, Random(1))
    found = compiled(kernel, TARGETS["widest"], WINDOW, memory)

    np.testing.assert_allclose(found[0], interpreted(kernel, memory)[0], rtol=1e-5)


@pytest.mark.parametrize("machine", TARGETS)
def test_the_remainder_of_a_copy_gates_also_the_loads_that_say_where_others_load(machine):
    kernel = parse(
        "kernel\nparam p0 float32[18]\nparam p1 float32[1]\nparam p2 int32[18]\nloop r0 in 0..18\n"
        "t0 = p2[r0].cast(index)\np0[r0] = p1[t0 if (0 <= t0) & (t0 < 1)]"
    )
    steps = parse_steps("partition 0 1\nsplit 0.0 2\nvectorize 0.0.1\nreorder 0.1 0.0.0\nstage 1 0.1 0.0.0 0.0.1")
    memory = random_memory(kernel, Random(2))
    expected = interpreted(kernel, memory)

    assert_close(expected, interpreted(lowered(kernel, TARGETS[machine], steps), memory))
    assert_close(expected, compiled(kernel, TARGETS[machine], steps, memory))


@pytest.mark.parametrize("keys", [67, 72, 90])
@pytest.mark.parametrize("l2", [1 << 16, 1 << 17])
def test_a_copy_that_serves_blocks_of_any_length_reads_nothing_beyond_its_memory(keys: int, l2: int):
    """One of the most turns that a block may have would, where the last strip is short: the interpreter refuses it."""
    narrow = target("CPU:LLVM", ("avx2", "fma"), 1 << 12, l2)
    kernel = attention(heads=1, rows=keys, keys=keys, size=4, causal=True)
    memory = random_memory(kernel, Random(keys))

    assert_close(interpreted(kernel, memory), interpreted(lower(kernel, narrow, choose(kernel, narrow)), memory))
