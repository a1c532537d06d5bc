"""What the automatic choice of steps does to the scheduler's own kernels, compiled for wide and narrow targets.

Kernels as small as these would stay on one thread; here every other one shares its work all the same.
FUZZ_EXAMPLES=n draws n / 8 programs of each family.
"""

import os
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.ir.parse import parse
from lazulite.kernel import heuristic
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Parallel
from support.kernels import TARGETS, assert_close, compiled, interpreted, lowered, random_memory
from support.scheduled_kernels import FAMILIES, scheduled_kernels

EXAMPLES = max(1, int(os.environ.get("FUZZ_EXAMPLES", "50")) // 8)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=EXAMPLES)
@given(rng=st.randoms(use_true_random=False))
def test_a_scheduled_kernel_computes_what_it_means(family: str, rng: Random):
    for kernel in scheduled_kernels(family, rng):
        memory = random_memory(kernel, rng)
        expected = interpreted(kernel, memory)
        for target in TARGETS.values():
            with patch.object(heuristic, "_FORK", rng.choice([0.0, heuristic._FORK])):
                steps = choose(kernel, target)
            lowered(kernel, target, steps)

            assert_close(expected, compiled(kernel, target, steps, memory, chunks=3))


def test_scratch_that_all_chunks_share_is_filled_in_each() -> None:
    """A panel that does not vary with the parallel loop is packed before it."""
    kernel = parse(
        "kernel\nparam p0 float32[4356]\nparam p1 float32[287496]\n"
        "loop r0 in 0..66\nloop r1 in 0..66\nloop r2 in 0..66\n"
        "p1[r0*4356 + r1*66 + r2] = p0[r0*66 + r2] * p0[r1 + r2*66]\n"
    )
    memory = random_memory(kernel, Random(0))
    target = TARGETS["widest"]
    steps = choose(kernel, target)
    if not any(isinstance(step, Parallel) for step in steps):
        steps = (*steps, Parallel((0,)))

    assert_close(compiled(kernel, target, (), memory), compiled(kernel, target, steps, memory, chunks=2))
