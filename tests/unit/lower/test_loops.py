"""Reductions become loops with explicit state."""

from random import Random

import numpy as np
import pytest

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import target
from lazulite.ir.uop import UOp, index
from lazulite.ir.verify import verify
from lazulite.kernel.apply import apply
from lazulite.kernel.steps import Partition
from lazulite.lower.loops import build
from support.kernels import (
    TARGETS,
    interpreted,
    listed,
    load,
    loop,
    matmul,
    param,
    random_memory,
    reduce,
    sink,
    softmax,
    store,
)

PLAIN = target("CPU:LLVM", ())
FUSING = target("CPU:LLVM", ("fma",))


def test_a_sum_of_products_is_a_multiply_add_where_the_target_has_one():
    assert 1 == len(listed(build(matmul(2, 3, 4), FUSING), ops.FMA))
    assert not listed(build(matmul(2, 3, 4), PLAIN), ops.FMA)


def test_a_gated_product_is_a_multiply_add_that_a_gate_keeps_out():
    i, k = loop(0, 3), loop(1, 5)
    product = load(param(1, 15), i * 5 + k) * load(param(2, 5), k)
    kernel = build(sink(store(param(0, 3), i, reduce(ops.ADD, (k < i).where(product, 0.0), k))), FUSING)
    (choice,) = listed(kernel, ops.WHERE)

    assert [ops.FMA, ops.CARRY] == [source.op for source in choice.src[1:]]
    assert choice.src[1].src[2] is choice.src[2]


def gated_sum(varies_with: set[int]) -> UOp:
    """out[i] = the sum over a, b and c of x[a, b, c] * y[c, i] where a gate over i and some of a, b, c is true."""
    i, (a, b, c) = loop(0, 4), (loop(n, n + 2) for n in (1, 2, 3))
    product = load(param(1, 60), (a * 4 + b) * 5 + c) * load(param(2, 20), c * 4 + i)
    place = i
    for number, r in enumerate((a, b, c)):
        place = place + r if number in varies_with else place
    return sink(store(param(0, 4), i, reduce(ops.ADD, (place < 3).where(product, 0.0), a, b, c)))


@pytest.mark.parametrize("varies_with", [set(), {0}, {1}, {0, 1}, {2}, {0, 2}], ids=str)
def test_a_gate_is_asked_in_the_innermost_loop_that_it_varies_with(varies_with: set[int]):
    kernel = gated_sum(varies_with)
    loops = build(kernel, FUSING)
    (choice,) = listed(loops, ops.WHERE)
    innermost = max((number + 1 for number in varies_with), default=0)
    memory = random_memory(kernel, Random(1))
    memory[2][:] = np.where(np.arange(20) % 4 == 3, np.inf, memory[2])  # there the gate is false

    verify(loops, "LOOP")
    assert {(number,) for number in (0, *range(1, innermost + 1))} == {r.arg[0] for r in choice.ranges}
    found = interpreted(loops, memory)[0]
    assert 0 == found[3]
    np.testing.assert_allclose(found, interpreted(kernel, memory)[0], atol=1e-5)


def test_reductions_over_the_same_range_share_a_loop():
    i, k = loop(0, 3), loop(1, 5)
    row = load(param(1, 15), i * 5 + k)
    value = reduce(ops.ADD, row, k) * reduce(ops.MAX, row, k)
    kernel = build(sink(store(param(0, 3), i, value)), PLAIN)

    assert [2, 0] == [node.arg for node in listed(kernel, ops.FOR)]


def test_a_reduction_that_needs_another_has_a_loop_of_its_own():
    assert [1, 1, 0, 0] == [node.arg for node in listed(build(softmax(3, 5), PLAIN), ops.FOR)]


def test_every_loop_owns_its_range():
    kernel = apply(softmax(6, 5), (Partition((0,), 4),))
    loops = listed(build(kernel, TARGETS["widest"]), ops.FOR)

    assert len({node.src[0] for node in loops}) == len(loops)


def test_what_is_built_is_in_the_loop_language():
    for kernel in (matmul(4, 5, 6), softmax(3, 7)):
        verify(build(apply(kernel, ()), PLAIN), "LOOP")


def test_what_a_matrix_unit_sums_over_must_be_products():
    i, k = loop(0, 3), UOp(ops.RANGE, dtypes.index, (index(16),), ((1,), "unit"))
    value = load(param(1, 48), i * 16 + k) + load(param(2, 16), k)
    with pytest.raises(StageError, match="a matrix unit adds products, not add"):
        build(sink(store(param(0, 3), i, reduce(ops.ADD, value, k))), PLAIN)
