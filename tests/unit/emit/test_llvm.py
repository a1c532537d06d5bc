"""Compiled kernels compute what the interpreter says, with any steps, on wide and narrow targets."""

import ctypes
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lazulite.emit.llvm import Writer
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp, index
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Parallel, Partition, Split, Tile, Vectorize
from lazulite.pipeline import compile_kernel
from lazulite.runtime.loader import load_object
from support.kernels import (
    TARGETS,
    assert_close,
    compiled,
    input_gradient,
    interpreted,
    legal,
    load,
    loop,
    lowered,
    matmul,
    param,
    random_kernel,
    random_memory,
    random_steps,
    reduce,
    sink,
    softmax,
    store,
    turns,
)


@pytest.mark.parametrize("machine", TARGETS)
@given(rng=st.randoms(use_true_random=False))
def test_a_scheduled_kernel_computes_what_it_means(machine: str, rng: Random):
    kernel, target = random_kernel(rng), TARGETS[machine]
    steps = random_steps(kernel, rng)
    assume(legal(kernel, steps))
    program = lowered(kernel, target, steps)
    assume(turns(program) < 3_000_000)  # the interpreter is slow
    memory = random_memory(kernel, rng)
    expected = interpreted(kernel, memory)

    assert_close(expected, interpreted(program, memory))
    assert_close(expected, compiled(kernel, target, steps, memory))


@pytest.mark.parametrize("machine", TARGETS)
def test_a_product_agrees_with_numpy_on_masked_tails(machine):
    kernel = matmul(13, 37, 29)
    memory = random_memory(kernel, Random(3))
    steps = (Split((0,), 4), Tile((0, 1)), Split((1,), 16), Vectorize((1, 1)))
    a, b = memory[1].reshape(13, 29).astype(np.float64), memory[2].reshape(29, 37)
    found = compiled(kernel, TARGETS[machine], steps, memory)[0].reshape(13, 37)

    np.testing.assert_allclose(found, np.maximum(a @ b + memory[3], 0), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("machine", TARGETS)
def test_a_softmax_agrees_with_numpy(machine):
    kernel = softmax(5, 50)
    memory = random_memory(kernel, Random(4))
    steps = tuple(step for r in (1, 2, 3) for step in (Split((r,), 16), Vectorize((r, 1))))
    x = memory[1].reshape(5, 50).astype(np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    found = compiled(kernel, TARGETS[machine], steps, memory)[0].reshape(5, 50)

    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=repr)
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32])
def test_scaling_by_powers_of_two_is_the_same_in_registers_of_every_size(machine, dtype, lanes):
    i = loop(0, 64)
    value = UOp.apply(ops.SCALEB, load(param(1, 64, dtype), i), load(param(2, 64, dtype), i))
    kernel = sink(store(param(0, 64, dtype), i, value))
    rng, kind = Random(6), np.dtype(dtype.name)
    x = np.array([rng.choice((1, -1, 1e-30, 1e30)) * rng.random() for _ in range(62)] + [np.nan, -0.0], kind)
    n = np.array([float(rng.randint(-1100, 1100) // rng.choice((1, 8))) for _ in range(63)] + [np.nan], kind)
    memory = {0: np.zeros(64, kind), 1: x, 2: n}
    steps = (Split((0,), lanes), Vectorize((0, 1))) if lanes > 1 else ()
    with np.errstate(all="ignore"):
        expected = np.where(np.isnan(n), n, np.ldexp(x, np.nan_to_num(n).astype(np.int32)))

    np.testing.assert_array_equal(compiled(kernel, TARGETS[machine], steps, memory)[0], expected)
    np.testing.assert_array_equal(interpreted(kernel, memory)[0], expected)


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.int8, dtypes.bool], ids=repr)
@settings(max_examples=12)
@given(
    multiple=st.integers(-3, 3), divisor=st.integers(1, 5), start=st.integers(0, 3), length=st.integers(1, 40),
    gate=st.sampled_from(["none", "static", "loop", "both"]), rng=st.randoms(use_true_random=False),
)  # fmt: skip
def test_lanes_that_read_near_one_another_get_what_they_ask_for(
    machine, dtype, multiple: int, divisor: int, start: int, length: int, gate: str, rng: Random
):
    i, j = loop(0, 3), loop(1, length)
    size = 3 * (abs(multiple) * length + start + 1)
    place = i * (size // 3) + (j * multiple + (start + (abs(multiple) * length if multiple < 0 else 0))) // divisor
    gates = {"none": (), "static": (j < length - 1,), "loop": (i < 2,), "both": ((i < 2) & (j < length - 1),)}[gate]
    kernel = sink(store(param(0, 3 * length, dtype), i * length + j, load(param(1, size, dtype), place, *gates)))
    memory = random_memory(kernel, rng)

    for lanes in (2, 4, 16):
        steps = (Split((1,), lanes), Vectorize((1, 1)))
        assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[machine], steps, memory))


