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


def steps_of(rows: int, lanes: int, vectors: int, blocks: int, epilogue: Epilogue | None = None):
    """Rows, and vectors of columns; with blocks of the sum outside of the rows where there are several."""
    steps = [Split((0,), rows), Tile((0, 1)), Split((1,), lanes * vectors)]
    if vectors > 1:
        steps += [Split((1, 1), lanes), Tile((1, 1, 0)), Vectorize((1, 1, 1))]
    else:
        steps += [Vectorize((1, 1))]
    if blocks > 1:
        steps += [Split((2,), blocks), Reorder(((2, 0), (0, 0), (1, 0)))]
    return (*steps, epilogue or Epilogue((0, 1)))


def along_lanes(vectors: int, kept: str) -> Epilogue:
    """Loops over the tile with the lanes that it has; "rows" or "vectors" of it stay as they are."""
    rows = {"rows": ((0, 1),), "vectors": ((1, 1, 0),) if vectors > 1 else (), "": ()}[kept]
    return Epilogue((1, 1, 1) if vectors > 1 else (1, 1), rows)


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


@pytest.mark.parametrize("machine", TARGETS)
@settings(max_examples=8)
@given(
    m=st.integers(2, 30), n=st.integers(2, 40), k=st.integers(2, 20), rows=st.integers(2, 18),
    lanes=st.sampled_from([2, 4, 8, 16]), vectors=st.integers(1, 3), blocks=st.sampled_from([1, 3, 8]),
    scaled=st.booleans(), kept=st.sampled_from(["", "rows", "vectors"]),
)  # fmt: skip
def test_the_same_holds_in_loops_with_the_lanes_of_the_sum(
    machine, m, n, k, rows, lanes, vectors, blocks, scaled, kept
):
    kernel, steps = transposed_product(m, n, k, scaled=scaled), steps_of(rows, lanes, vectors, blocks)
    memory = random_memory(kernel, Random(m * n * k))

    found = compiled(kernel, TARGETS[machine], (*steps[:-1], along_lanes(vectors, kept)), memory)

    assert_close(interpreted(kernel, memory), found)


@pytest.mark.parametrize(("kept", "written"), [("", 1), ("rows", 16), ("vectors", 2)])
def test_what_is_made_of_a_tile_is_written_out_once_but_for_rows_that_are_kept(kept, written):
    steps = steps_of(16, 16, 2, 1, along_lanes(2, kept))
    text = Writer(lowered(transposed_product(64, 64, 64, scaled=True), TARGETS["widest"], steps), "k").write()

    assert written == text.count(" fmul <16 x float>")


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


@pytest.mark.parametrize("epilogue", [Epilogue((0, 1)), Epilogue((1, 1)), Epilogue((1, 1), ((0, 1),))])
def test_another_sum_is_part_of_what_is_made_of_the_longest(epilogue):
    i, j, t, u = loop(0, 8), loop(1, 16), loop(2, 4), loop(3, 3)
    product = reduce(ops.ADD, load(param(1, 32), i * 4 + t) * load(param(2, 64), t * 16 + j), t)
    other = reduce(ops.MAX, load(param(3, 8 * 16 * 3), (i * 16 + j) * 3 + u), u)
    kernel = sink(store(param(0, 128), j * 8 + i, product * other))
    memory = random_memory(kernel, Random(2))

    found = compiled(kernel, TARGETS["widest"], steps_of(4, 16, 1, 1, epilogue), memory)

    assert_close(interpreted(kernel, memory), found)


@pytest.mark.parametrize("epilogue", [Epilogue((0, 1)), Epilogue((1, 1))])
def test_another_sum_has_its_loop_inside_where_a_tile_is_all_of_the_result(epilogue):
    i, j, t, u = loop(0, 4), loop(1, 16), loop(2, 4), loop(3, 3)
    product = reduce(ops.ADD, load(param(1, 16), i * 4 + t) * load(param(2, 64), t * 16 + j), t)
    other = reduce(ops.MAX, load(param(3, 12), i * 3 + u), u)
    kernel = sink(store(param(0, 64), j * 4 + i, product * other))
    memory = random_memory(kernel, Random(2))

    found = compiled(kernel, TARGETS["widest"], steps_of(4, 16, 1, 1, epilogue), memory)

    assert_close(interpreted(kernel, memory), found)


def test_statements_over_one_tile_share_its_memory():
    i, j, t = loop(0, 8), loop(1, 16), loop(2, 4)
    total = reduce(ops.ADD, load(param(2, 32), i * 4 + t) * load(param(3, 64), t * 16 + j), t)
    places = j * 8 + i
    kernel = sink(store(param(0, 128), places, total), store(param(1, 128), places, total.maximum(0.0)))
    memory = random_memory(kernel, Random(3))
    linear = lowered(kernel, TARGETS["widest"], steps_of(4, 16, 1, 1))

    assert 2 == len({node.src[0] for node in listed(linear, ops.STORE) if node.src[0].op is ops.SCRATCH})
    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS["widest"], steps_of(4, 16, 1, 1), memory))


def test_a_choice_that_varies_inside_of_a_tile_is_made_where_it_varies():
    i, j, w, t = loop(0, 8), loop(1, 16), loop(2, 3), loop(3, 4)
    total = reduce(ops.ADD, load(param(1, 32), i * 4 + t) * load(param(2, 64), t * 16 + j), t)
    kernel = sink(store(param(0, 384), (i * 16 + j) * 3 + w, w.eq(1).where(total, total * 2.0)))
    memory = random_memory(kernel, Random(4))

    found = compiled(kernel, TARGETS["widest"], steps_of(4, 16, 1, 1, Epilogue((1, 1))), memory)

    assert_close(interpreted(kernel, memory), found)


def test_a_statement_none_of_whose_sums_fills_its_registers_is_rejected():
    i, j, t = loop(0, 8), loop(1, 16), loop(2, 4)
    kernel = sink(store(param(0, 128), j * 8 + i, reduce(ops.ADD, load(param(1, 32), i * 4 + t), t)))

    with pytest.raises(StageError, match="all registers"):
        lowered(kernel, TARGETS["widest"], steps_of(4, 16, 1, 1))
