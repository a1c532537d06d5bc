"""Rows are asked for ahead where they are walked again; only large results stream."""

from dataclasses import replace

import pytest

from lazulite.ir import ops
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Prefetch, Stream
from support.kernels import TARGETS, load, loop, matmul, param, reduce, sink, softmax, store

SMALL = replace(TARGETS["widest"], l2=1 << 16, threads=2)


def hints(kernel, target=SMALL):
    return [step for step in choose(kernel, target) if isinstance(step, Prefetch | Stream)]


def test_the_dearest_walk_of_a_row_but_the_first_asks_for_the_next_row():
    assert [Prefetch(1, (3,), (0,))] == hints(softmax(64, 1024))


@pytest.mark.parametrize("shape", [(8, 1024), (4096, 16), (64, 1 << 16)])
def test_nothing_is_asked_for_that_is_near_or_short_or_too_long_to_stay(shape):
    assert [] == [step for step in hints(softmax(*shape)) if isinstance(step, Prefetch)]


def test_the_walk_of_the_results_is_the_last():
    i, j, k = loop(0, 64), loop(1, 1024), loop(2, 1024)
    x = param(1, 64 * 1024)
    total = reduce(ops.ADD, load(x, i * 1024 + k), k)
    kernel = sink(store(param(0, 64 * 1024), i * 1024 + j, load(x, i * 1024 + j) * total))

    assert [Prefetch(1, (1,), (0,))] == hints(kernel)


def test_a_result_that_no_cache_holds_streams():
    assert Stream(0) in hints(softmax(512, 1024))
    assert Stream(0) not in hints(softmax(128, 1024))


def test_a_result_that_replaces_an_operand_does_not_stream():
    i = loop(0, 1 << 20)
    memory = param(0, 1 << 20)

    assert [] == hints(sink(store(memory, i, load(memory, i) + 1)))


def test_an_operand_that_is_walked_once_is_left_to_the_processor():
    assert [] == [step for step in hints(matmul(512, 512, 16)) if isinstance(step, Prefetch)]


def _unpacked(turns):
    """Weights of which each is read once, with so much work for each turn of the sum."""
    tile, row, k = loop(0, 64), loop(1, 32), loop(2, 64)
    value = load(param(1, 64 * 64 * 32), tile * (64 * 32) + k * 32 + row)
    for number in range(turns):
        value = (value * (number + 2.0)).maximum(value)
    return sink(store(param(0, 64 * 32), tile * 32 + row, reduce(ops.ADD, value * load(param(2, 64), k), k)))


def test_a_stream_of_which_much_is_made_is_asked_for_a_turn_ahead():
    """What many rows read again, or what little is made of, is left to the processor."""
    assert [Prefetch(1, (1,), (0,))] == hints(_unpacked(6))
    assert [] == hints(_unpacked(1))
