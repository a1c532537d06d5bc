"""How many kernels a graph becomes, and the reasons."""

from __future__ import annotations

import pytest

from lazulite import Tensor
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort
from support.schedules import F32, buffer, expanded, matmul, reduced, reshaped, scheduled, softmax

A, B, C = buffer(1, 64, 32), buffer(2, 32, 16), buffer(3, 64, 16)


def relu(x: UOp) -> UOp:
    return x.maximum(0.0)


@pytest.mark.parametrize(
    ("expected", "graph"),
    [
        (1, A * 2.5 + A),
        (1, softmax(A)),
        (1, reduced(A, 0, 1)),
        (1, relu(matmul(A, B) + C)),
        (2, softmax(relu(matmul(A, B)))),
        (2, matmul(softmax(A), B)),
        (2, A / expanded(reduced(A, 0), 64, 32)),
        (2, matmul(relu(matmul(A, B)), buffer(5, 16, 8))),
    ],
    ids=["chain", "softmax", "sum", "epilogue", "softmax of product", "product of softmax", "columns", "two products"],
)
def test_kernel_counts(expected: int, graph: UOp) -> None:
    assert expected == len(scheduled([graph]).kernels)


def test_a_row_reduction_stays_in_the_loop_over_rows() -> None:
    (kernel,) = scheduled([softmax(A)]).kernels
    reductions = [node for node in toposort(kernel) if node.op is ops.REDUCE]

    assert 2 == len(reductions)
    assert all(1 == len(node.ranges) for node in reductions)


def test_a_value_that_two_results_share_is_stored_by_the_kernel_that_computes_it() -> None:
    hidden = relu(matmul(A, B))
    result = scheduled([hidden, matmul(hidden, buffer(5, 16, 8)), hidden * 2.5])

    assert 2 == len(result.kernels)


def test_a_kernel_that_needs_one_row_of_a_value_does_not_store_the_value() -> None:
    """It would never compute the other rows, however often it computes that one."""
    value = A * 2.5
    row = UOp(ops.SHRINK, value.dtype, (value,), ((0, 1), (0, 32)))
    result = scheduled([value, expanded(row, 64, 32) + A])

    assert 2 == len(result.kernels)


def test_fusion_off_gives_each_operation_a_kernel() -> None:
    result = scheduled([(A * 2.5 + A) * A], fuse=False)

    assert 3 == len(result.kernels)
    assert "fusion is off" in result.reasons


def test_a_long_chain_is_cut_into_full_kernels() -> None:
    value = A
    for _ in range(1000):
        value = value + A
    result = scheduled([value])

    assert 4 == len(result.kernels)
    assert "the kernel is full" in result.reasons


def test_the_same_piece_of_a_long_chain_is_the_same_kernel() -> None:
    value = A
    for _ in range(1000):
        value = value + A

    assert 2 == len(set(scheduled([value]).kernels))


def test_sums_behind_movements_join() -> None:
    inner = reduced(A, 1)
    (kernel,) = scheduled([reduced(inner, 0)]).kernels

    assert 1 == sum(node.op is ops.REDUCE for node in toposort(kernel))


def test_each_large_sum_of_products_has_a_kernel_of_its_own() -> None:
    """The blocks of one are not those of another, as of a convolution and the one beside it in a residual block."""
    left, right = [matmul(buffer(n, 64, 1024), buffer(n + 1, 1024, 32)) for n in (1, 3)]

    assert 2 == len(scheduled([relu(left + right)]).kernels)
    assert 1 == len(scheduled([relu(matmul(A, B) + matmul(buffer(5, 64, 32), buffer(6, 32, 16)))]).kernels)


def test_a_matrix_in_few_bits_is_unpacked_where_a_product_copies_it() -> None:
    """Each element once, so no matrix of floats lies in memory; positions that say which bits are computed, too."""
    places = UOp(ops.IOTA, dtypes.int32, (), 8)
    shifts = expanded(reshaped((places >> 1) * 4 + (places & 1) * 16, 1, 8, 1), 32, 8, 256)
    words = expanded(reshaped(buffer(1, 32, 256, dtype=dtypes.int32), 32, 1, 256), 32, 8, 256)
    scales = expanded(reshaped(buffer(2, 32, 256, dtype=dtypes.float16), 32, 1, 256), 32, 8, 256)
    matrix = reshaped(((words >> shifts) & 15).cast(F32) * scales.cast(F32), 256, 256)
    (kernel,) = scheduled([matmul(buffer(3, 128, 256), matrix)]).kernels

    assert 1 == sum(node.op is ops.REDUCE for node in toposort(kernel))
    as_large = buffer(4, 256, 256) * 2.5 + buffer(5, 256, 256)
    assert 2 == len(scheduled([matmul(buffer(3, 128, 256), as_large)]).kernels)


