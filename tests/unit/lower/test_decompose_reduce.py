"""Reductions of half and bfloat16 have a float32 accumulator."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.evaluate import run_kernel
from lazulite.ir.uop import UOp, index, toposort
from lazulite.kernel.heuristic import choose
from lazulite.lower.decompose_reduce import decompose_reductions, part_extreme, widen_reduction
from support.kernels import TARGETS, compiled, interpreted, loop, param, random_memory, reduce, sink, store
from support.kernels import load as element

RANGE = UOp(ops.RANGE, dtypes.index, (UOp.const(dtypes.index, 8),), ((1,), "loop"))


def load(dtype):
    return UOp(ops.LOAD, dtype, (UOp(ops.PARAM, dtype, (), (0, (8,), "CPU")), RANGE))


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=repr)
@pytest.mark.parametrize("op", [ops.ADD, ops.MUL, ops.MAX, ops.MIN], ids=repr)
def test_a_narrow_reduction_rounds_only_at_the_end(op, dtype):
    value = load(dtype)

    wide = widen_reduction(UOp(ops.REDUCE, dtype, (value, RANGE), (op, ())))

    assert wide is UOp(ops.REDUCE, dtypes.float32, (value.cast(dtypes.float32), RANGE), (op, ())).cast(dtype)


@pytest.mark.parametrize(("op", "nothing"), [(ops.MAX, -np.inf), (ops.MIN, np.inf)], ids=repr)
def test_the_extreme_of_nothing_is_the_identity(op, nothing):
    turns = UOp(ops.SCALAR, dtypes.index, (), (2, 0, 8))
    open_range = RANGE.replace(src=(turns,))
    value = UOp(ops.LOAD, dtypes.float32, (UOp(ops.PARAM, dtypes.float32, (), (0, (8,), "")), open_range))
    result = UOp(ops.PARAM, dtypes.float32, (), (1, (1,), ""))
    kernel = sink(store(result, index(0), UOp(ops.REDUCE, dtypes.float32, (value, open_range), (op, ()))))
    parted = decompose_reductions(kernel, lambda node: True)
    for count, wanted in ((0, nothing), (3, 2.0)):
        memory = {0: [2.0] * 8, 1: [0.0]}
        run_kernel(parted, memory, {2: count})
        assert [wanted] == memory[1]


def test_other_nodes_are_declined():
    assert None is widen_reduction(UOp(ops.REDUCE, dtypes.float32, (load(dtypes.float32), RANGE), (ops.ADD, ())))
    assert None is widen_reduction(load(dtypes.float16))


def test_every_reduction_of_a_graph_is_widened():
    total = UOp(ops.REDUCE, dtypes.float16, (load(dtypes.float16), RANGE), (ops.ADD, ()))

    root = decompose_reductions(total + total, lambda node: False)

    assert {dtypes.float32} == {node.dtype for node in toposort(root) if node.op is ops.REDUCE}


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=repr)
@given(m=st.integers(1, 40), n=st.integers(1, 40), across=st.booleans(), rng=st.randoms(use_true_random=False))
def test_a_sum_however_it_is_cut_is_rounded_once(dtype, m: int, n: int, across: bool, rng: Random):
    i, k = loop(0, m), loop(1, n)
    value = element(param(1, m * n, dtype), k * m + i if across else i * n + k)
    kernel = sink(store(param(0, m, dtype), i, reduce(ops.ADD, value, k)))
    memory = random_memory(kernel, rng)
    exact = interpreted(kernel, memory)[0].astype(np.float64)
    for target in TARGETS.values():
        found = compiled(kernel, target, choose(kernel, target), memory)[0]
        step = 2.0**-dtype.mantissa_bits * np.maximum(np.abs(exact), 2.0**-14)

        assert np.all(np.abs(found - exact) <= step)


@pytest.mark.parametrize("op", [ops.MAX, ops.MIN], ids=repr)
def test_an_extreme_of_floats_is_parted_where_the_target_has_the_one_of_numbers(op):
    node = UOp(ops.REDUCE, dtypes.float32, (load(dtypes.float32), RANGE), (op, ()))
    count = UOp(ops.REDUCE, dtypes.int32, (load(dtypes.float32).cast(dtypes.int32), RANGE), (op, ()))

    assert None is part_extreme(node, lambda node: False)
    assert None is part_extreme(count, lambda node: True)
    assert part_extreme(node, lambda node: True).op is ops.WHERE


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("op", [ops.MAX, ops.MIN], ids=repr)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.float16], ids=repr)
@settings(max_examples=10)
@given(n=st.integers(1, 90), rng=st.randoms(use_true_random=False))
def test_the_extreme_of_a_row_knows_nan_and_the_sign_of_zero(machine, op, dtype, n: int, rng: Random):
    i, k = loop(0, 3), loop(1, n)
    kernel = sink(store(param(0, 3, dtype), i, reduce(op, element(param(1, 3 * n, dtype), i * n + k), k)))
    some = rng.choice([[0.0, -0.0], [-1.0, -2.0, -0.0], [np.inf, 1.0, -np.inf], [np.nan] + [1.0] * n])
    memory = {0: np.zeros(3, dtype.name), 1: np.array([rng.choice(some) for _ in range(3 * n)], dtype.name)}
    target = TARGETS[machine]
    found, means = compiled(kernel, target, choose(kernel, target), memory)[0], interpreted(kernel, memory)[0]

    np.testing.assert_array_equal(found, means)
    assert list(np.signbit(found[~np.isnan(found)])) == list(np.signbit(means[~np.isnan(means)]))
