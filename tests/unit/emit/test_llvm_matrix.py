"""What matrix units compute agrees with float64 and with the interpreter, and threads get their tiles back."""

from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lazulite.base.errors import StageError
from lazulite.emit.llvm import Writer
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.parse import parse
from lazulite.ir.target import target
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import MatrixUnit
from support.kernels import TARGETS, compiled, interpreted, listed, lowered, random_memory
from support.products import BFLOAT16, TYPES, Product
from support.tile_emulator import emulated, machine, needs_compiler

TARGET = machine()
KNOWN = [types for types in TYPES if any(types == unit.types for unit in TARGET.matrix)]
sizes = st.one_of(st.integers(1, 150), st.integers(1, 9).map(lambda n: 16 * n))
products = st.builds(
    Product, sizes, sizes, sizes, st.sampled_from(KNOWN), left_transposed=st.booleans(), right_transposed=st.booleans(),
    bias=st.booleans(), batch=st.sampled_from([1, 1, 2]),
)  # fmt: skip
"""Sizes that are no multiples of a tile, sizes that are, and all transpositions."""


@needs_compiler
@settings(max_examples=25)
@given(products, st.randoms(use_true_random=False), st.integers(1, 4))
def test_a_product_has_its_exact_value_up_to_rounding(product: Product, rng: Random, chunks: int):
    memory = random_memory(product.kernel, rng)
    with emulated() as processor:
        found = compiled(product.kernel, TARGET, choose(product.kernel, TARGET), memory, chunks)
        assert not processor.configured
    product.check(memory, found[0])


@needs_compiler
@settings(max_examples=5)
@given(products, st.randoms(use_true_random=False))
def test_the_cuts_between_threads_change_no_bit(product: Product, rng: Random):
    steps, memory = choose(product.kernel, TARGET), random_memory(product.kernel, rng)
    with emulated():
        alone, shared = (compiled(product.kernel, TARGET, steps, memory, chunks)[0] for chunks in (1, 4))
    np.testing.assert_array_equal(alone, shared)


@needs_compiler
@pytest.mark.parametrize("types", KNOWN, ids=str)
def test_every_pair_of_types_runs_on_the_unit(types):
    product = Product(64, 48, 128, types)
    steps, memory = choose(product.kernel, TARGET), random_memory(product.kernel, Random(5))
    with emulated():
        found = compiled(product.kernel, TARGET, steps, memory)
    assert any(isinstance(step, MatrixUnit) for step in steps)
    assert listed(lowered(product.kernel, TARGET, steps), ops.MMA)
    product.check(memory, found[0])


def test_the_interpreter_multiplies_tiles_as_well():
    product = Product(40, 50, 68, BFLOAT16, dtypes.bfloat16, bias=True)
    steps, memory = choose(product.kernel, TARGET), random_memory(product.kernel, Random(6))
    program = lowered(product.kernel, TARGET, steps)

    assert listed(program, ops.MMA)
    product.check(memory, interpreted(program, memory)[0])


@needs_compiler
def test_the_result_is_rounded_once_and_keeps_infinities_and_nans():
    product = Product(32, 32, 64, BFLOAT16, dtypes.bfloat16)
    memory = random_memory(product.kernel, Random(7))
    memory[1][:64], memory[1][64:128] = np.inf, np.nan
    memory[2][:] = np.abs(memory[2]) + 1
    with emulated():
        found = compiled(product.kernel, TARGET, choose(product.kernel, TARGET), memory)[0].reshape(32, 32)

    assert np.isposinf(found[0]).all() and np.isnan(found[1]).all() and np.isfinite(found[2:]).all()


small = st.sampled_from([dtypes.int8, dtypes.uint8, dtypes.int16])
vectors = st.builds(
    Product, sizes, sizes, sizes, st.tuples(small, small, st.just(dtypes.int32)), left_transposed=st.booleans(),
    right_transposed=st.booleans(), bias=st.booleans(), batch=st.sampled_from([1, 1, 2]),
)  # fmt: skip


@pytest.mark.parametrize("machine", TARGETS)
@settings(max_examples=10)
@given(vectors, st.randoms(use_true_random=False), st.integers(1, 3))
def test_dot_products_of_small_integers_are_exact(machine: str, product: Product, rng: Random, chunks: int):
    processor, memory = TARGETS[machine], random_memory(product.kernel, rng)
    product.check(memory, compiled(product.kernel, processor, choose(product.kernel, processor), memory, chunks)[0])


@pytest.mark.parametrize("machine", TARGETS)
def test_a_pair_is_one_instruction_and_its_sums_wrap(machine):
    product, target = (
        Product(64, 64, 256, (dtypes.int16, dtypes.int16, dtypes.int32)),
        TARGETS[machine].with_vectors_only,
    )
    memory = random_memory(product.kernel, Random(8))
    memory[1][:], memory[2][:] = -(2**15), -(2**15)  # 256 * 2**30 is 0 modulo 2**32, and a pair is 2**31
    steps = choose(product.kernel, target)

    assert "pmadd" in Writer(lowered(product.kernel, target, steps), "k").write()
    assert not compiled(product.kernel, target, steps, memory)[0].any()


