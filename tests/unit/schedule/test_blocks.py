"""Kernels that run over the same rows become one, whose intermediates lie in scratch memory block by block."""

from __future__ import annotations

import numpy as np
import pytest

from lazulite import Tensor, Variable
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.ir.verify import verify
from lazulite.schedule.cuts import adds_over
from lazulite.schedule.reasons import kernel_reasons, reasons
from support.kernels import interpreted, turns
from support.schedules import buffer, expanded, matmul, moved, reduced, scheduled, softmax


def attention(n: int = 512, keys: int = 96, size: int = 16) -> UOp:
    q, k, v = buffer(1, n, size), buffer(2, keys, size), buffer(3, keys, size)
    return matmul(softmax(matmul(q, moved(ops.PERMUTE, k, (1, 0)))), v)


def test_attention_is_one_kernel_without_memory_for_the_scores():
    found = scheduled([attention()])

    assert 1 == len(found.kernels)
    assert () == found.schedule.plan.temporaries
    verify(found.kernels[0], "KERNEL")


@pytest.mark.parametrize(("keys", "size"), [(2048, 128), (4096, 128), (1024, 256)])
def test_attention_with_wide_heads_is_one_kernel_where_no_cache_holds_its_keys(keys, size):
    found = scheduled([attention(1024, keys, size)], cache=1 << 20)

    assert 1 == len(found.kernels)
    assert () == found.schedule.plan.temporaries


def test_a_block_of_each_intermediate_is_scratch_memory():
    (kernel,) = scheduled([attention(keys=96)]).kernels

    assert {96} == {node.arg[1] for node in toposort(kernel) if node.op is ops.SCRATCH}


def test_without_fusion_nothing_is_joined():
    assert 1 < len(scheduled([attention()], fuse=False).kernels)


def test_few_rows_stay_apart_so_that_threads_can_share_the_work():
    assert 1 < len(scheduled([attention(n=32)]).kernels)


def test_a_block_that_fits_no_cache_stays_in_memory_if_the_result_is_as_long():
    rows = softmax(matmul(buffer(1, 512, 16), buffer(2, 16, 4096)))

    assert 1 < len(scheduled([rows], cache=1 << 16).kernels)
    assert 1 == len(scheduled([attention(1024, keys=4096)], cache=1 << 16).kernels)


def test_weights_that_every_block_would_read_from_far_away_are_not_worth_it():
    x, first, second = buffer(1, 512, 256), buffer(2, 256, 1024), buffer(3, 1024, 256)
    hidden = matmul(x, first).maximum(UOp.const(x.dtype, 0))

    assert 1 == len(scheduled([matmul(hidden, second)], cache=1 << 22).kernels)
    assert 2 == len(scheduled([matmul(hidden, second)], cache=1 << 18).kernels)


def test_a_long_sum_keeps_its_kernel():
    def rows(depth: int) -> UOp:
        return softmax(matmul(buffer(1, 512, depth), buffer(2, depth, 64)))

    assert 1 == len(scheduled([rows(128)], cache=1 << 20).kernels)
    assert 2 == len(scheduled([rows(1024)], cache=1 << 20).kernels)


def test_a_value_that_is_read_in_other_rows_stays_in_memory():
    q = buffer(1, 512, 16)
    product = matmul(q, moved(ops.PERMUTE, q, (1, 0)))

    assert 2 == len(scheduled([matmul(moved(ops.PERMUTE, product, (1, 0)), q)]).kernels)


def test_a_value_that_somebody_asks_for_is_stored():
    scores = matmul(buffer(1, 512, 16), buffer(2, 16, 96))

    assert 1 < len(scheduled([scores, softmax(scores)]).kernels)


def test_row_reductions_alone_keep_their_kernels():
    x = buffer(1, 512, 96)
    powers = UOp.apply(ops.EXP, x)
    total = expanded(reduced(powers, 1), 512, 96)

    assert all(n.op is not ops.SCRATCH for k in scheduled([powers / total, powers]).kernels for n in toposort(k))


def test_the_reasons_of_all_joined_groups_are_told():
    schedule = scheduled([attention()]).schedule
    (kernel,) = schedule.kernels
    found = kernel_reasons(kernel, reasons(schedule.fusion))

    assert {"stored", "kept", "fused"} <= {decision.kind for decision in found}
    assert 1 == sum(decision.kind == "stored" for decision in found)
    assert any("scratch memory of each thread" in decision.reason for decision in found)


