"""Transposed operands are read in blocks."""

from random import Random

import pytest

from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.heuristic import choose
from lazulite.kernel.lanes import choose_lanes
from lazulite.kernel.steps import Stage
from lazulite.kernel.transposition import find_transposition
from support.kernels import TARGETS, assert_close, compiled, interpreted, load, loop, param, random_memory, sink, store


def _transposed(m: int, n: int):
    i, j = loop(0, n), loop(1, m)
    return sink(store(param(0, m * n), i * m + j, load(param(1, m * n), j * n + i) + load(param(2, m), j)))


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("shape", [(16, 16), (37, 70), (8, 200), (129, 15), (64, 9)])
def test_a_transposed_sum_is_right_at_any_size(machine, shape):
    kernel = _transposed(*shape)
    memory = random_memory(kernel, Random(2))
    steps = choose(kernel, TARGETS[machine])

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[machine], steps, memory))


def test_only_the_transposed_operand_is_staged():
    steps = choose(_transposed(64, 64), TARGETS["widest"])

    assert [1] == [step.slot for step in steps if isinstance(step, Stage)]


def test_a_plain_copy_is_not_staged():
    i, j = loop(0, 64), loop(1, 64)
    kernel = sink(store(param(0, 4096), i * 64 + j, load(param(1, 4096), i * 64 + j) + load(param(2, 64), j)))
    facts = KernelFacts(kernel, TARGETS["widest"])

    assert None is find_transposition(facts, choose_lanes(facts, {*facts.outer, *facts.reduced}))
