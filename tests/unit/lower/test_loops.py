"""Reductions become loops with explicit state."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.target import target
from lazulite.ir.uop import UOp, index
from lazulite.ir.verify import verify
from lazulite.kernel.apply import apply
from lazulite.kernel.steps import Partition
from lazulite.lower.loops import build
from support.kernels import (
    TARGETS,
    assert_close,
    compiled,
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
from support.nested_reductions import nested_reductions

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


def gated_sum(varies_with: set[int], kind: str) -> UOp:
    """out[i] = the sum over a, b and c of x[a, b, c] * y[c, i] where a gate over i and some of a, b, c is true."""
    i, (a, b, c) = loop(0, 4).replace(arg=((0,), kind)), (loop(n, n + 2) for n in (1, 2, 3))
    product = load(param(1, 60), (a * 4 + b) * 5 + c) * load(param(2, 20), c * 4 + i)
    place = i
    for number, r in enumerate((a, b, c)):
        place = place + r if number in varies_with else place
    return sink(store(param(0, 4), i, reduce(ops.ADD, (place < 3).where(product, 0.0), a, b, c)))


@pytest.mark.parametrize("varies_with", [set(), {0}, {1}, {0, 1}, {2}, {0, 2}], ids=str)
@pytest.mark.parametrize("kind", ["loop", "row", "lane"])
def test_a_gate_is_asked_in_the_innermost_loop_that_it_varies_with(kind: str, varies_with: set[int]):
    """Of rows and lanes the state is kept; where a gate is on loops alone, the next one has no turns."""
    kernel = gated_sum(varies_with, kind)
    loops = build(kernel, FUSING)
    (choice,) = listed(loops, ops.WHERE)
    innermost = max((number + 1 for number in varies_with), default=0)
    memory = random_memory(kernel, Random(1))
    memory[2][:] = np.where(np.arange(20) % 4 == 3, np.inf, memory[2])  # there the gate is false

    verify(loops, "LOOP")
    assert (kind == "loop" and innermost < 3) == (choice.dtype is dtypes.index)
    assert innermost == max(r.arg[0][0] for r in choice.ranges)
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


def test_loops_over_one_range_inside_of_each_other_are_told_apart():
    """A sum is closed inside of another over the same range: outside of it, the range is the other's."""
    i, k = loop(0, 3), loop(1, 5)
    total = reduce(ops.ADD, load(param(1, 5), k), k)
    kernel = sink(store(param(0, 3), i, reduce(ops.ADD, load(param(2, 15), i * 5 + k) * total, k)))
    built, memory = build(kernel, FUSING), random_memory(kernel, Random(0))

    verify(built, "LOOP")
    assert 3 == len({node.src[0].arg[0] for node in listed(built, ops.FOR)})
    assert_close(interpreted(kernel, memory), interpreted(built, memory))


def test_loops_that_read_a_nest_over_their_own_range_are_told_apart():
    """Two sums share a loop; one of them is read from memory that a nest fills, by a sum over the same range."""
    k, x = loop(0, 4), param(1, 4)
    total, top = reduce(ops.ADD, load(x, k), k), reduce(ops.MAX, load(x, k), k)
    scratch = UOp(ops.SCRATCH, dtypes.float32, (), (0, 4, 64))
    nest = UOp(ops.FOR, dtypes.void, (k, store(scratch, k, load(x, k) * total)), 0)
    filled = load(UOp(ops.AFTER, dtypes.float32, (scratch, nest)), k)
    built = build(sink(store(param(0, 1), index(0), reduce(ops.ADD, filled * top, k))), PLAIN)
    memory = {0: np.zeros(1), 1: np.array([1.0, 2.0, 3.0, 4.0])}

    verify(built, "LOOP")
    assert 3 == len(listed(built, ops.FOR))
    assert [10.0 * 10 * 4] == interpreted(built, memory)[0]


def test_a_nest_that_varies_with_a_loop_of_two_statements_is_told_apart_too():
    """Each statement has a loop over i of its own, so what fills memory in each of its turns is there twice."""
    h, i, j, m = loop(0, 2), loop(1, 3), loop(2, 5), loop(3, 4)
    scratch = UOp(ops.SCRATCH, dtypes.float32, (), (0, 4, 64))
    nest = UOp(ops.FOR, dtypes.void, (m, store(scratch, m, load(param(2, 12), i * 4 + m))), 0)
    filled = load(UOp(ops.AFTER, dtypes.float32, (scratch, nest)), index(1))
    kernel = sink(store(param(0, 15), i * 5 + j, filled), store(param(1, 6), h * 3 + i, filled))
    built, memory = build(kernel, PLAIN), random_memory(kernel, Random(0))

    verify(built, "LOOP")
    assert 6 == len({node.src[0].arg[0] for node in listed(built, ops.FOR)})
    assert_close(interpreted(kernel, memory), interpreted(built, memory))


@settings(max_examples=40)
@given(rng=st.randoms(use_true_random=False), nests=st.booleans())
def test_reductions_in_one_another_mean_the_same_as_loops(rng: Random, nests: bool):
    kernel = nested_reductions(rng, nests)
    built, memory = build(kernel, TARGETS["widest"]), random_memory(kernel, rng)

    verify(built, "LOOP")
    assert_close(interpreted(kernel, memory), interpreted(built, memory))


@settings(max_examples=10)
@given(rng=st.randoms(use_true_random=False), dtype=st.sampled_from([dtypes.int32, dtypes.float64]))
def test_reductions_in_one_another_are_compiled(rng: Random, dtype: DType):
    kernel = nested_reductions(rng, dtype=dtype)
    memory = random_memory(kernel, rng)

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS["widest"], (), memory))
