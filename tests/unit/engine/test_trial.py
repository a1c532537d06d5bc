"""Runs of a kernel with steps that are tried: right results are known from wrong ones, for every type."""

import math

import numpy
import pytest

from lazulite.base.errors import StageError
from lazulite.engine.trial import Trial, _close
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import host
from lazulite.ir.uop import UOp
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Split, Stage, Vectorize
from lazulite.runtime.registry import Device
from support.kernels import load, loop, matmul, param, reduce, sink, softmax, store

TYPES = [dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int8, dtypes.int32, dtypes.uint64]


def trial(kernel):
    return Trial(kernel, host(), Device["CPU"])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_the_choice_of_the_heuristic_agrees_with_the_program_without_steps(dtype):
    kernel = matmul(20, 40, 300, dtype)
    assert trial(kernel).agrees(choose(kernel, host()))


def test_a_chain_of_reductions_and_scalars_is_run():
    factor = UOp(ops.SCALAR, dtypes.float32, (), (2, None, None))
    i = loop(0, 100)
    scaled = sink(store(param(0, 100), i, load(param(1, 100), i) * factor))
    for kernel in (softmax(20, 100), scaled):
        assert trial(kernel).agrees(choose(kernel, host()))
        assert 0 < trial(kernel).seconds((), math.inf) < 1


def test_a_kernel_that_reads_what_it_writes_starts_anew_for_each_comparison():
    i = loop(0, 64)
    twice = sink(store(param(0, 64), i, load(param(0, 64), i) * 2))
    tried = trial(twice)
    assert tried.agrees(()) and tried.agrees((Split((0,), 16), Vectorize((0, 1)))) and tried.agrees(())


def test_another_result_does_not_agree():
    tried = trial(sink(store(param(0, 8), loop(0, 8), load(param(1, 8), loop(0, 8)))))
    assert tried.agrees(())
    tried._reference[0] = tried._reference[0][::-1]
    assert not tried.agrees(())


def test_places_are_read_from_memory_that_holds_places():
    i = loop(0, 50)
    place = load(param(2, 50, dtypes.int32), i).cast(dtypes.index)
    inside = (UOp.const(dtypes.index, 0) <= place) & (place < 30)
    kernel = sink(store(param(0, 50), i, load(param(1, 30), place, inside)))
    assert trial(kernel).agrees(choose(kernel, host()))


def test_a_time_far_above_the_limit_is_infinite():
    i, k = loop(0, 1 << 12), loop(1, 1 << 8)
    total = reduce(ops.ADD, load(param(1, 1 << 20), i * (1 << 8) + k), k)
    assert math.inf == trial(sink(store(param(0, 1 << 12), i, total))).seconds((), 1e-9)


def test_too_much_scratch_memory_is_refused():
    kernel = matmul(64, 2048, 2048)
    with pytest.raises(StageError, match="scratch memory"):
        trial(kernel).seconds((Stage(2, ((2,), (1,))),), math.inf)


@pytest.mark.parametrize(("got", "agrees"), [
    ([1.0, 2.0], True), ([1.0, 2.00001], True), ([1.0, 2.1], False), ([numpy.nan, 2.0], False),
])  # fmt: skip
def test_floats_agree_up_to_the_order_of_additions(got, agrees):
    assert agrees == _close(numpy.array(got), numpy.array([1.0, 2.0]), dtypes.float32)


def test_what_is_not_finite_agrees_with_itself_only():
    odd = numpy.array([numpy.inf, -numpy.inf, numpy.nan, 1.0])
    assert _close(odd, odd, dtypes.float32)
    assert not _close(odd[[1, 0, 2, 3]], odd, dtypes.float32)
