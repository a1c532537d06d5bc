"""Tiles whose rows are neighbours in memory are transposed in registers."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.ir.dtype import dtypes
from lazulite.kernel.steps import Split, Tile, Vectorize
from lazulite.pipeline import lower
from support.kernels import TARGETS, assert_close, compiled, interpreted, load, loop, param, random_memory, sink, store


def _transposition(m: int, n: int, dtype=dtypes.float32):
    i, j = loop(0, m), loop(1, n)
    return sink(store(param(0, m * n, dtype), j * m + i, load(param(1, m * n, dtype), i * n + j) + 1))


@pytest.mark.parametrize("machine", TARGETS)
@settings(max_examples=20)
@given(
    m=st.integers(2, 40), n=st.integers(2, 40), rows=st.integers(2, 20), lanes=st.sampled_from([2, 4, 8, 16]),
    dtype=st.sampled_from([dtypes.float32, dtypes.float64, dtypes.int8, dtypes.int32]),
)  # fmt: skip
def test_every_tile_arrives_where_it_belongs(machine, m, n, rows, lanes, dtype):
    kernel = _transposition(m, n, dtype)
    steps = (Split((0,), rows), Tile((0, 1)), Split((1,), lanes), Vectorize((1, 1)))
    memory = random_memory(kernel, Random(1))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[machine], steps, memory))


def test_a_tile_is_written_without_a_scatter():
    from lazulite.emit.llvm import Writer

    steps = (Split((0,), 16), Tile((0, 1)), Split((1,), 16), Vectorize((1, 1)))
    text = Writer(lower(_transposition(64, 64), TARGETS["widest"], steps), "kernel").write()

    assert "scatter" not in text
    assert 16 == text.count("store <16 x float>")


@pytest.mark.parametrize(("dtype", "fences"), [(dtypes.float32, 64), (dtypes.int32, 0)], ids=str)
def test_the_steps_of_a_transposition_are_done_as_they_stand(dtype, fences):
    from lazulite.emit.llvm import write

    steps = (Split((0,), 16), Tile((0, 1)), Split((1,), 16), Vectorize((1, 1)))
    text = write(lower(_transposition(64, 64, dtype), TARGETS["widest"], steps)).text

    assert fences == text.count("= call <16 x float> @llvm.arithmetic.fence")
