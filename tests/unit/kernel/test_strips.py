"""Statements over strips of the axis that they reduce, with running results."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite import Tensor
from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.canonical import canonical
from lazulite.ir.parse import parse
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp, toposort
from lazulite.ir.verify import verify
from lazulite.kernel.blocks import block_statements
from lazulite.kernel.heuristic import choose
from lazulite.kernel.statements import split_statements
from lazulite.kernel.steps import Block, Name, Parallel, Strip
from support.kernels import TARGETS, assert_close, compiled, interpreted, random_memory
from support.schedules import scheduled
from support.statements import attention


def axis(kernel: UOp) -> Name:
    """The longest range of the place where the first statement stores."""
    ranges = split_statements(kernel).kernels[0].src[0].src[1].ranges
    return max(ranges, key=lambda r: (r.src[0].vmax, r.arg[0])).arg[0]


def changed(kernel, old, new):
    text = to_text(kernel)
    assert old in text
    return parse(text.replace(old, new))


def masked(rows: int, keys: int, *, plain: bool = False, dtype: str = "float32", shared: int = 1) -> UOp:
    """Attention with a mask of numbers as the scheduler writes it, in one kernel."""
    q = Tensor(np.ones((2 * shared, rows, 2), dtype))
    k, v = (Tensor(np.ones((2, keys, 2), dtype)) for _ in range(2))
    mask = Tensor(np.ones((rows, keys), np.float32))
    if plain:
        found = (q @ k.transpose(-1, -2) + mask).softmax() @ v
    else:
        found = q.scaled_dot_product_attention(k, v, attn_mask=mask, enable_gqa=shared > 1)
    (kernel,) = scheduled([found.uop]).kernels
    return kernel


def test_scratch_memory_holds_a_strip_and_the_running_results():
    kernel = attention(keys=8, size=3)
    sizes = {n.arg[1] for n in toposort(block_statements(kernel, [Strip(axis(kernel), 4)])) if n.op is ops.SCRATCH}

    assert {4, 3, 2, 1} == sizes  # scores and powers, weighted values, two maxima, a sum and a ratio


def keeping(maximum: str) -> UOp:
    """Sums of powers in p1, and the maxima in p2, which this statement keeps in s1."""
    return parse(f"""
        kernel
        param p0 float32[12]
        param p1 float32[6]
        param p2 float32[6]
        scratch s0 float32[12] align 64
        scratch s1 float32[1] align 64
        loop i in 0..6
        loop t in 0..12
        loop m in 0..12
        loop j in 0..12
            s0[j] = p0[j] + p0[i]
        scores = after(s0, j)
        {maximum}
        top = after(s1, kept)[0]
        p1[i] = sum(exp(scores[t] - where(-inf < top, top, 0.0)) for t)
        p2[i] = top
        """)


def test_an_intermediate_that_is_a_running_result_is_read_where_that_is_kept():
    kernel = keeping("s1[0] = max(scores[m] for m) as kept")
    memory, result = random_memory(kernel, Random(0)), block_statements(kernel, [Block((0,), 3), Strip((3,), 4)])

    assert 5 == len(split_statements(result).kernels)  # scores, the maximum, a ratio, the sum and the results
    assert_close(interpreted(kernel, memory), interpreted(result, memory))


def test_a_running_result_that_is_not_read_as_it_is_written_is_refused():
    """Along the range of one turn memory might be walked as along the rows of a block."""
    kernel = keeping("""loop kept in 0..1
            s1[kept] = max(scores[m] for m)""")

    with pytest.raises(StageError, match="in another way than it is written"):
        block_statements(kernel, [Block((0,), 3), Strip((3,), 4)])


@given(
    rows=st.integers(1, 7), keys=st.integers(3, 12), factor=st.integers(1, 5), block=st.integers(1, 4),
    causal=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_strips_of_any_size_compute_the_same(rows, keys, factor, block, causal, seed):
    kernel = attention(rows=rows, keys=keys, causal=causal)
    memory = random_memory(kernel, Random(seed))
    if keys == 3:  # the range over the size of a key is as long
        return
    steps = [Block((1,), block), Strip(axis(kernel), min(factor, keys - 1))]
    result = block_statements(kernel, steps)

    verify(canonical(result), "KERNEL")
    assert_close(interpreted(kernel, memory), interpreted(result, memory))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("keys", [8, 11])
@pytest.mark.parametrize("causal", [False, True])
def test_compiled_strips_compute_the_same(name, keys, causal):
    kernel = attention(heads=3, rows=6, keys=keys, causal=causal)
    memory = random_memory(kernel, Random(1))
    steps = (Block((1,), 4), Strip(axis(kernel), 4), Parallel((0,)))

    assert_close(interpreted(kernel, memory), compiled(kernel, TARGETS[name], steps, memory, chunks=2))


@pytest.mark.parametrize("plain", [False, True], ids=["attention", "softmax"])
@pytest.mark.parametrize("hidden", ["some", "first strips", "a row", "not a number", "infinity"])
def test_rows_of_nothing_and_of_infinities_are_as_in_the_whole(plain, hidden):
    """B082: -inf hides a key; a softmax of nothing but -inf is NaN, attention of it zeros; NaN and inf come through."""
    kernel = masked(256, 8, plain=plain)
    memory = random_memory(kernel, Random(2))
    (slot,) = [slot for slot, values in memory.items() if values.size == 256 * 8]
    mask = memory[slot].reshape(256, 8)
    mask[np.random.default_rng(0).random(mask.shape) < 0.4] = -np.inf
    mask[:, -1] = 0
    mask[10:20, :6] = -np.inf if hidden == "first strips" else 0
    mask[30] = {"a row": -np.inf, "not a number": np.nan, "infinity": np.inf}.get(hidden, 0)
    mask[31, 5] = {"not a number": np.nan, "infinity": np.inf}.get(hidden, 0)
    result = block_statements(kernel, [Strip(axis(kernel), 3)])

    with np.errstate(all="ignore"):
        assert_close(interpreted(kernel, memory), interpreted(result, memory))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("shared", [1, 2])
def test_narrow_types_and_shared_heads_run_over_strips(dtype, shared):
    kernel = masked(256, 8, dtype=dtype, shared=shared)
    memory = random_memory(kernel, Random(3))
    expected = interpreted(kernel, memory)
    found = interpreted(block_statements(kernel, [Strip(axis(kernel), 4)]), memory)

    for slot, values in expected.items():
        np.testing.assert_allclose(found[slot], values, rtol=2e-6, atol=2e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [("exp(", "sin(", "another way"), ("max(", "min(", "running result"), ("powers", "powers", "")],
    ids=["another function", "another reduction", "none"],
)
def test_what_does_not_follow_a_maximum_is_refused(old, new, reason):
    kernel = attention(keys=8)
    if not reason:
        assert kernel is not block_statements(kernel, [Strip(axis(kernel), 4)])
        return
    with pytest.raises(StageError, match=reason):
        block_statements(changed(kernel, old, new), [Strip(axis(kernel), 4)])


def test_a_range_that_no_intermediate_has_makes_no_strips():
    with pytest.raises(StageError, match="no such range"):
        block_statements(attention(keys=8), [Strip((99,), 4)])


def test_a_result_as_long_as_the_axis_is_refused():
    kernel = parse("""
        kernel
        param p0 float32[32]
        param p1 float32[32]
        scratch s0 float32[8] align 64
        loop i in 0..4
        loop m in 0..8
        loop w in 0..8
        loop j in 0..8
            s0[j] = exp(p1[i*8 + j])
        powers = after(s0, j)
        p0[i*8 + w] = powers[w] / sum(powers[m] for m)
        """)
    with pytest.raises(StageError, match="results have the axis"):
        block_statements(kernel, [Strip(axis(kernel), 4)])


@pytest.mark.parametrize("turned", [False, True])
def test_so_is_any_of_several_results(turned: bool):
    stores = ["p0[i*2 + d] = sum(after(s0, j)[m] * p2[m*2 + d] for m)", "p1[i*8 + w] = after(s0, j)[w]"]
    first, second = reversed(stores) if turned else stores
    kernel = parse(f"""
        kernel
        param p0 float32[8]
        param p1 float32[32]
        param p2 float32[16]
        param p3 float32[32]
        scratch s0 float32[8] align 64
        loop i in 0..4
        loop d in 0..2
        loop m in 0..8
        loop w in 0..8
        loop j in 0..8
            s0[j] = exp(p3[i*8 + j])
        {first}
        {second}
        """)
    with pytest.raises(StageError, match="results have the axis"):
        block_statements(kernel, [Strip(axis(kernel), 4)])


def two_sums(rows: int = 4, keys: int = 12, size: int = 3, total: str = "{}") -> UOp:
    """Two sums over one intermediate, each a result in loops of its own."""
    first, second = (total.format(f"sum(after(s0, j)[{r}] * p3[{r}*{size} + {d}] for {r})") for r, d in ("vd", "we"))
    return parse(f"""
        kernel
        param p0 float32[{rows * size}]
        param p1 float32[{rows * size}]
        param p2 float32[{rows * keys}]
        param p3 float32[{keys * size}]
        scratch s0 float32[{keys}] align 64
        loop i in 0..{rows}
        loop d in 0..{size}
        loop v in 0..{keys}
        loop e in 0..{size}
        loop w in 0..{keys}
        loop j in 0..{keys}
            s0[j] = exp(p2[i*{keys} + j])
        p0[i*{size} + d] = {first}
        p1[i*{size} + e] = {second}
        """)


@pytest.mark.parametrize(("total", "scratch"), [("{}", 1), ("{} * 2.0", 3)])
@pytest.mark.parametrize("factor", [4, 5])
def test_a_sum_that_is_a_result_adds_up_where_that_lies(total: str, scratch: int, factor: int):
    kernel = two_sums(total=total)
    memory = random_memory(kernel, Random(factor))
    strips = block_statements(
        kernel, [Block(split_statements(kernel).shared[0].arg[0], 2), Strip(axis(kernel), factor)]
    )

    verify(canonical(strips), "KERNEL")
    assert parse(to_text(strips)) is canonical(strips)
    assert scratch == sum(n.op is ops.SCRATCH for n in toposort(strips))
    assert_close(interpreted(kernel, memory), interpreted(strips, memory))
    for target in TARGETS.values():
        assert_close(interpreted(kernel, memory), compiled(strips, target, choose(strips, target), memory))


def test_running_sums_of_all_results_come_before_the_first_result():
    kernel = two_sums(total="{} * 2.0")
    strips = block_statements(kernel, [Strip(axis(kernel), 4)])

    assert {ops.PARAM} == {store.src[0].op for store in strips.src}


def test_a_result_that_somebody_reads_does_not_hold_sums_before_they_are_done():
    kernel = changed(two_sums(), "p3[", "p0[")
    strips = block_statements(kernel, [Strip(axis(kernel), 4)])

    assert 2 == sum(n.op is ops.SCRATCH for n in toposort(strips))


def test_nor_does_memory_that_two_statements_write():
    """Which of them a place belongs to is not asked."""
    kernel = changed(changed(two_sums(), "p1[", "p0[12 + "), "param p0 float32[12]", "param p0 float32[24]")
    strips = block_statements(kernel, [Strip(axis(kernel), 4)])
    memory = random_memory(kernel, Random(2))

    assert 3 == sum(n.op is ops.SCRATCH for n in toposort(strips))
    assert_close(interpreted(kernel, memory), interpreted(strips, memory))


def test_long_rows_are_worked_on_in_strips_and_short_ones_as_a_whole():
    target = TARGETS["widest"]
    (strip,) = [s for s in choose(attention(rows=64, keys=1 << 14, size=16), target) if isinstance(s, Strip)]

    assert strip.factor * 64 * 2 * 4 <= target.l2 // 4
    assert (1 << 14) % strip.factor == 0
    assert not [s for s in choose(attention(rows=64, keys=1 << 10, size=16), target) if isinstance(s, Strip)]
