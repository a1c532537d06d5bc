"""Which tiles wait in memory until what is made of them is computed."""

import pytest

from lazulite.ir import ops
from lazulite.ir.uop import UOp
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Epilogue, Tile, Vectorize
from support.kernels import TARGETS, load, loop, param, reduce, sink, store

DEAR = (ops.TANH, ops.ERF, ops.EXP)


def made_of_product(made, *, turns: int = 64, across: bool = False) -> UOp:
    """A product of 64 by 64 and what is made of each sum, stored with its rows or its columns side by side."""
    i, j, t = loop(0, 64), loop(1, 64), loop(2, turns)
    total = reduce(ops.ADD, load(param(1, 64 * turns), i * turns + t) * load(param(2, turns * 64), t * 64 + j), t)
    return sink(store(param(0, 4096), j * 64 + i if across else i * 64 + j, made(total, i, j)))


def epilogues(kernel: UOp) -> list[Epilogue]:
    return [step for step in choose(kernel, TARGETS["widest"]) if isinstance(step, Epilogue)]


@pytest.mark.parametrize("op", DEAR, ids=lambda op: op.name)
def test_dear_work_is_done_in_a_loop_with_the_lanes_of_the_sum(op):
    kernel = made_of_product(lambda total, i, j: UOp.apply(op, total))
    lanes = {step.range for step in choose(kernel, TARGETS["widest"]) if isinstance(step, Vectorize)}

    assert [Epilogue(lane) for lane in lanes] == epilogues(kernel)


def test_cheap_work_stays_in_registers():
    assert [] == epilogues(made_of_product(lambda total, i, j: total.maximum(0.0)))


def test_a_short_sum_stays_in_registers():
    assert [] == epilogues(made_of_product(lambda total, i, j: UOp.apply(ops.TANH, total), turns=8))


def test_beside_another_sum_vectors_stay_together():
    u = loop(3, 5)

    def made(total, i, j):
        return UOp.apply(ops.TANH, total) * reduce(ops.MAX, load(param(3, 4096 * 5), u * 4096 + i * 64 + j), u)

    kernel = made_of_product(made)
    (found,) = {step.rows for step in epilogues(kernel)}
    tiled = {step.range for step in choose(kernel, TARGETS["widest"]) if isinstance(step, Tile)}

    assert found and tiled.issuperset(found)
