"""Long float sums become nested ones, and nothing else changes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.evaluate import run_kernel
from lazulite.ir.parse import parse
from lazulite.ir.uop import UOp, toposort
from lazulite.lower.group_sums import GROUP, group_sums


def column_sum(count: int, dtype: str = "float32") -> UOp:
    return parse(
        f"kernel\nparam p0 {dtype}[3]\nparam p1 {dtype}[{count * 3}]\nloop r0 in 0..3\nloop r1 in 0..{count}\n"
        "p0[r0] = sum(p1[r0 + r1*3] for r1)\n"
    )


def reductions(root: UOp) -> list[UOp]:
    return [node for node in toposort(root) if node.op is ops.REDUCE]


def length(node: UOp) -> int:
    turns = 1
    for r in node.src[1:]:
        turns *= int(r.vmax) + 1
    return turns


@given(st.integers(1, 5000))
def test_no_loop_of_a_sum_is_long(count: int) -> None:
    assert max(map(length, reductions(group_sums(column_sum(count)))), default=1) <= GROUP


@given(st.integers(2, 5000))
def test_the_roundings_of_a_sum_keep_the_promised_bound(count: int) -> None:
    """Half an eps for each addition on the longest way from a summand to the result."""
    additions: dict[UOp, int] = {}
    root = group_sums(column_sum(count))
    for node in toposort(root):
        own = length(node) - 1 if node.op is ops.REDUCE else int(node.op is ops.ADD and node.dtype.is_float)
        additions[node] = own + max((additions[source] for source in node.src), default=0)

    assert additions[root] / 2 <= 2 * (math.log2(count) + 1)


@given(st.integers(1, 400))
def test_every_summand_counts_once(count: int) -> None:
    kernel, numbers = column_sum(count), [float(i) for i in range(count * 3)]
    plain, grouped = {0: [0.0] * 3, 1: numbers}, {0: [0.0] * 3, 1: list(numbers)}
    run_kernel(kernel, plain, {})
    run_kernel(group_sums(kernel), grouped, {})

    assert plain[0] == grouped[0]


@pytest.mark.parametrize("kernel", [column_sum(GROUP), column_sum(1000, "int32")], ids=["short", "integers"])
def test_short_sums_and_sums_of_integers_stay_as_they_are(kernel: UOp) -> None:
    assert kernel is group_sums(kernel)


def test_a_matrix_product_keeps_its_loop() -> None:
    kernel = parse(
        "kernel\nparam p0 float32[12]\nparam p1 float32[300]\nparam p2 float32[400]\n"
        "loop r0 in 0..3\nloop r1 in 0..4\nloop r2 in 0..100\n"
        "p0[r0*4 + r1] = sum(p1[r0*100 + r2] * p2[r1 + r2*4] for r2)\n"
    )

    assert kernel is group_sums(kernel)


def test_groups_have_a_size_that_divides_where_there_is_one() -> None:
    sizes = sorted(map(length, reductions(group_sums(column_sum(12 * 30)))))

    assert sizes == [2, 12, 15]


@given(st.integers(0, 300))
def test_a_sum_of_a_size_that_varies_is_in_groups_too(count: int) -> None:
    kernel = parse(
        "kernel\nparam p0 float32[1]\nparam p1 float32[300]\nscalar p2 index 0..300\n"
        "loop r1 in 0..p2\np0[0] = sum(p1[r1] for r1)\n"
    )
    grouped = group_sums(kernel)
    memory = {0: [0.0], 1: [float(i) for i in range(300)]}
    run_kernel(grouped, memory, {2: count})

    assert max(map(length, reductions(grouped))) <= 2 * GROUP
    assert [count * (count - 1) / 2] == memory[0]


def test_a_sum_inside_of_another_over_the_same_range_keeps_its_range() -> None:
    kernel = parse(
        "kernel\nparam p0 float32[1]\nparam p1 float32[48]\nloop r1 in 0..48\n"
        "p0[0] = sum(p1[r1] * sum(p1[r1] for r1) for r1)\n"
    )
    memory = {0: [0.0], 1: [1.0] * 48}
    run_kernel(group_sums(kernel), memory, {})

    assert [48.0 * 48.0] == memory[0]