def test_kernels_never_wait_for_each_other() -> None:
    """A host for a shared value must not stand above another reader of it."""
    shared = A * 2.5
    first = reduced(shared, 0)
    result = scheduled([shared * expanded(first, 64, 32), shared])

    assert len(result.schedule.plan.launches) == len(result.kernels)


def test_an_output_that_is_a_number_everywhere_is_filled() -> None:
    value = expanded(UOp.const(F32, 2.0), 4)

    assert 1 == len(scheduled([value]).kernels)


def test_integers_and_floats_are_kept_apart() -> None:
    ints = buffer(7, 8, dtype=dtypes.int32)

    assert 1 == len(scheduled([ints.cast(F32) * 2.5]).kernels)


@pytest.mark.parametrize(
    ("expected", "graph"),
    [
        (2, reduced(buffer(8, 1 << 20), 0)),
        (2, reduced(buffer(8, 4096, 1024), 0, 1, op=ops.MAX)),
        (1, reduced(buffer(8, 1 << 19), 0)),
        (1, reduced(buffer(8, 4096, 1024), 1)),
        (1, reduced(buffer(8, (1 << 20) + 7), 0)),
        (1, reduced(buffer(8, 1 << 20, dtype=dtypes.float16), 0)),
    ],
    ids=["long", "maximum", "short", "many rows", "no equal parts", "narrow"],
)
def test_a_long_reduction_with_few_results_is_cut_into_parts_for_threads(expected: int, graph: UOp) -> None:
    assert expected == len(scheduled([graph]).kernels)


def test_a_short_sum_inside_another_is_no_kernel_of_its_own() -> None:
    """As the blocks of a quantised product are: each inner sum is computed once, for the outer one."""
    words, long = buffer(7, 64, 18, 4), buffer(9, 64, 18, 32)

    def products(x: UOp) -> UOp:
        return reduced(reshaped(relu(reduced(x * x, 2)), 64, 18) * buffer(8, 64, 18), 1)

    assert 1 == len(scheduled([products(words)]).kernels)
    assert 2 == len(scheduled([products(long)]).kernels)


def _scaled(x: UOp) -> UOp:
    """The rows divided by their largest element."""
    return x / expanded(reduced(x.maximum(-x), 1, op=ops.MAX), 64, 32)


def test_a_row_is_reduced_where_it_is_read_anyway() -> None:
    """Another kernel needs the sums of the rows again and again: the one that scales the rows makes them on the way."""
    again = reduced(expanded(reduced(A, 1), 64, 16) * C, 0)
    stores = [len(kernel.src) for kernel in scheduled([again, _scaled(A)]).kernels]

    assert [2, 1] == stores


def test_what_a_kernel_may_store_is_found_in_long_graphs_as_in_short_ones() -> None:
    """Whether a group depends on another is looked for among the nodes above the value only."""
    x = A
    for number in range(100):
        x = relu(x + float(number + 2))
    largest = reduced(x.maximum(-x), 1, op=ops.MAX)
    again = reduced(expanded(largest, 64, 16) * C, 0)
    kernels = scheduled([again, _scaled(x)]).kernels

    assert 2 in [len(kernel.src) for kernel in kernels[-2:]]


def test_what_is_cheap_is_made_anew_for_a_few_rows_of_a_product() -> None:
    """A register tile shares it among its rows; many rows would make it again and again."""

    def product(rows: int) -> UOp:
        left, right = expanded(buffer(5, rows, 1, 48), rows, 64, 48), buffer(6, 1, 64, 48) * 3.0 + 1.0
        return reduced(left * expanded(right, rows, 64, 48), 2)

    assert [1, 1, 2] == [len(scheduled([product(rows)]).kernels) for rows in (2, 8, 64)]


def test_a_border_around_a_value_is_not_stored() -> None:
    """A pool reads what is inside of the border; that is stored by the kernel of the sum that it is made of."""
    pooled = Tensor(buffer(8, 4, 30, 30, 40)).sum(-1).relu().max_pool2d(3, 1, padding=1)
    first, last = scheduled([pooled.uop]).kernels
    (read,) = {node.src[0].arg[1] for node in toposort(last) if node.op is ops.LOAD}

    assert (4 * 30 * 30,) == read
    assert ops.REDUCE in [node.op for node in toposort(first)]


def test_the_scale_of_a_column_is_computed_once_and_not_for_each_tile() -> None:
    """A kernel of its own has it before; what is cheap, or as large as the result, is made where it is wanted."""
    x, w, column = buffer(8, 2048, 64), buffer(9, 64, 128), Tensor(buffer(7, 128))
    product = Tensor(matmul(x, w))

    assert 2 == len(scheduled([(product * (1 / (column + 1).sqrt() * column)).uop]).kernels)
    assert 1 == len(scheduled([(product * (column + 1)).uop]).kernels)
    assert 1 == len(scheduled([(product * (1 / (Tensor(buffer(6, 2048, 128)) + 1).sqrt())).uop]).kernels)
