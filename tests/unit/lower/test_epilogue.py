"""What is made of a tile of results is computed in loops over the tile, along memory."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.base.errors import StageError
from lazulite.emit.llvm import Writer
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.steps import Epilogue, Reorder, Split, Tile, Vectorize
from support.kernels import (
    TARGETS,
    assert_close,
    compiled,
    interpreted,
    listed,
    load,
    loop,
    lowered,
    param,
    random_memory,
    reduce,
    sink,
    store,
)


def transposed_product(m: int, n: int, k: int, *, scaled: bool = False, dtype=dtypes.float32):
    """out[j, i] = sum of a[i, t] b[t, j], perhaps scaled by the square root of s[j] and with r[j, i] added."""
    i, j, t = loop(0, m), loop(1, n), loop(2, k)
    product = load(param(1, m * k, dtype), i * k + t) * load(param(2, k * n, dtype), t * n + j)
    value = reduce(ops.ADD, product, t)
    if scaled:
        scale = UOp.apply(ops.SQRT, load(param(3, n, dtype), j).maximum(0.0))
        value = value * scale + load(param(4, m * n, dtype), j * m + i)
    return sink(store(param(0, m * n, dtype), j * m + i, value))


def steps_of(rows: int, lanes: int, vectors: int, blocks: int):
    """Rows, and vectors of columns; with blocks of the sum outside of the rows where there are several."""
    steps = [Split((0,), rows), Tile((0, 1)), Split((1,), lanes * vectors)]
    if vectors > 1:
        steps += [Split((1, 1), lanes), Tile((1, 1, 0)), Vectorize((1, 1, 1))]
    else:
        steps += [Vectorize((1, 1))]
    if blocks > 1:
        steps += [Split((2,), blocks), Reorder(((2, 0), (0, 0), (1, 0)))]
    return (*steps, Epilogue((0, 1)))


@pytest.mark.parametrize("machine", TARGETS)
@settings(max_examples=12)
@given(
    m=st.integers(2, 30), n=st.integers(2, 40), k=st.integers(2, 20), rows=st.integers(2, 18),
    lanes=st.sampled_from([2, 4, 8, 16]), vectors=st.integers(1, 3), blocks=st.sampled_from([1, 3, 8]),
    scaled=st.booleans(), dtype=st.sampled_from([dtypes.float32, dtypes.float64, dtypes.int32]),
)  # fmt: skip
def test_every_tile_is_finished_where_it_belongs(machine, m, n, k, rows, lanes, vectors, blocks, scaled, dtype):
    kernel = transposed_product(m, n, k, scaled=scaled and dtype.is_float, dtype=dtype)
    memory = random_memory(kernel, Random(m * n * k))

    found = compiled(kernel, TARGETS[machine], steps_of(rows, lanes, vectors, blocks), memory)

    assert_close(interpreted(kernel, memory), found)


def test_memory_is_read_and_written_in_order():
    text = Writer(lowered(transposed_product(64, 64, 64, scaled=True), TARGETS["widest"], steps_of(16, 16, 2, 1)), "k")

    assert not {"gather", "scatter"} & {word for line in text.write().splitlines() for word in line.split(".")}


def test_what_varies_with_the_old_lanes_alone_is_computed_in_vectors():
    linear = lowered(transposed_product(64, 64, 64, scaled=True), TARGETS["widest"], steps_of(16, 16, 2, 1))

    assert [["lane", "row"]] == [
        sorted(r.arg[1] for r in n.ranges if r.arg[1] != "loop") for n in listed(linear, ops.SQRT)
    ]


def test_a_finished_block_and_an_unfinished_one_are_two_statements_of_which_one_has_turns():
    linear = lowered(transposed_product(32, 32, 64, scaled=True), TARGETS["widest"], steps_of(16, 16, 2, 16))
    open_loops = [node for node in listed(linear, ops.RANGE) if node.src[0].op is ops.WHERE]

    assert 2 == len(open_loops)


def test_a_sum_of_one_turn_has_no_tile():
    kernel, steps = transposed_product(8, 16, 1), steps_of(4, 16, 1, 1)
    memory = random_memory(kernel, Random(1))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS["widest"], steps, memory))


def test_two_sums_in_one_statement_are_rejected():
    i, j, t = loop(0, 8), loop(1, 16), loop(2, 4)
    both = [reduce(ops.ADD, load(param(n, 8 * 16 * 4), (i * 16 + j) * 4 + t) * n, t) for n in (1, 2)]
    kernel = sink(store(param(0, 128), j * 8 + i, both[0] * both[1]))

    with pytest.raises(StageError, match="one sum"):
        lowered(kernel, TARGETS["widest"], steps_of(4, 16, 1, 1))
