"""Blocks whose rows are neighbours in memory and whose lanes are not are transposed in registers."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.emit.llvm import Writer, write
from lazulite.ir.dtype import dtypes
from lazulite.kernel.steps import Split, Tile, Vectorize
from lazulite.pipeline import lower
from support.kernels import (
    NUMPY,
    TARGETS,
    assert_close,
    compiled,
    interpreted,
    load,
    loop,
    lowered,
    param,
    random_memory,
    sink,
    store,
)

STEPS = (Split((1,), 16), Vectorize((1, 1)), Tile((2,)))


def interleaved(rows: int, columns: int, dtype, gated: bool = False):
    """Rows of memory become the innermost axis: (rows, columns) as (columns, rows)."""
    i, j, r = loop(0, 3), loop(1, columns), loop(2, rows)
    gate = [r + i < rows] if gated else []
    value = load(param(1, 3 * rows * columns, dtype), (i * rows + r) * columns + j, *gate)
    return sink(store(param(0, 3 * rows * columns, dtype), (i * columns + j) * rows + r, value))


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("rows", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("dtype", [dtypes.bool, dtypes.int8, dtypes.int16, dtypes.float32, dtypes.float64], ids=str)
def test_rows_side_by_side_are_written_as_a_block(machine, rows, dtype):
    kernel = interleaved(rows, 48, dtype)
    memory = random_memory(kernel, Random(rows))
    found = compiled(kernel, TARGETS[machine], STEPS, memory)[0]

    assert "scatter" not in Writer(lowered(kernel, TARGETS[machine], STEPS), "k").write()
    np.testing.assert_array_equal(found, memory[1].reshape(3, rows, 48).transpose(0, 2, 1).ravel())


def test_rows_behind_a_gate_are_zero():
    kernel = interleaved(8, 32, dtypes.float32, gated=True)
    memory = random_memory(kernel, Random(1))
    kept = memory[1].reshape(3, 8, 32).copy()
    for i in range(3):
        kept[i, 8 - i :] = 0
    found = compiled(kernel, TARGETS["widest"], STEPS, memory)[0]

    np.testing.assert_array_equal(found, kept.transpose(0, 2, 1).ravel())


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize(("dtype", "group"), [(dtypes.int8, 4), (dtypes.bfloat16, 2), (dtypes.int16, 2)], ids=str)
@pytest.mark.parametrize("rows", [4, 16])
def test_neighbours_move_as_one_word(machine, dtype, group, rows):
    """(rows, columns, group) becomes (columns, rows, group)."""
    r, j, g = loop(0, rows), loop(1, 32), loop(2, group)
    size = rows * 32 * group
    value = load(param(1, size, dtype), (r * 32 + j) * group + g)
    kernel = sink(store(param(0, size, dtype), (j * rows + r) * group + g, value))
    steps = (Split((1,), 16), Vectorize((1, 1)), Tile((2,)), Tile((0,)))
    memory = random_memory(kernel, Random(rows))
    text = Writer(lowered(kernel, TARGETS[machine], steps), "k").write()

    assert "x i32>" in text and "gather" not in text and "scatter" not in text
    expected = memory[1].reshape(rows, 32, group).transpose(1, 0, 2).ravel()
    found = compiled(kernel, TARGETS[machine], steps, memory)[0]
    np.testing.assert_array_equal(found, expected.astype(NUMPY[dtype]))


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


@pytest.mark.parametrize("machine", TARGETS)
def test_bools_are_written_as_blocks_of_bytes(machine):
    i, j = loop(0, 33), loop(1, 48)
    positive = load(param(1, 33 * 48, dtypes.float32), i * 48 + j) < 0.0
    kernel = sink(store(param(0, 33 * 48, dtypes.bool), j * 33 + i, positive))
    steps = (Split((0,), 11), Tile((0, 1)), Split((1,), 16), Vectorize((1, 1)))
    memory = random_memory(kernel, Random(2))

    assert "scatter" not in Writer(lowered(kernel, TARGETS[machine], steps), "k").write()
    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[machine], steps, memory))


def test_a_tile_is_written_without_a_scatter():
    steps = (Split((0,), 16), Tile((0, 1)), Split((1,), 16), Vectorize((1, 1)))
    text = Writer(lower(_transposition(64, 64), TARGETS["widest"], steps), "kernel").write()

    assert "scatter" not in text
    assert 16 == text.count("store <16 x float>")


@pytest.mark.parametrize(("dtype", "fences"), [(dtypes.float32, 64), (dtypes.int32, 0)], ids=str)
def test_the_steps_of_a_transposition_are_done_as_they_stand(dtype, fences):
    steps = (Split((0,), 16), Tile((0, 1)), Split((1,), 16), Vectorize((1, 1)))
    text = write(lower(_transposition(64, 64, dtype), TARGETS["widest"], steps)).text

    assert fences == text.count("= call <16 x float> @llvm.arithmetic.fence")
