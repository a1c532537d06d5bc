"""Hints change the time that loads and stores take, and nothing else."""

from random import Random

import numpy as np
import pytest

from lazulite.ir import ops
from lazulite.ir.parse import parse
from lazulite.ir.text import to_text
from lazulite.kernel.apply import apply
from lazulite.kernel.steps import Parallel, Prefetch, Split, Stream, Vectorize
from lazulite.lower.hints import mark
from support.kernels import (
    TARGETS,
    assert_close,
    compiled,
    interpreted,
    listed,
    load,
    loop,
    lowered,
    param,
    random_memory,
    sink,
    softmax,
    store,
)

STEPS = (Split((1,), 16), Vectorize((1, 1)), Split((3,), 16), Vectorize((3, 1)), Prefetch(1, (3,), (0,)), Stream(0))


def test_the_loads_over_the_range_look_one_turn_ahead():
    marked = mark(apply(softmax(3, 32), STEPS), STEPS)

    assert [None, None, 32] == sorted((node.arg for node in listed(marked, ops.LOAD)), key=lambda arg: arg or 0)
    assert ["stream"] == [node.arg for node in listed(marked, ops.STORE)]


def test_a_range_that_an_operand_does_not_vary_with_gives_no_distance():
    steps = (Prefetch(1, (3,), (2,)),)

    assert {None} == {node.arg for node in listed(mark(apply(softmax(3, 32), steps), steps), ops.LOAD)}


@pytest.mark.parametrize("columns", [32, 33])
@pytest.mark.parametrize("machine", TARGETS)
def test_a_kernel_with_hints_computes_the_same(machine, columns):
    kernel = softmax(3, columns)
    memory = random_memory(kernel, Random(1))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[machine], STEPS, memory))
    assert_close(interpreted(kernel, memory), interpreted(lowered(kernel, TARGETS[machine], STEPS), memory))


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("shift", [0, 1, 7])
def test_streaming_takes_memory_that_begins_anywhere(machine, shift):
    i = loop(0, 64)
    kernel = sink(store(param(0, 64), i, load(param(1, 64), i) + 1))
    steps = (Split((0,), 16), Vectorize((0, 1)), Stream(0), Parallel((0, 0)))
    space, x = np.zeros(64 + 32, np.float32), np.arange(64, dtype=np.float32)
    first = -(space.ctypes.data // 4) % 16 + shift
    memory = {0: space[first : first + 64], 1: x}

    np.testing.assert_array_equal(compiled(kernel, TARGETS[machine], steps, memory)[0], x + 1)


@pytest.mark.parametrize("hint", [Prefetch(1, (3,), (0,)), Stream(0)])
def test_hints_have_a_text_form(hint):
    steps = (*STEPS[:4], hint)
    for program in (mark(apply(softmax(3, 32), steps), steps), lowered(softmax(3, 32), TARGETS["sse2"], steps)):
        assert to_text(parse(to_text(program))) == to_text(program)
        assert any(word in to_text(program) for word in (" ahead 32]", " stream] ="))
