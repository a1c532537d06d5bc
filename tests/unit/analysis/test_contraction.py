"""What is a contraction, and what is not."""

from __future__ import annotations

import pytest

from lazulite.analysis.access import coefficient
from lazulite.analysis.contraction import Contraction, contraction
from lazulite.analysis.index_map import flat, origin
from lazulite.analysis.regions import apply_region
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.simplify.normal import normalise
from support.index_grid import loop
from support.windows import on_axis, windows

M, N, K = loop(4, 0), loop(5, 1), loop(6, 2)


def memory(slot: int, size: int = 4096, dtype=dtypes.float32) -> UOp:
    return UOp(ops.PARAM, dtype, (), (slot, (size,), "CPU"))


def load(slot: int, at: UOp, dtype=dtypes.float32) -> UOp:
    return UOp(ops.LOAD, dtype, (memory(slot, dtype=dtype), *normalise(at)))


def sum_over(value: UOp, *ranges: UOp, op: ops.Op = ops.ADD) -> UOp:
    return UOp(ops.REDUCE, value.dtype, (value, *ranges), (op, ()))


def found(node: UOp) -> Contraction:
    result = contraction(node)
    assert result is not None
    return result


def test_a_matrix_product_is_a_contraction():
    a, b = load(0, M * 6 + K), load(1, K * 5 + N)
    result = found(sum_over(a * b, K))

    assert (result.left, result.right, result.batch, result.reduction) == ({M}, {N}, frozenset(), (K,))
    assert result.factors == (a, b)


def test_a_batched_product_in_half_precision_is_a_contraction():
    batch = loop(2, -1)
    a = load(0, batch * 24 + M * 6 + K, dtypes.float16).cast(dtypes.float32)
    b = load(1, batch * 30 + K * 5 + N, dtypes.float16).cast(dtypes.float32)

    assert found(sum_over(a * b, K)).batch == {batch}


def test_a_matrix_times_a_vector_has_one_side_without_ranges():
    result = found(sum_over(load(0, M * 6 + K) * load(1, K), K))

    assert (result.left, result.right) == ({M}, frozenset())


@pytest.mark.parametrize("value", [
    load(0, M * 6 + K) * load(0, M * 6 + K),
    load(0, K) * load(1, K),
    load(0, M) * load(1, N),
    load(0, M * 6 + K) + load(1, K * 5 + N),
], ids=["squares", "dot product", "nothing summed", "no product"])  # fmt: skip
def test_other_sums_are_none(value):
    assert contraction(sum_over(value, K)) is None


def test_a_maximum_of_products_is_none():
    assert contraction(sum_over(load(0, M * 6 + K) * load(1, K * 5 + N), K, op=ops.MAX)) is None
    assert contraction(load(0, M)) is None


def test_a_gate_over_one_side_is_kept_and_one_over_both_sides_refused():
    product = load(0, M * 6 + K) * load(1, K * 5 + N)
    gate = K < M + 2

    assert found(sum_over(gate.where(product, 0.0), K)).gate is gate
    assert found(sum_over((~gate).where(UOp.const(dtypes.float32, 0), product), K)).gate is ~~gate
    assert contraction(sum_over((N < M).where(product, 0.0), K)) is None


def test_a_convolution_in_index_form_is_a_contraction():
    n, o, y, x, c, ky, kx = (loop(extent, order) for order, extent in enumerate((2, 8, 6, 7, 3, 3, 3)))
    image = UOp(ops.PARAM, dtypes.float32, (), (0, (2, 3, 8, 9), "CPU"))
    view = apply_region(image, on_axis(windows(8, 3), (2, 3), (9,)))
    view = apply_region(view, on_axis(windows(9, 3), (2, 3, 3, 6), ()))
    source, position, gate = origin(view, (n, c, ky, y, kx, x))
    pixels = load(0, flat(source.shape, position))
    weights = load(1, flat((8, 3, 3, 3), (o, c, ky, kx)))
    result = found(sum_over(pixels * weights, c, ky, kx))

    assert gate is None
    assert [coefficient(pixels.src[1], r) for r in (n, c, y, x, ky, kx)] == [216, 72, 9, 1, 9, 1]
    assert (result.left, result.right, result.batch) == ({n, y, x}, {o}, frozenset())
    assert result.reduction == (c, ky, kx)
