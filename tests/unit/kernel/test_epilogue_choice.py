"""Which tiles wait in memory until what is made of them is computed."""

import pytest

from lazulite.ir import ops
from lazulite.ir.parse import parse
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

    assert lanes == {step.range for step in epilogues(kernel)}


@pytest.mark.parametrize(("times", "together"), [(1, True), (6, False)])
def test_vectors_that_are_neighbours_in_memory_stay_together_where_that_is_not_too_long(times: int, together: bool):
    def made(total, i, j):
        for _ in range(times):
            total = UOp.apply(ops.EXP, total)
        return total

    assert [together] == [bool(step.rows) for step in epilogues(made_of_product(made))]


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


@pytest.mark.parametrize(("turns", "looped"), [(5, True), (1024, False)])
def test_rows_with_a_long_sum_each_make_it_together(turns: int, looped: bool):
    """In a loop over rows each row would wait for its own additions."""
    u = loop(3, turns)

    def made(total, i, j):
        return UOp.apply(ops.TANH, total) / reduce(ops.ADD, load(param(3, 64 * turns), i * turns + u), u)

    assert looped is bool(epilogues(made_of_product(made)))


def test_lanes_that_are_one_vector_of_a_tile_with_other_rows_are_its_own():
    """As in the gradient of a pool above a convolution: beside another sum the vectors stay together."""
    assert choose(parse(GRADIENT_OF_A_POOL), TARGETS["widest"])


GRADIENT_OF_A_POOL = """
kernel
param p0 float32[147968]
param p1 float32[36864]
param p2 float32[32768]
param p3 float32[32768]
param p4 float32[32768]
param p5 float32[294912]
loop r0 in 0..2
loop r1 in 0..64
loop r2 in 0..16
loop r3 in 0..16
loop r4 in 0..3
loop r5 in 0..3
loop r6 in 0..3
loop r7 in 0..3
loop r8 in 0..64
loop r9 in 0..3
loop r10 in 0..3
t0 = r0*73984 + r1*1156 + r2*68 + r3*2
t1 = r0*16384 + r1*256 + r2*16 + r3
t2 = p2[t1]
t3 = (r2 < r6 + 15) & (r6 < r2 + 2) & (r3 < r7 + 15) & (r7 < r3 + 2)
t4 = p3[r0*16384 + r2*16 + r3 + r6*-16 - r7 + r8*256 + 17 if t3] * p1[r1*9 + r6*3 + r7 + r8*576]
t5 = (p4[t1] + sum(where(t3, t4, 0.0) for r6, r7, r8)) / sum((p0[t0 + r9*34 + r10] == t2).cast(float32) for r9, r10)
p5[r0*147456 + r1*2304 + r2*144 + r3*9 + r4*3 + r5] = where(p0[t0 + r4*34 + r5] == t2, t5, 0.0)
"""
