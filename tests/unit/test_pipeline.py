"""The pipeline is a value; every stage keeps what it promises."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.kernel.heuristic import choose
from lazulite.pipeline import PIPELINE, compile_kernel, lower
from support.kernels import TARGETS, lowered, matmul, random_kernel


def test_each_stage_reads_what_the_one_before_writes():
    assert [stage.writes for stage in PIPELINE[:-1]] == [stage.reads for stage in PIPELINE[1:]]


def test_stages_are_named_after_their_files():
    assert all(stage.run.__module__ == "lazulite.pipeline" and stage.name.count(".") == 1 for stage in PIPELINE)


@given(st.randoms(use_true_random=False))
def test_every_stage_writes_its_language(rng: Random):
    kernel = random_kernel(rng)

    lowered(kernel, TARGETS["widest"], choose(kernel, TARGETS["widest"]))


def test_the_caller_sees_every_stage_in_order():
    seen = []
    lower(matmul(2, 3, 4), TARGETS["sse2"], (), lambda stage, before, after: seen.append(stage.name))

    assert [stage.name for stage in PIPELINE] == seen


def test_the_caller_may_stop_after_a_stage():
    class StopHereError(Exception):
        pass

    def watch(stage, before, after):
        if after.op is ops.LINEAR:
            raise StopHereError

    with pytest.raises(StopHereError):
        compile_kernel(matmul(2, 3, 4), TARGETS["sse2"], (), watch)


def test_equal_kernels_give_equal_objects():
    first, second = (compile_kernel(matmul(9, 20, 7), TARGETS["widest"]) for _ in range(2))

    assert first == second
