"""The automatic choice of steps is legal, independent of threads, and right for the common shapes."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import host, target
from lazulite.ir.uop import UOp
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Group, Parallel, Stage, Tile, Vectorize, text
from support.kernels import (
    TARGETS,
    assert_close,
    compiled,
    convolution,
    interpreted,
    load,
    loop,
    lowered,
    matmul,
    param,
    random_kernel,
    random_memory,
    reduce,
    sink,
    softmax,
    store,
)

WIDE = target("CPU:LLVM", ("avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"), 48 << 10, 2 << 20)


@pytest.mark.parametrize("machine", TARGETS)
@given(rng=st.randoms(use_true_random=False))
def test_chosen_steps_compute_what_the_kernel_means(machine: str, rng: Random):
    kernel = random_kernel(rng)
    memory = random_memory(kernel, rng)
    steps = choose(kernel, TARGETS[machine])
    lowered(kernel, TARGETS[machine], steps)

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[machine], steps, memory))


@pytest.mark.parametrize("kernel", [matmul(256, 300, 300), softmax(3000, 80), convolution(4, 40, 48, 18, 34)])
def test_the_result_does_not_depend_on_how_the_parallel_range_is_cut(kernel):
    """Bit equal on any number of threads."""
    memory = random_memory(kernel, Random(1))
    steps = choose(kernel, host())
    once = compiled(kernel, host(), steps, memory)
    often = compiled(kernel, host(), steps, memory, chunks=3)

    assert any(isinstance(step, Parallel) for step in steps)
    assert once[0].tobytes() == often[0].tobytes()


@given(st.randoms(use_true_random=False))
def test_steps_do_not_depend_on_the_number_of_threads(rng: Random):
    kernel = random_kernel(rng)

    assert choose(kernel, WIDE) == choose(kernel, replace(WIDE, threads=64))


def test_a_product_gets_a_register_tile_of_exact_rows():
    steps = text(choose(matmul(512, 512, 512), WIDE))

    assert "split 0 8\ntile 0.1\nsplit 1 32\nsplit 1.1 16\ntile 1.1.0\nvectorize 1.1.1" in steps


def test_a_large_operand_is_staged_in_panels():
    assert any(isinstance(step, Stage) for step in choose(matmul(1024, 1024, 1024), WIDE))
    assert not any(isinstance(step, Stage) for step in choose(matmul(64, 64, 64), WIDE))


def test_a_gated_product_is_staged_like_one_without_a_gate():
    """The data gradient of a convolution: its vectors are copied, not its scalars."""
    i, j, k, p = loop(0, 64), loop(1, 64), loop(2, 256), loop(3, 3)
    value = load(param(1, 64 * 256), i * 256 + k) * load(param(2, 66 * 256), k * 66 + (j + p))
    gated = (j < p + 50).where(value, 0.0)
    kernels = [sink(store(param(0, 64 * 64), i * 64 + j, reduce(ops.ADD, v, k, p))) for v in (value, gated)]
    plain, other = ([s.slot for s in choose(kernel, WIDE) if isinstance(s, Stage)] for kernel in kernels)

    assert plain == other


def test_a_tile_fits_the_registers_of_each_target():
    for registers, machine in ((32, WIDE), (16, target("CPU:LLVM", ("avx2", "fma")))):
        linear = lowered(matmul(500, 512, 64), machine, choose(matmul(500, 512, 64), machine))
        tiles = [node for node in linear.src if node.op is ops.FMA]
        sizes = [int(r.src[0].value) for node in tiles for r in node.ranges if r.arg[1] == "row"]

        assert sizes
        assert all(a * b < registers for a, b in zip(sizes[::2], sizes[1::2], strict=True))


def test_a_row_sum_has_lanes_over_the_row():
    i, k = loop(0, 100), loop(1, 1024)
    kernel = sink(store(param(0, 100), i, reduce(ops.ADD, load(param(1, 102400), i * 1024 + k), k)))
    steps = choose(kernel, WIDE)

    assert Vectorize((1, 1, 1)) in steps
    assert Tile((1, 1, 0)) in steps


def test_a_column_sum_has_lanes_over_the_columns():
    j, k = loop(0, 1024), loop(1, 100)
    kernel = sink(store(param(0, 1024), j, reduce(ops.ADD, load(param(1, 102400), k * 1024 + j), k)))

    assert Vectorize((0, 1, 1)) in choose(kernel, WIDE)


def test_a_long_sum_is_made_in_groups():
    """Its error grows with the length and the number of groups, not with the length of the sum."""
    k = loop(0, 1 << 20)
    kernel = sink(store(param(0, 1), loop(1, 1) * 0, reduce(ops.ADD, load(param(1, 1 << 20), k), k)))

    assert any(isinstance(step, Group) for step in choose(kernel, WIDE))


@pytest.mark.parametrize(
    ("kernel", "shared"),
    [(matmul(64, 99, 100), False), (matmul(512, 512, 512), True), (softmax(64, 99), False), (softmax(4096, 999), True)],
)
def test_work_is_shared_where_one_thread_needs_much_longer_than_waking_another(kernel, shared):
    assert shared == any(isinstance(step, Parallel) for step in choose(kernel, WIDE))


@pytest.mark.parametrize("machine", TARGETS)
def test_half_operands_are_converted_once_for_a_block_of_rows(machine):
    m, n, k = 48, 200, 33
    i, j, p = loop(0, m), loop(1, n), loop(2, k)
    a, b = load(param(1, m * k, dtypes.float16), i * k + p), load(param(2, k * n, dtypes.float16), p * n + j)
    total = reduce(ops.ADD, a.cast(dtypes.float32) * b.cast(dtypes.float32), p)
    kernel = sink(store(param(0, m * n), i * n + j, total))
    memory = random_memory(kernel, Random(9))
    steps = choose(kernel, TARGETS[machine])
    found = compiled(kernel, TARGETS[machine], steps, memory)
    left, right = memory[1].reshape(m, k).astype(np.float64), memory[2].reshape(k, n).astype(np.float64)

    assert {1, 2} == {step.slot for step in steps if isinstance(step, Stage)}
    np.testing.assert_allclose(found[0].reshape(m, n), left @ right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [8192, 10_000])
def test_a_long_column_sum_is_made_in_groups_and_exact_enough(rows):
    """Bound of a sum: 2 eps (log2 n + 1) sum|x|."""
    j, k = loop(0, 5), loop(1, rows)
    kernel = sink(store(param(0, 5), j, reduce(ops.ADD, load(param(1, rows * 5), k * 5 + j), k)))
    x = np.random.default_rng(3).random(rows * 5, np.float32)
    steps = choose(kernel, host())
    found = compiled(kernel, host(), steps, {0: np.zeros(5, np.float32), 1: x})[0].astype(np.float64)
    exact = x.astype(np.float64).reshape(rows, 5).sum(0)

    assert any(isinstance(step, Group) for step in steps)
    assert np.all(np.abs(found - exact) <= 2 * 2.0**-23 * (np.log2(rows) + 1) * exact)


@pytest.mark.parametrize("kind", ["loop", "parallel"])
def test_threads_share_turns_that_store_at_looked_up_places_only_where_the_kernel_says_that_they_never_meet(kind):
    blocks, size = 16, 50_000
    block, i = UOp(ops.RANGE, dtypes.index, loop(0, blocks).src, ((0,), kind)), loop(1, size)
    number = block * size + i
    place = load(param(0, blocks * size, dtypes.int32), number).cast(dtypes.index)
    kernel = sink(store(param(1, blocks * size), place, load(param(2, blocks * size), number)))

    assert (kind == "parallel") == any(isinstance(step, Parallel) for step in choose(kernel, WIDE))
