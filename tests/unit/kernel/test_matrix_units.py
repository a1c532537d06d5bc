"""Which sums of products a matrix unit gets, and how they are cut for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import target
from lazulite.ir.uop import index, toposort
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.flatten import flatten
from lazulite.kernel.heuristic import choose
from lazulite.kernel.matrix_units import choose_matrix_unit
from lazulite.kernel.steps import MatrixUnit, Parallel, Split, Stage
from support.kernels import load, loop, lowered, matmul, param, reduce, sink, store
from support.products import TYPES, Product

FEATURES = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl")
UNITS = ("amx-tile", "amx-bf16", "amx-fp16", "amx-int8")
WITH, WITHOUT = (target("CPU:LLVM", features, 48 << 10, 2 << 20) for features in (FEATURES + UNITS, FEATURES))


def chosen(kernel, machine=WITH):
    return choose_matrix_unit(KernelFacts(flatten(kernel), machine))


def of_kind(steps, kind):
    return [step for step in steps or () if isinstance(step, kind)]


@pytest.mark.parametrize("types", TYPES, ids=str)
def test_every_pair_of_types_of_a_unit_is_found(types):
    assert of_kind(chosen(Product(64, 64, 128, types).kernel), MatrixUnit)


@pytest.mark.parametrize("types", TYPES, ids=str)
def test_without_units_vectors_multiply(types):
    kernel = Product(64, 64, 128, types).kernel

    for machine in (WITHOUT, WITH.with_vectors_only):
        steps = of_kind(choose(kernel, machine), MatrixUnit)
        assert [] == steps if types[2].is_float else [("int16", "int16")] == [step.factors for step in steps]


def test_wide_types_and_products_that_were_rounded_stay_with_vectors():
    i, j, p = loop(0, 64), loop(1, 64), loop(2, 64)
    x, y = (load(param(slot, 4096, dtypes.bfloat16), place) for slot, place in ((1, i * 64 + p), (2, p * 64 + j)))
    rounded = sink(store(param(0, 4096), i * 64 + j, reduce(ops.ADD, (x * y).cast(dtypes.float32), p)))

    assert chosen(matmul(64, 64, 64)) is None
    assert chosen(rounded) is None


def test_one_row_is_left_to_vectors_and_so_is_little_work():
    assert chosen(Product(1, 4096, 4096).kernel) is None
    assert chosen(Product(16, 16, 32).kernel) is None


def test_a_sum_that_ends_inside_of_a_group_is_left_to_narrower_groups_and_to_vectors():
    """Copies would have a gate for each element."""
    (bytes_by_four,) = of_kind(chosen(Product(64, 64, 128, TYPES[2]).kernel), MatrixUnit)
    (bytes_by_two,) = of_kind(chosen(Product(64, 64, 130, TYPES[2]).kernel), MatrixUnit)

    assert ((), ("int16", "int16")) == (bytes_by_four.factors, bytes_by_two.factors)
    assert chosen(Product(64, 64, 129, TYPES[2]).kernel) is None
    assert chosen(Product(64, 64, 129).kernel) is None


def test_the_left_operand_is_read_in_place_where_its_tiles_are_whole():
    assert [2] == [stage.slot for stage in of_kind(chosen(Product(64, 70, 128).kernel), Stage)]
    for product in (Product(65, 70, 128), Product(64, 70, 130), Product(64, 70, 128, left_transposed=True)):
        assert [1, 2] == [stage.slot for stage in of_kind(chosen(product.kernel), Stage)]


@given(st.integers(5, 13).map(lambda n: 2**n), st.sampled_from([256, 1000, 2048, 4096]))
def test_a_block_of_the_right_operand_fits_the_second_cache(depth, columns):
    steps = chosen(Product(64, columns, depth).kernel)
    block = next((step.factor for step in of_kind(steps, Split) if step.range == (2,)), columns)

    assert block * depth * 2 <= WITH.l2 // 2 or block == 32


def test_threads_share_the_outermost_loop_of_large_products():
    assert of_kind(chosen(Product(512, 512, 512).kernel), Parallel)
    assert not of_kind(chosen(Product(64, 64, 64).kernel), Parallel)


def test_a_product_of_a_matrix_with_itself_packs_one_of_its_uses():
    i, j, p = loop(0, 64), loop(1, 64), loop(2, 64)
    x = param(1, 4096, dtypes.bfloat16)
    factors = [load(x, r * 64 + p).cast(dtypes.float32) for r in (i, j)]
    kernel = sink(store(param(0, 4096), i * 64 + j, reduce(ops.ADD, factors[0] * factors[1], p)))
    program = lowered(kernel, WITH, choose(kernel, WITH))

    assert 1 == sum(node.op is ops.MMA for node in toposort(program))


def test_an_image_behind_a_border_of_zeros_is_packed():
    n, o, y, x, c, q = (loop(at, size) for at, size in enumerate((2, 32, 4, 32, 32, 3)))
    column = x + q + -1
    pixel = load(param(1, 2 * 32 * 128, dtypes.bfloat16), ((n * 32 + c) * 4 + y) * 32 + column,
                 (index(0) <= column) & (column < 32))  # fmt: skip
    weight = load(param(2, 32 * 96, dtypes.bfloat16), (o * 32 + c) * 3 + q)
    value = reduce(ops.ADD, pixel.cast(dtypes.float32) * weight.cast(dtypes.float32), c, q)
    steps = chosen(sink(store(param(0, 2 * 32 * 128), ((n * 32 + o) * 4 + y) * 32 + x, value)))

    assert [2, 1] == [stage.slot for stage in of_kind(steps, Stage)]
