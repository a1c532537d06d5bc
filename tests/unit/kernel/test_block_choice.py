"""What is chosen for a kernel with intermediates."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.ir.parse import parse
from lazulite.ir.text import to_text
from lazulite.kernel.heuristic import choose
from lazulite.kernel.statements import split_statements
from lazulite.kernel.steps import Block, Parallel, Stage, Strip, Vectorize, Within
from lazulite.pipeline import assembly_of
from support.kernels import TARGETS, assert_close, compiled, interpreted, random_memory
from support.statements import attention

WIDEST = TARGETS["widest"]


def test_the_rows_that_share_keys_and_values_make_the_blocks():
    steps = choose(attention(heads=8, rows=64, keys=128, size=16), WIDEST)

    assert Block((1,), 32) in steps
    assert Parallel((0,)) in steps


def test_heads_with_keys_of_their_own_are_left_to_the_threads():
    steps = choose(attention(heads=16, rows=1, keys=128, size=16), WIDEST)

    assert not any(isinstance(step, Block) for step in steps)
    assert Parallel((0,)) in steps


def test_a_block_divides_the_rows_where_it_can():
    steps = choose(attention(heads=8, rows=100, keys=128, size=16), WIDEST)

    assert Block((1,), 25) in steps


def test_rows_that_are_long_and_cannot_be_cut_make_small_blocks():
    keys = (1 << 14) + 1
    kernel = attention(rows=64, keys=keys, size=16)
    text = to_text(kernel).replace("exp(", "sin(")  # a sum of these does not follow the maximum
    (block,) = [s for s in choose(parse(text), WIDEST) if isinstance(s, Block)]

    assert block.factor * 2 * 4 * keys <= WIDEST.l2 // 2


def test_long_rows_are_worked_on_in_strips_and_in_blocks_of_more():
    steps = choose(attention(rows=128, keys=1 << 14, size=16), WIDEST)

    assert Block((1,), 64) in steps
    assert [s for s in steps if isinstance(s, Strip)]


def test_strips_keep_operands_near_that_no_cache_holds():
    short, wide = (choose(attention(heads=1, rows=128, keys=1024, size=size), WIDEST) for size in (16, WIDEST.l2 >> 13))

    assert not [s for s in short if isinstance(s, Strip)]
    assert [s for s in wide if isinstance(s, Strip)]
    assert Block((1,), 64) in wide


def test_the_statements_that_steps_are_chosen_for_are_those_that_are_compiled():
    kernel = attention(heads=8, rows=64, keys=128, size=16)
    steps = choose(kernel, WIDEST)
    before = split_statements.cache_info().misses
    assembly_of(kernel, WIDEST, steps)

    assert before == split_statements.cache_info().misses


def test_keys_are_copied_once_for_all_blocks():
    steps = choose(attention(heads=8, rows=64, keys=128, size=16), WIDEST)
    (stage,) = [s.step for s in steps if isinstance(s, Within) and isinstance(s.step, Stage)]

    assert 4 == len(stage.axes)


@pytest.mark.parametrize(
    ("rows", "causal", "along_keys"), [(1024, False, True), (1024, True, True), (16, False, False)]
)
def test_keys_give_the_vectors_where_one_copy_across_serves_several_blocks(rows: int, causal: bool, along_keys: bool):
    """Where a mask leaves a block some of them, too; where there is one block only, its rows give the vectors."""
    kernel = attention(heads=8, rows=rows, keys=1024, size=64, causal=causal)
    first = [step.step for step in choose(kernel, WIDEST) if isinstance(step, Within) and step.statement == 0]
    (scores,) = [step for step in first if isinstance(step, Vectorize)]
    (keys,) = split_statements(kernel).kernels[0].src[0].src[1].ranges

    assert along_keys == (scores.range[: len(keys.arg[0])] == keys.arg[0])


@pytest.mark.parametrize("name", TARGETS)
def test_copies_of_parted_keys_are_read_where_they_were_written(name: str):
    kernel = attention(heads=1, rows=32, keys=67, size=5)
    memory, target = random_memory(kernel, Random(1)), TARGETS[name]

    assert_close(interpreted(kernel, memory), compiled(kernel, target, choose(kernel, target), memory))


@pytest.mark.parametrize("name", TARGETS)
@given(
    heads=st.integers(1, 2), rows=st.sampled_from([1, 2, 7, 33]), keys=st.sampled_from([1, 3, 17]),
    size=st.sampled_from([1, 3]), causal=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=8, deadline=None)
def test_what_is_chosen_computes_the_same(name, heads, rows, keys, size, causal, seed):
    kernel = attention(heads, rows, keys, size, causal)
    memory = random_memory(kernel, Random(seed))
    target = TARGETS[name]

    expected = interpreted(kernel, memory)
    assert_close(expected, compiled(kernel, target, choose(kernel, target), memory, chunks=2))
