"""Neighbouring ranges are merged where memory does not know them apart."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.kernel.flatten import flatten
from support.kernels import (
    assert_close,
    interpreted,
    listed,
    load,
    loop,
    matmul,
    param,
    random_kernel,
    random_memory,
    reduce,
    sink,
    store,
)


@given(st.randoms(use_true_random=False))
def test_merging_keeps_the_meaning(rng: Random):
    kernel = random_kernel(rng)
    memory = random_memory(kernel, rng)

    assert_close(interpreted(kernel, memory), interpreted(flatten(kernel), memory))


def _copy(order: int) -> object:
    i, j, k = loop(0, 3), loop(1, 4), loop(2, 5)
    place = (i * 4 + j) * 5 + k
    return sink(store(param(0, 60), place, load(param(1, 60), (j * 3 + i) * 5 + k if order else place)))


def test_a_contiguous_copy_has_one_range():
    assert [60] == [r.src[0].value for r in listed(flatten(_copy(0)), ops.RANGE)]


def test_ranges_that_were_merged_merge_further():
    kernel = _copy(0)
    ranges = listed(kernel, ops.RANGE)

    assert [60] == [r.src[0].value for r in listed(flatten(kernel, ranges), ops.RANGE)]
    assert [5, 12] == sorted(r.src[0].value for r in listed(flatten(kernel, ranges[:2]), ops.RANGE))


def test_a_transposed_operand_keeps_its_axes_apart():
    assert [3, 4, 5] == sorted(r.src[0].value for r in listed(flatten(_copy(1)), ops.RANGE))


def test_axes_of_a_reduction_merge_among_themselves():
    i, j, k = loop(0, 3), loop(1, 4), loop(2, 5)
    total = reduce(ops.ADD, load(param(1, 60), (i * 4 + j) * 5 + k), j, k)
    kernel = flatten(sink(store(param(0, 3), i, total)))

    assert [3, 20] == sorted(r.src[0].value for r in listed(kernel, ops.RANGE))


def test_the_axes_of_a_product_stay_apart():
    kernel = matmul(3, 4, 5)

    assert kernel is flatten(kernel)


def test_a_gate_keeps_its_range():
    i, j = loop(0, 3), loop(1, 4)
    kernel = sink(store(param(0, 12), i * 4 + j, load(param(1, 12), i * 4 + j, j < 3)))

    assert 2 == len(listed(flatten(kernel), ops.RANGE))
