"""Reductions of half and bfloat16 have a float32 accumulator."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.heuristic import choose
from lazulite.lower.decompose_reduce import widen_reduction, widen_reductions
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


def test_other_nodes_are_declined():
    assert None is widen_reduction(UOp(ops.REDUCE, dtypes.float32, (load(dtypes.float32), RANGE), (ops.ADD, ())))
    assert None is widen_reduction(load(dtypes.float16))


def test_every_reduction_of_a_graph_is_widened():
    total = UOp(ops.REDUCE, dtypes.float16, (load(dtypes.float16), RANGE), (ops.ADD, ()))

    root = widen_reductions(total + total)

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
