"""Register tiles reuse what they load."""

import pytest

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import target
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.lanes import choose_lanes
from lazulite.kernel.tiles import choose_tiles
from support.kernels import load, loop, matmul, param, reduce, sink, store

WIDE = target("CPU:LLVM", ("avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"), 48 << 10, 2 << 20)


def _rows(kernel, machine=WIDE):
    facts = KernelFacts(kernel, machine)
    return {
        r.arg[0][0]: rows
        for r, rows in choose_tiles(facts, choose_lanes(facts, {*facts.outer, *facts.reduced})).rows.items()
    }


def test_a_product_fills_the_registers():
    assert {0: 14, 1: 2} == _rows(matmul(512, 512, 512))


def test_few_rows_take_more_vectors():
    assert {0: 2, 1: 6} == _rows(matmul(2, 512, 512))


def _with_another_sum(rows, dtype=dtypes.float32):
    """A product with 64 columns, beside a sum that keeps it from being blocked as one alone."""
    i, j, k, n = loop(0, rows), loop(1, 64), loop(2, 512), loop(3, 512)
    column = load(param(2, 512 * 64, dtype), k * 64 + j).cast(dtypes.float32)
    product = reduce(ops.ADD, load(param(1, rows * 512), i * 512 + k) * column, k)
    return sink(store(param(0, rows * 64), i * 64 + j, product + reduce(ops.ADD, load(param(3, 512), n), n)))


@pytest.mark.parametrize(("rows", "tall"), [(60, 6), (32, 4), (31, 6)])
def test_a_tile_of_all_columns_has_as_many_rows_as_leave_no_rest(rows, tall):
    assert (tall, 4) == tuple(_rows(_with_another_sum(rows))[r] for r in (0, 1))


def test_columns_that_are_converted_are_shared_by_as_many_rows_as_there_may_be():
    assert 6 == _rows(_with_another_sum(32, dtypes.bfloat16))[0]


def test_fewer_registers_make_a_smaller_tile():
    assert {0: 6, 1: 2} == _rows(matmul(512, 512, 512), target("CPU:LLVM", ("avx2", "fma")))


def test_a_product_of_rows_with_a_vector_walks_several_rows_together():
    assert 4 == _rows(matmul(512, 1, 512))[0]


def test_a_sum_has_several_accumulators():
    i, k = loop(0, 10), loop(1, 1024)
    value = load(param(1, 10240), i * 1024 + k)
    kernel = sink(store(param(0, 10), i, reduce(ops.ADD, value, k)))

    assert {1: 4} == _rows(kernel)