@pytest.mark.parametrize("keys", [1, 5])
def test_the_joined_kernel_computes_the_same(keys):
    (kernel,) = scheduled([attention(512, keys, 2)]).kernels
    assert turns(kernel) < 1 << 20
    numbers = np.random.default_rng(keys)
    q, k, v = (numbers.standard_normal((rows, 2)).astype(np.float32) for rows in (512, keys, keys))
    powers = np.exp((q @ k.T).astype(float))
    expected = powers / powers.sum(1, keepdims=True) @ v
    sizes = {n.arg[0]: n.arg[1][0] for n in toposort(kernel) if n.op is ops.PARAM}
    stored = {s.src[0].arg[0] for s in kernel.src}

    for roles in ((q, k, v), (v, q, k), (k, v, q), (q, v, k), (v, k, q), (k, q, v)):
        given = dict(zip([s for s in sizes if s not in stored], roles, strict=True))
        if any(sizes[slot] != values.size for slot, values in given.items()):
            continue
        memory = {slot: values.ravel() for slot, values in given.items()}
        memory |= {slot: np.zeros(sizes[slot], np.float32) for slot in stored}
        result = interpreted(kernel, memory)
        if np.allclose(expected.ravel(), result[next(iter(stored))], atol=1e-5):
            return
    raise AssertionError("no order of the arguments gives the expected result")


def test_sizes_that_vary_keep_their_kernels():
    rows = Variable("rows", 64, 512).bind(100)
    q = Tensor(np.ones((512, 16), np.float32)).realize()
    k = Tensor(np.arange(1024, dtype=np.float32).reshape(64, 16) / 1024).realize()
    some = q.shrink(((0, rows), (0, 16)))
    found = (some @ k.transpose(0, 1)).softmax() @ k

    assert 1 < len(found.explain().kernels)
    expected = np.exp(q.numpy() @ k.numpy().T)
    expected = expected / expected.sum(1, keepdims=True) @ k.numpy()
    np.testing.assert_allclose(found.numpy()[:100], expected[:100], rtol=1e-5)


def test_narrow_intermediates_keep_their_type():
    q, k = buffer(1, 512, 16, dtype=dtypes.float16), buffer(2, 16, 96, dtype=dtypes.float16)
    product = matmul(q, k)
    (kernel,) = scheduled([matmul(product, buffer(3, 96, 16, dtype=dtypes.float16))]).kernels

    assert {dtypes.float16} == {node.dtype for node in toposort(kernel) if node.op is ops.SCRATCH}


def gradients(heads: int = 4, rows: int = 512, size: int = 32, *, dtype: type = np.float32) -> list[UOp]:
    q, k, v, upstream = (Tensor(np.ones((heads, rows, size), dtype)).realize() for _ in range(4))
    result = q.scaled_dot_product_attention(k, v)
    return [t.uop for t in (result, *(result * upstream).sum().gradient(q, k, v))]


def test_scores_that_gradients_want_again_are_made_anew():
    found = scheduled(gradients(), cache=1 << 21)
    kept = [decision.reason for kernel in found.schedule.kernels for decision in kernel.kept]

    assert max(memory.nbytes for memory in found.schedule.plan.temporaries) <= 4 * 4 * 512 * 32
    assert sum("scratch memory of each thread" in reason for reason in kept) >= 8


def test_scores_lie_nowhere_though_products_would_read_their_columns():
    """Which axis lies innermost is a question of what is left in memory."""
    q, k, v = (Tensor(np.ones((4, 512, 32), np.float32)).realize() for _ in range(3))
    result = q.scaled_dot_product_attention(k, v)
    found = scheduled([t.uop for t in result.sum().gradient(q, k, v)], cache=1 << 21)

    assert max(memory.nbytes for memory in found.schedule.plan.temporaries) <= 4 * 4 * 512 * 32


@pytest.mark.parametrize("result", [False, True])
def test_weights_of_a_softmax_lie_nowhere_whoever_asks_for_the_result(result: bool):
    """Without it only the gradient of the values reads them, divided by their sum."""
    q, k, v, upstream = (Tensor(np.ones((4, 512, 32), np.float32)).realize() for _ in range(4))
    found = (q @ k.transpose(-1, -2)).softmax() @ v
    wanted = [*([found] if result else []), *(found * upstream).sum().gradient(q, k, v)]
    plan = scheduled([t.uop for t in wanted], cache=1 << 21).schedule.plan

    assert max([memory.nbytes for memory in plan.temporaries], default=0) <= 4 * 4 * 512 * 32


def test_scores_that_are_few_are_stored():
    found = scheduled(gradients(rows=256), cache=1 << 21)

    assert max(memory.nbytes for memory in found.schedule.plan.temporaries) == 4 * 4 * 256 * 256


def test_a_kernel_that_makes_the_scores_stores_their_maximum_and_sum():
    found = scheduled(gradients(), cache=1 << 21)
    stores = [[store.src[0].arg[1][0] for store in kernel.src] for kernel in found.kernels]

    assert [4 * 512 * 32, 4 * 512, 4 * 512] in [sorted(sizes, reverse=True) for sizes in stores]