def test_a_pool_of_pairs_reads_whole_vectors():
    i, j, k = loop(0, 8), loop(1, 32), loop(2, 2)
    kernel = sink(store(param(0, 256), i * 32 + j, reduce(ops.MAX, load(param(1, 560), i * 70 + j * 2 + k), k)))
    steps = (Split((1,), 16), Vectorize((1, 1)))

    assert "gather" not in Writer(lowered(kernel, TARGETS["avx2"], steps), "kernel").write()


def test_statements_beside_the_parallel_range_run_once():
    kernel = matmul(9, 8, 8)
    memory = random_memory(kernel, Random(5))
    steps = (Partition((0,), 6), Parallel((0, 0)))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS["widest"], steps, memory, chunks=3))


def test_an_empty_chunk_does_nothing():
    kernel = matmul(4, 8, 8)
    binary = compile_kernel(kernel, TARGETS["widest"], (Parallel((0,)),))
    memory = random_memory(kernel, Random(6))
    before = memory[0].copy()
    addresses = (ctypes.c_int64 * 4)(*[memory[slot].ctypes.data for slot in range(4)])
    load_object(binary.code).function("kernel")(
        ctypes.byref(addresses), ctypes.c_int64(2), ctypes.c_int64(2), ctypes.c_void_p(0)
    )

    assert 4 == binary.parallel
    np.testing.assert_array_equal(before, memory[0])


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(dtypes.float32, 1.5), (dtypes.float64, -2.25), (dtypes.int32, -7), (dtypes.int64, 1 << 40), (dtypes.int8, -3)],
)
def test_scalars_arrive_by_value(dtype, value):
    i = loop(0, 3)
    kernel = sink(store(param(0, 3, dtype), i, UOp(ops.SCALAR, dtype, (), (1, None, None)) + i.cast(dtype)))
    binary = compile_kernel(kernel, TARGETS["widest"])
    result = np.zeros(3, dtype.name)
    bits = int.from_bytes(np.array([value], dtype.name).tobytes(), "little")
    addresses = (ctypes.c_uint64 * 2)(result.ctypes.data, bits)
    load_object(binary.code).function("kernel")(
        ctypes.byref(addresses), ctypes.c_int64(0), ctypes.c_int64(1), ctypes.c_void_p(0)
    )

    assert [value, value + 1, value + 2] == result.tolist()


def test_bools_are_bytes_in_memory():
    i = loop(0, 40)
    mask = load(param(1, 40, dtypes.bool), i)
    kernel = sink(store(param(0, 40, dtypes.bool), i, ~mask & (i < 33)))
    memory = {0: np.zeros(40, np.bool_), 1: np.arange(40) % 3 == 0}
    found = compiled(kernel, TARGETS["widest"], (Split((0,), 16), Vectorize((0, 1))), memory)

    np.testing.assert_array_equal(~memory[1] & (np.arange(40) < 33), found[0])


def test_a_load_behind_a_false_gate_reads_nothing():
    i = loop(0, 4)
    kernel = sink(store(param(0, 4), i, load(param(1, 1), i * (1 << 40), i < 1)))
    memory = {0: np.ones(4, np.float32), 1: np.array([5], np.float32)}

    assert [5, 0, 0, 0] == compiled(kernel, TARGETS["widest"], (), memory)[0].tolist()


def test_a_tile_is_one_node_and_many_instructions():
    linear = lowered(matmul(8, 32, 16), TARGETS["widest"], (Tile((0,)), Split((1,), 16), Vectorize((1, 1))))
    text = Writer(linear, "kernel").write()

    assert 1 == sum(node.op in (ops.FMA, ops.MUL) and node.dtype.is_float for node in linear.src)
    assert 8 <= text.count("llvm.fma") or 8 <= text.count("fmul")


