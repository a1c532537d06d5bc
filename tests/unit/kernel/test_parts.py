"""What is over a range that is cut is there once for each part, and computes the same."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.kernel.parts import parted
from support.kernels import assert_close, interpreted, load, loop, param, random_memory, reduce, sink, store

I, K = loop(0, 12), loop(1, 10)  # noqa: E741
KERNEL = sink(store(param(0, 12), I, reduce(ops.ADD, load(param(1, 120), I * 10 + K), K) + load(param(2, 12), I)))


def test_a_kernel_without_cuts_stays_as_it_is() -> None:
    assert KERNEL is parted(KERNEL, {})


def test_a_part_that_is_cut_again_is_two() -> None:
    kernel = parted(KERNEL, {(0,): 8, (0, 1): 3})

    assert [{(0, 0): 8}, {(0, 1, 0): 3}, {(0, 1, 1): 1}] == [
        {r.arg[0]: r.vmax + 1 for r in part.ranges} for part in kernel.src
    ]


def test_the_sum_over_the_first_part_comes_first() -> None:
    (written,) = parted(KERNEL, {(1,): 7}).src
    total, _ = written.src[2].src

    assert ops.ADD is total.op
    assert [(1, 0), (1, 1)] == [part.src[1].arg[0] for part in total.src]


@given(st.integers(1, 11), st.integers(1, 9), st.booleans(), st.integers(0, 99))
def test_parts_compute_the_same(rows: int, terms: int, swapped: bool, seed: int) -> None:
    cuts = {(0,): rows, (1,): terms} | ({(0, 0): 1} if rows > 1 else {}) | ({(1, 0): 1} if terms > 1 else {})
    memory = random_memory(KERNEL, Random(seed))
    kernel = parted(KERNEL, dict(sorted(cuts.items(), key=lambda cut: (len(cut[0]), cut), reverse=swapped)))

    assert_close(interpreted(KERNEL, memory), interpreted(kernel, memory))
