"""Blocks of a shared range: each statement runs through one before the next statement begins."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.canonical import canonical
from lazulite.ir.uop import toposort
from lazulite.ir.verify import verify
from lazulite.kernel.blocks import block_statements
from lazulite.kernel.heuristic import choose
from lazulite.kernel.nest import extent
from lazulite.kernel.statements import split_statements
from lazulite.kernel.steps import Block, Parallel, Split, Within
from lazulite.pipeline import compile_kernel
from support.kernels import TARGETS, assert_close, compiled, interpreted, matmul, random_memory
from support.statements import attention


def scratch_sizes(root):
    return {node.arg[1] for node in toposort(root) if node.op is ops.SCRATCH}


def test_scratch_memory_has_the_rows_of_a_block_as_an_axis():
    assert {5} == scratch_sizes(attention(keys=5))
    assert {15} == scratch_sizes(block_statements(attention(keys=5), [Block((1,), 3)]))


def test_rows_a_page_apart_are_padded():
    assert {2 * (1024 + 16)} == scratch_sizes(block_statements(attention(keys=1024), [Block((1,), 2)]))


def test_each_statement_has_rows_of_its_own():
    kernel = block_statements(attention(), [Block((1,), 3)])
    rows = [
        n for k in split_statements(kernel).kernels for n in toposort(k) if n.op is ops.RANGE and n.arg[0] == (1, 1)
    ]

    assert 3 == len(rows)
    verify(canonical(kernel), "KERNEL")


def test_ranges_that_memory_is_walked_through_as_one_are_shared_as_one():
    kernel = attention(batches=2, heads=3)
    memory, flat = random_memory(kernel, Random(2)), block_statements(kernel, [])

    assert [6, 6] == [extent(r) for r in split_statements(flat).shared]
    assert 6 == compile_kernel(kernel, TARGETS["widest"], choose(kernel, TARGETS["widest"])).parallel
    assert_close(interpreted(kernel, memory), interpreted(flat, memory))


@given(rows=st.integers(1, 9), factor=st.integers(1, 9), blocked=st.integers(0, 1), causal=st.booleans())
@settings(max_examples=25, deadline=None)
def test_blocks_of_any_size_compute_the_same(rows, factor, blocked, causal):
    kernel = attention(rows=rows, causal=causal)
    memory = random_memory(kernel, Random(rows))
    blocks = block_statements(kernel, [Block((blocked,), factor)])

    assert_close(interpreted(kernel, memory), interpreted(blocks, memory))


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_the_compiled_blocks_compute_the_same(factor):
    kernel = attention(heads=3, rows=6)
    memory = random_memory(kernel, Random(1))
    steps = (Block((1,), factor), Parallel((0,)), Within(0, Split((3,), 2)))

    for target in TARGETS.values():
        assert_close(interpreted(kernel, memory), compiled(kernel, target, steps, memory, chunks=2))


def test_without_steps_rows_run_one_at_a_time():
    kernel = attention()
    memory = random_memory(kernel, Random(2))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS["widest"], (), memory))


def test_a_kernel_without_intermediates_stays_as_it_is():
    kernel = matmul(2, 3, 4)

    assert kernel is block_statements(kernel, [Split((0,), 2)])


def test_steps_that_concern_one_statement_have_to_name_it():
    with pytest.raises(StageError, match="say which"):
        block_statements(attention(), [Split((1,), 2)])


def test_a_range_that_is_not_shared_has_no_blocks():
    with pytest.raises(StageError, match="share no range 2"):
        block_statements(attention(), [Block((2,), 2)])
