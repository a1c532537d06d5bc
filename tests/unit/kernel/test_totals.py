"""What every turn of a shared range adds to a result is what one sum over all of them would be."""

from __future__ import annotations

from random import Random

import pytest

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.parse import parse
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.blocks import block_statements
from lazulite.kernel.heuristic import choose
from lazulite.kernel.nest import is_fixed
from lazulite.kernel.statements import split_statements
from lazulite.kernel.steps import Block, Parallel, Strip
from support.kernels import TARGETS, assert_close, compiled, interpreted, lowered, random_memory

CAUSAL, LATE, BAND = "j < i + 1", "i < j + 1", "(j < i + 3) & (i < j + 5)"
"""Masks of a weight: the first row of weights holds all of them, or one, or a few."""


def two_products(rows: int = 24, keys: int = 20, size: int = 8, *, mask: str = "", before: str = "0 < j") -> UOp:
    """Products of weights, made row by row: over the keys of a row, and, added up, over the rows."""
    weight = f"p2[(h*{rows} + j)*{keys} + i] * 2.0"
    weight = f"where({mask}, {weight}, 0.0)" if mask else weight
    place = f"(h*{keys} + v)*{size} + e"
    return parse(f"""
        kernel
        param p0 float32[{2 * rows * size}]
        param p1 float32[{2 * keys * size}]
        param p2 float32[{2 * rows * keys}]
        param p3 float32[{2 * keys * size}]
        param p4 float32[{2 * rows * size}]
        scratch s0 float32[{keys}] align 64
        loop h in 0..2
        loop j in 0..{rows}
        loop d in 0..{size}
        loop u in 0..{keys}
        loop v in 0..{keys}
        loop e in 0..{size}
        loop i in 0..{keys}
            s0[i] = {weight}
        p0[(h*{rows} + j)*{size} + d] = sum(after(s0, i)[u] * p3[(h*{keys} + u)*{size} + d] for u)
        p1[{place}] = after(p1, j)[{place} if {before}] + after(s0, i)[v] * p4[(h*{rows} + j)*{size} + e]
        """)


def blocks(kernel: UOp, rows: int) -> list[Block]:
    return [Block(split_statements(kernel).shared[-1].arg[0], rows)]


@pytest.mark.parametrize("mask", ["", CAUSAL, LATE, BAND])
@pytest.mark.parametrize("rows", [4, 24, 5])
def test_blocks_of_rows_add_up_the_same(rows: int, mask: str):
    kernel = two_products(mask=mask)
    memory = random_memory(kernel, Random(rows))

    assert_close(interpreted(kernel, memory), interpreted(block_statements(kernel, blocks(kernel, rows)), memory))


@pytest.mark.parametrize("mask", ["", CAUSAL, LATE, BAND])
@pytest.mark.parametrize("name", TARGETS)
def test_chosen_steps_add_up_the_same(name: str, mask: str):
    kernel, target = two_products(rows=70, keys=66, size=16, mask=mask), TARGETS[name]
    memory, steps = random_memory(kernel, Random(1)), choose(kernel, target)

    lowered(kernel, target, steps)  # every stage is well-formed
    assert any(isinstance(step, Block) for step in steps)
    assert_close(interpreted(kernel, memory), compiled(kernel, target, steps, memory, chunks=2))


def test_plain_loops_add_up_the_same():
    kernel = two_products()
    memory = random_memory(kernel, Random(2))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS["widest"], (), memory))


def test_threads_share_the_ranges_around_the_turns_only():
    kernel = two_products(rows=64, keys=64, size=16)
    around, turns = split_statements(kernel).shared

    assert Parallel(around.arg[0]) in choose(kernel, TARGETS["widest"])
    with pytest.raises(StageError, match="the turns of range 1 add to what others left"):
        block_statements(kernel, [Parallel(turns.arg[0])])


def test_strips_are_refused():
    kernel = two_products()
    (along,) = [n.arg[0] for n in toposort(split_statements(kernel).kernels[0]) if n.op is ops.RANGE]

    with pytest.raises(StageError, match="turns add to a result"):
        block_statements(kernel, [Strip(along, 4)])


@pytest.mark.parametrize("before", ["0 < j - 1", "1 < j", "0 < h"])
def test_what_does_not_begin_with_the_first_turn_is_refused(before: str):
    kernel = two_products(before=before)

    with pytest.raises(StageError, match="no sum of what is there and a number"):
        block_statements(kernel, blocks(kernel, 4))


@pytest.mark.parametrize(("mask", "statements"), [("", 3), (CAUSAL, 4), (LATE, 3), (BAND, 4)])
def test_zeros_are_stored_first_where_the_first_turn_does_not_reach_everything(mask: str, statements: int):
    """Here rows are keys and columns are queries: of a row that a late mask leaves whole all are stored at once."""
    kernel = two_products(mask=mask.replace("i", "k").replace("j", "i").replace("k", "j"))
    blocked = block_statements(kernel, blocks(kernel, 4))
    open_loops = [n for n in toposort(blocked) if n.op is ops.RANGE and not is_fixed(n)]

    assert statements == len(split_statements(blocked).kernels)
    assert bool(mask) == bool(open_loops)