def test_scores_are_made_three_times_though_nobody_asks_for_the_result():
    """Their sum is wanted before the weighted values are: the kernel that makes both runs in its place."""
    kernels = scheduled(gradients()[1:], cache=1 << 21).kernels
    stores = [[store.src[0].arg[1][0] for store in kernel.src] for kernel in kernels]

    assert [4 * 512 * 32, 4 * 512, 4 * 512] in [sorted(sizes, reverse=True) for sizes in stores]
    assert 3 == sum(any(n.op is ops.SCRATCH for n in toposort(kernel)) for kernel in kernels)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("wanted", [(1,), (2,), (3,), (1, 2), (2, 3), (0, 1), (1, 2, 3), (0, 1, 2, 3)], ids=str)
def test_no_kernel_reads_an_intermediate_that_it_stores(wanted: tuple[int, ...], dtype: type):
    """Kernels that read a value alike become one only if neither waits for what the other one makes."""
    q, upstream = (Tensor(np.ones((4, 512, 16), dtype)).realize() for _ in range(2))
    k, v = (Tensor(np.ones((2, 512, 16), dtype)).realize() for _ in range(2))
    result = q.scaled_dot_product_attention(k, v, enable_gqa=True)
    outputs = [result, *(result * upstream).sum().gradient(q, k, v)]
    found = scheduled([outputs[number].uop for number in wanted], cache=1 << 21)

    for kernel in found.schedule.kernels:
        assert kernel.reads.isdisjoint([memory for memory, _ in kernel.writes])


def test_powers_that_are_only_added_up_wait_nowhere():
    scores = matmul(buffer(1, 512, 16), buffer(2, 16, 96))
    powers = UOp.apply(ops.EXP, scores - expanded(reduced(scores, 1, op=ops.MAX), *scores.shape))
    (kernel,) = scheduled([reduced(powers, 1)]).kernels

    assert 1 == sum(node.op is ops.SCRATCH and node.arg[1] > 1 for node in toposort(kernel))


def test_powers_are_computed_as_scores_are_summed_up_where_nobody_else_reads_these():
    """Gradients know the maximum of the scores from before."""

    def filled(kernel: UOp) -> list[UOp]:
        return [n.src[2] for n in toposort(kernel) if n.op is ops.STORE and n.src[0].op is ops.SCRATCH]

    def is_maximum(node: UOp) -> bool:
        return node.op is ops.REDUCE and node.arg[0] is ops.MAX

    kernels = scheduled(gradients(), cache=1 << 21).kernels
    values = [value for kernel in kernels if not any(map(is_maximum, toposort(kernel))) for value in filled(kernel)]

    assert any(value.op is ops.EXP and any(n.op is ops.REDUCE for n in toposort(value)) for value in values)
    assert not any(value.op is ops.LOAD or value.op is ops.REDUCE for value in values)


def test_gradients_of_keys_and_values_are_stored_by_one_kernel_in_loops_of_their_own():
    found = scheduled(gradients(), cache=1 << 21)
    (kernel,) = [k for k in found.kernels if [4 * 512 * 32] * 2 == [store.src[0].arg[1][0] for store in k.src]]
    one, other = (split_results(store) for store in kernel.src)

    assert one.isdisjoint(other)


def adding(kernel: UOp) -> list[UOp]:
    """The results that turns add to."""
    return [store for store in kernel.src if adds_over(store)]


def test_all_gradients_are_stored_by_one_kernel_that_adds_up_those_of_the_queries():
    """So scores are made twice, with those for the result."""
    kernels = scheduled(gradients(heads=8), cache=1 << 21).kernels
    (kernel,) = [kernel for kernel in kernels if adding(kernel)]

    assert [8 * 512 * 32] * 3 == [store.src[0].arg[1][0] for store in kernel.src]
    assert 2 == sum(any(n.op is ops.SCRATCH for n in toposort(kernel)) for kernel in kernels)


@pytest.mark.parametrize(
    ("heads", "rows", "cache", "dtype"),
    [(4, 512, 1 << 21, np.float32), (8, 512, 1 << 17, np.float32), (8, 512, 1 << 21, np.float16)],
)
def test_gradients_of_queries_have_a_kernel_where_few_turns_are_left_or_memory_is_far_or_narrow(
    heads: int, rows: int, cache: int, dtype: type
):
    kernels = scheduled(gradients(heads, rows, dtype=dtype), cache=cache).kernels

    assert not any(map(adding, kernels))


def split_results(store: UOp) -> set[UOp]:
    """The loops of a result that are not around scratch memory."""
    nodes = toposort(store, enter=lambda n: n.op is not ops.AFTER)
    shared = frozenset[UOp]().union(*[n.ranges for n in nodes if n.op is ops.AFTER])
    return {n for n in nodes if n.op is ops.RANGE} - shared


def test_kernels_with_gradients_are_well_formed():
    for heads in (4, 8):
        for kernel in scheduled(gradients(heads), cache=1 << 21).kernels:
            verify(kernel, "KERNEL")
