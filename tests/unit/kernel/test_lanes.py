"""Lanes go where memory is contiguous."""

import pytest

from lazulite.ir import ops
from lazulite.ir.target import target
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.lanes import choose_lanes
from support.kernels import convolution, load, loop, matmul, param, reduce, sink, softmax, store

WIDE = target("CPU:LLVM", ("avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"), 48 << 10, 2 << 20)


def _lanes(kernel):
    facts = KernelFacts(kernel, WIDE)
    return sorted(r.arg[0] for r in choose_lanes(facts, {*facts.outer, *facts.reduced}))


def test_a_product_has_lanes_over_its_columns():
    assert [(1,)] == _lanes(matmul(64, 64, 64))


def test_a_product_with_a_transposed_right_side_still_has():
    """The operand is staged: that costs less than adding across lanes for every element."""
    assert [(1,)] == _lanes(matmul(256, 256, 64, right=True))


def test_a_product_with_one_column_has_lanes_over_the_sum():
    assert [(2,)] == _lanes(matmul(256, 1, 256))


def test_a_softmax_has_lanes_over_each_pass_of_the_row():
    assert [(1,), (2,), (3,)] == _lanes(softmax(64, 256))


def test_a_convolution_has_lanes_over_the_width():
    assert [(3,)] == _lanes(convolution(1, 64, 64, 28, 28))


@pytest.mark.parametrize("stride", [3, 1000])
def test_a_store_that_nothing_runs_along_has_lanes_where_loads_are_contiguous(stride):
    i, k = loop(0, 50), loop(1, 64)
    kernel = sink(store(param(0, 50 * stride), i * stride, reduce(ops.ADD, load(param(1, 3200), i * 64 + k), k)))

    assert [(1,)] == _lanes(kernel)
