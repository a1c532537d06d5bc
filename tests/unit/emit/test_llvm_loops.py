"""Positions walk with their loops, whatever the loops do; states come out of loops that run and of empty ones."""

import re
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.emit.llvm import Writer
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index
from lazulite.kernel.steps import Parallel, Split, Tile, Vectorize
from support.kernels import (
    TARGETS,
    assert_close,
    compiled,
    interpreted,
    load,
    loop,
    lowered,
    param,
    random_memory,
    reduce,
    sink,
    store,
)


def window(steps: tuple[int, int], *, gated: bool = False) -> UOp:
    """out[i, j] = sum over a 5 by 3 window that moves on by `steps`; perhaps without the window's corner."""
    i, j, p, q = loop(0, 6), loop(1, 16), loop(2, 5), loop(3, 3)
    place = (i * steps[0] + p) * 64 + j * steps[1] + q
    gates = [index(0) < p * 3 + q] if gated else []
    return sink(store(param(0, 96), i * 16 + j, reduce(ops.ADD, load(param(1, 64 * 64), place, *gates), p, q)))


@pytest.mark.parametrize("machine", TARGETS)
@settings(max_examples=10)
@given(
    moves=st.tuples(st.integers(1, 9), st.integers(1, 3)), gated=st.booleans(),
    steps=st.sampled_from([(), (Vectorize((1,)),), (Split((1,), 4), Tile((1, 1))), (Parallel((0,)), Tile((1,)))]),
)  # fmt: skip
def test_what_walks_goes_where_the_index_says(machine, moves, gated, steps):
    kernel = window(moves, gated=gated)
    memory = random_memory(kernel, Random(sum(moves)))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[machine], steps, memory))


def test_no_position_is_multiplied_out_in_the_loop_that_moves_it():
    text = Writer(lowered(window((2, 1)), TARGETS["widest"], (Vectorize((1,)),)), "k").write()
    outer, inner = text[: text.index("store ")].split("phi <16 x float>")[1:]

    assert all(
        re.search(r"%[pq]\d+ = phi (i64|ptr)", part) and " mul " not in part
        for part in (outer, inner[: inner.index("done")])
    )


def test_memory_is_reached_through_addresses_that_walk():
    """No access has an index in a register of its own beside the address."""
    text = Writer(lowered(window((2, 1)), TARGETS["widest"], (Vectorize((1,)),)), "k").write()
    inner = text[: text.index("store ")].split("phi <16 x float>")[2]

    assert "phi ptr" in inner
    assert not re.search(r"getelementptr float, ptr %v\d+, i64 %", inner[: inner.index("done")])


def test_a_product_with_another_reader_is_still_computed():
    i, p = loop(0, 8), loop(1, 4)
    value = load(param(1, 64), i * 8 + p) * (p * 3).cast(dtypes.float32)
    kernel = sink(store(param(0, 8), i, reduce(ops.ADD, value, p)))
    memory = random_memory(kernel, Random(1))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS["widest"], (), memory))


def test_a_product_that_one_position_begins_with_and_another_adds_is_still_computed():
    i, p = loop(0, 8), loop(1, 4)
    size = UOp(ops.SCALAR, dtypes.index, (), (2, 0, 3))
    value = load(param(1, 64), i * 8 + p) * load(param(3, 72), size + i * 8 + p)
    kernel = sink(store(param(0, 8), i, reduce(ops.ADD, value, p)))
    left, right = np.random.default_rng(3).standard_normal((2, 72)).astype(np.float32)
    memory = {0: np.zeros(8, np.float32), 1: left[:64].copy(), 2: np.asarray(3), 3: right}

    found = compiled(kernel, TARGETS["widest"], (), memory)

    wanted = [sum(left[8 * i + p] * right[3 + 8 * i + p] for p in range(4)) for i in range(8)]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-5)


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_loop_that_may_be_empty_gives_its_first_states(turns):
    size = UOp(ops.SCALAR, dtypes.index, (), (2, 0, 8))
    i = loop(0, 3)
    t = UOp(ops.RANGE, dtypes.index, (size,), ((1,), "loop"))
    kernel = sink(store(param(0, 3), i, reduce(ops.ADD, load(param(1, 24), i * 8 + t), t)))
    values = np.random.default_rng(2).standard_normal(24).astype(np.float32)
    memory = {0: np.zeros(3, np.float32), 1: values, 2: np.asarray(turns)}

    found = compiled(kernel, TARGETS["widest"], (), memory)

    np.testing.assert_allclose(found[0], values.reshape(3, 8)[:, :turns].sum(1), rtol=1e-5)