def test_rows_that_no_border_is_near_have_no_gate():
    """Of a row of seven pixels, the first may be without a left neighbour and the last without a right one."""
    steps = (Tile((3,)), Split((1,), 16), Vectorize((1, 1)))
    text = Writer(lowered(input_gradient(1, 16, 4, 5, 7), TARGETS["widest"], steps), "kernel").write()
    choices = [line for line in text.splitlines() if "select i1" in line and "float" in line]

    assert 7 == text.count("llvm.fma.v16f32(") - 1
    assert 2 == len(choices)


def test_indices_may_be_negative_inside():
    """`//` and `%` of an INDEX round down."""
    i = loop(0, 12)
    value = ((i + -7) // 3).cast(dtypes.int32) * 100 + ((i + -7) % 5).cast(dtypes.int32)
    kernel = sink(store(param(0, 12, dtypes.int32), i + index(0), value))
    expected = [(n - 7) // 3 * 100 + (n - 7) % 5 for n in range(12)]

    for steps in ((), (Split((0,), 4), Vectorize((0, 1)))):
        found = compiled(kernel, TARGETS["widest"], steps, {0: np.zeros(12, np.int32)})

        assert expected == found[0].tolist()


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("step", [2, 3, 4])
@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.int16, dtypes.float32, dtypes.float64], ids=str)
def test_every_second_or_fourth_element_is_picked_from_whole_vectors(machine, step, dtype):
    """And nothing is read behind the last element: memory ends there."""
    j = loop(0, 32)
    kernel = sink(store(param(0, 32, dtype), j, load(param(1, 31 * step + 1, dtype), j * step)))
    steps = (Split((0,), 16), Vectorize((0, 1)))
    memory = random_memory(kernel, Random(step))

    assert ("gather" in Writer(lowered(kernel, TARGETS[machine], steps), "k").write()) == (step == 3)
    np.testing.assert_array_equal(compiled(kernel, TARGETS[machine], steps, memory)[0], memory[1][::step])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.bool, dtypes.int16, dtypes.float16])
def test_narrow_elements_are_gathered_from_words(dtype: DType, target: str) -> None:
    """The last element of an odd number of bytes, too, and nothing where a gate is closed."""
    i = loop(0, 64)
    at = load(param(2, 64, dtypes.int32), i).cast(dtypes.index)
    kernel = sink(store(param(0, 64, dtype), i, load(param(1, 37, dtype), at, at < 30)))
    memory = random_memory(kernel, Random(0))
    memory[2] = np.arange(64, dtype=np.int32) % 37

    steps = choose(kernel, TARGETS[target])
    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[target], steps, memory))


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("types", [(dtypes.int8, dtypes.uint8), (dtypes.uint8, dtypes.int8), (dtypes.int8,) * 2])
@pytest.mark.parametrize("op", [ops.ADD, ops.MAX, ops.MIN], ids=lambda op: op.name)
def test_every_lane_counts_in_what_is_reduced_of_products_of_bytes(machine, types, op):
    for lanes in (4, 8, 16, 32):
        t = loop(0, lanes)
        factors = [load(param(slot, lanes, dtype), t).cast(dtypes.int32) for slot, dtype in enumerate(types, 1)]
        kernel = sink(store(param(0, 1, dtypes.int32), index(0), reduce(op, factors[0] * factors[1], t)))
        memory = random_memory(kernel, Random(lanes))

        found = compiled(kernel, TARGETS[machine], (Vectorize((0,)),), memory)

        assert_close(interpreted(kernel, memory), found)


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.int16, dtypes.float32], ids=str)
@pytest.mark.parametrize("columns", [17, 18, 31])
def test_a_vector_that_ends_a_row_leaves_what_comes_next_alone(machine: str, dtype: DType, columns: int):
    """The code generator writes a masked vector of truncated numbers too wide where the mask has one lane."""
    i, j = loop(0, 3), loop(1, columns)
    value = load(param(1, 3 * 32, dtypes.int32), i * 32 + j)
    kernel = sink(store(param(0, 3 * columns + 8, dtype), i * columns + j, value.cast(dtype)))
    memory = random_memory(kernel, Random(columns))
    steps = (Split((1,), 32), Split((1, 1), 16), Tile((1, 1, 0)), Vectorize((1, 1, 1)))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[machine], steps, memory))