BYTES = ((dtypes.uint8, dtypes.int8), (dtypes.int8, dtypes.uint8), (dtypes.int8, dtypes.int8))


@pytest.mark.parametrize(("machine", "bits"), [("avx512vnni", 512), ("avxvnni", 256)])
@pytest.mark.parametrize("types", BYTES, ids=str)
def test_four_products_of_bytes_are_one_instruction_where_the_processor_has_it(machine, bits, types):
    features = ("avx2", "fma", machine) + (("avx512f", "avx512bw", "avx512dq", "avx512vl") if bits == 512 else ())
    processor, product = target("CPU:LLVM", features), Product(64, 64, 256, (*types, dtypes.int32))
    text = Writer(lowered(product.kernel, processor, choose(product.kernel, processor)), "k").write()

    assert f"vpdpbusd.{bits}" in text and "pmadd" not in text


@pytest.mark.parametrize("machine", TARGETS)
@pytest.mark.parametrize("types", BYTES, ids=str)
def test_the_largest_bytes_neither_saturate_nor_lose_their_sign(machine, types):
    product, processor = Product(30, 50, 64, (*types, dtypes.int32)), TARGETS[machine].with_vectors_only
    memory = random_memory(product.kernel, Random(9))
    for slot, dtype in zip((1, 2), types, strict=True):
        low, high = int(dtype.min), int(dtype.max)
        memory[slot][:] = np.resize([low, high, low, low, high], memory[slot].size)

    product.check(memory, compiled(product.kernel, processor, choose(product.kernel, processor), memory)[0])


@settings(max_examples=10)
@given(st.integers(16, 80), st.integers(16, 80), st.integers(4, 20), st.randoms(use_true_random=False))
def test_the_interpreter_computes_what_moved_factors_mean(rows: int, columns: int, groups: int, rng: Random):
    product = Product(rows, columns, 4 * groups, (dtypes.int8, dtypes.int8, dtypes.int32), bias=True)
    processor = target("CPU:LLVM", ("avx2", "avxvnni"))
    steps, memory = choose(product.kernel, processor), random_memory(product.kernel, rng)
    assume(any(isinstance(step, MatrixUnit) for step in steps))

    product.check(memory, interpreted(lowered(product.kernel, processor, steps), memory)[0])


TOO_MANY = """
linear
param p0 float32[256]
param p1 bfloat16[8192]
param p2 bfloat16[8192]
row r0 in 0..9
unit r1 in 0..16
unit r2 in 0..16
unit r3 in 0..16
unit r4 in 0..2
t0 = p1[r0*512 + r1*32 + r3*2 + r4]
t1 = p2[r3*32 + r2*2 + r4]
t2 = mma(0.0:float32, t0, t1 for r3, r4)
p0[r1*16 + r2] = t2
"""


def test_more_tiles_than_there_are_registers_are_refused():
    with pytest.raises(StageError, match="finds all 8 tile registers in use"):
        Writer(parse(TOO_MANY), "k").write()


@pytest.mark.parametrize(
    ("place", "message"),
    [("r3*64 + r2*4 + r4", "do not stand side by side"), ("r2*2 + r4", "a tile has 16 rows of 64 bytes")],
)
def test_a_factor_in_another_layout_is_refused(place, message):
    text = TOO_MANY.replace("row r0 in 0..9\n", "").replace("r0*512 + ", "").replace("r3*32 + r2*2 + r4", place)
    with pytest.raises(StageError, match=message):
        Writer(parse(text), "k").write()


PAIRS = """
linear
param p0 int32[16]
param p1 TYPE[64]
param p2 TYPE[64]
lane r0 in 0..LANES
unit r1 in 0..GROUP
t0 = p1[r1]
t1 = p2[r0*GROUP + r1]
t2 = mma(0:int32, t0, t1 for r1)
p0[r0] = t2
"""


@pytest.mark.parametrize(
    ("dtype", "lanes", "group", "message"),
    [
        ("int16", 4, 4, "not 4 of int16"),
        ("int8", 4, 2, "not 2 of int8"),
        ("int16", 6, 2, "by int16 in 6 lanes"),
        ("int8", 4, 4, "products of int8 by int8"),
    ],
)
def test_what_no_vector_instruction_adds_is_refused(dtype, lanes, group, message):
    text = PAIRS.replace("TYPE", dtype).replace("LANES", str(lanes)).replace("GROUP", str(group))
    with pytest.raises(StageError, match=message):
        Writer(parse(text), "k").write()
