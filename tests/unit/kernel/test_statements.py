"""A kernel with intermediates comes apart into ordinary kernels and together again."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest

from lazulite.ir import ops
from lazulite.ir.canonical import canonical
from lazulite.ir.dtype import dtypes
from lazulite.ir.parse import parse
from lazulite.ir.target import host
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp, toposort
from lazulite.ir.verify import verify
from lazulite.kernel.blocks import block_statements
from lazulite.kernel.heuristic import choose
from lazulite.kernel.statements import (
    Statements,
    close_loops,
    each_statement,
    has_statements,
    join_statements,
    split_statements,
)
from lazulite.kernel.steps import Block
from support.kernels import assert_close, compiled, interpreted, load, loop, matmul, param, random_memory, sink, store
from support.statements import attention


def test_each_statement_alone_is_a_kernel():
    parts = split_statements(attention())

    assert (3, 2) == (len(parts.kernels), len(parts.shared))
    for kernel in parts.kernels:
        verify(kernel, "KERNEL")
        assert not has_statements(kernel)


def test_shared_ranges_and_scratch_memory_are_arguments_of_a_statement():
    first, _, last = split_statements(attention(heads=2, rows=6)).kernels
    bounds = {n.bounds for n in toposort(first) if n.op is ops.SCALAR and n.dtype is dtypes.index}

    assert {(0, 1), (0, 5)} == bounds
    assert 3 == sum(n.op is ops.PARAM for n in toposort(last))


def test_taken_apart_and_joined_a_kernel_computes_the_same():
    kernel = attention()
    again = join_statements(split_statements(kernel))
    memory = random_memory(kernel, Random(0))

    verify(canonical(again), "KERNEL")
    assert_close(interpreted(kernel, memory), interpreted(again, memory))


def test_names_of_ranges_stay_the_same():
    def names(root):
        return [sorted(n.arg[0] for n in toposort(k) if n.op is ops.RANGE) for k in split_statements(root).kernels]

    kernel = attention()

    assert names(kernel) == names(join_statements(split_statements(kernel)))


def test_taken_apart_again_the_statements_are_the_same():
    """Steps name statements, so that those who choose steps and those who apply them must count alike."""
    kernel = block_statements(attention(), [Block((1,), 3)])

    assert split_statements(kernel) == split_statements(join_statements(split_statements(kernel)))


def with_results(*stores: str) -> Statements:
    """The statements of a kernel that fills scratch memory and stores these, in loops d and e or in none."""
    return split_statements(
        parse(f"""
        kernel
        param p0 float32[8]
        param p1 float32[8]
        param p2 float32[4]
        param p3 float32[4]
        scratch s0 float32[2] align 64
        loop i in 0..4
        loop d in 0..2
        loop e in 0..2
        loop j in 0..2
            s0[j] = p2[i]
        {"".join(f"{each}{chr(10)}        " for each in stores)}
        """)
    )


IN_D, IN_E, IN_NONE = "p0[i*2 + d] = after(s0, j)[d]", "p1[i*2 + e] = after(s0, j)[e]", "p3[i] = p2[i]"


@pytest.mark.parametrize(
    ("second", "statements"), [(IN_E, 2), ("p1[i*2 + d] = after(s0, j)[d] + 1.0", 1), (IN_NONE, 1)],
    ids=["in others", "in the same", "in none"],
)  # fmt: skip
def test_results_in_loops_of_their_own_are_statements_of_their_own(second: str, statements: int):
    parts = with_results(IN_D, second)

    assert statements == len(parts.kernels) - len(parts.scratch)
    assert parts == split_statements(join_statements(parts))


@pytest.mark.parametrize("stores", list(itertools.permutations([IN_D, IN_E, IN_NONE])))
def test_a_result_in_no_loops_joins_one_statement_wherever_it_stands(stores: tuple[str, ...]):
    parts = with_results(*stores)

    assert [2, 1] == [len(kernel.src) for kernel in parts.kernels[1:]]
    assert parts == split_statements(join_statements(parts))


def test_a_kernel_without_intermediates_is_one_statement():
    numbers = []
    kernel = matmul(2, 3, 4)

    assert kernel is each_statement(kernel, lambda k, number: (numbers.append(number), k)[1])
    assert [-1] == numbers


def test_shared_ranges_close_around_loops():
    kernel = attention()
    looped = close_loops(kernel.replace(src=(kernel.src[0],)))

    assert frozenset() == looped.ranges
    assert "p0" in to_text(kernel)


def counting_twice(rows: int = 3, size: int = 5) -> UOp:
    """For each row how often each of two values occurs, counted in memory that is cleared in every row."""
    values, result = param(0, rows * size, dtypes.int32), param(1, rows * 2, dtypes.int32)
    row, i, d, last = loop(0, rows), loop(1, size), loop(2, 2), loop(3, 2)
    memory = UOp(ops.SCRATCH, dtypes.int32, (), (0, 2, 64)).after(row)
    cleared = memory.after(UOp(ops.FOR, dtypes.void, (d, store(memory, d, UOp.const(dtypes.int32, 0))), 0))
    place = (load(values, row * size + i) & 1).cast(dtypes.index)
    counted = cleared.after(UOp(ops.FOR, dtypes.void, (i, store(cleared, place, load(cleared, place) + 1)), 0))
    return sink(store(result, row * 2 + last, load(counted, last)))


def test_memory_that_a_statement_changes_is_filled_anew_in_every_turn():
    kernel = counting_twice()
    parts = split_statements(kernel)
    values = [1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    memory = {0: np.array(values, np.int32), 1: np.zeros(6, np.int32)}

    verify(kernel, "KERNEL")
    assert (3, 1, False) == (len(parts.kernels), len(set(parts.memory)), parts.fills_once)
    for found in (
        interpreted(kernel, memory), interpreted(join_statements(parts), memory),
        compiled(kernel, host(), choose(kernel, host()), memory),
    ):  # fmt: skip
        assert [2, 3, 5, 0, 0, 5] == list(found[1])
