"""What a mask makes vanish is not computed, and nothing else is left out."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.parse import parse
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.blocks import block_statements
from lazulite.kernel.nest import is_fixed
from lazulite.kernel.statements import split_statements
from lazulite.kernel.steps import Block
from support.kernels import assert_close, interpreted, random_memory
from support.statements import attention


def limits(kernel):
    """The ranges without a fixed number of turns, after blocks of four rows."""
    blocked = block_statements(kernel, [Block(split_statements(kernel).shared[-1].arg[0], 4)])
    return [node for node in toposort(blocked) if node.op is ops.RANGE and not is_fixed(node)]


def changed(kernel, old, new):
    text = to_text(kernel)
    assert old in text
    return parse(text.replace(old, new))


def test_every_loop_over_masked_scores_ends_where_the_mask_begins():
    found = limits(attention(rows=8, keys=9, causal=True))

    assert 5 == len(found)  # scores, maximum, powers, their sum, and the product with the values
    assert 1 == len({r.src[0] for r in found})
    assert (4, 8) == (min(r.src[0].vmin for r in found), max(r.src[0].vmax for r in found))


def weighted(rows: int = 8, keys: int = 9, size: int = 3) -> UOp:
    """The powers of masked scores, whose maximum is known, and a sum of these, as in gradients."""
    return parse(f"""
        kernel
        param p0 float32[{rows * size}]
        param p1 float32[{rows * keys}]
        param p2 float32[{keys * size}]
        param p3 float32[{rows}]
        scratch s0 float32[{keys}] align 64
        loop i in 0..{rows}
        loop d in 0..{size}
        loop w in 0..{keys}
        loop j in 0..{keys}
            s0[j] = exp(where(j < i + 1, p1[i*{keys} + j], -inf) - where(-inf < p3[i], p3[i], 0.0))
        p0[i*{size} + d] = sum(after(s0, j)[w] * p2[w*{size} + d] for w)
        """)


def test_a_choice_below_the_value_that_is_stored_limits_loops_too():
    kernel = weighted()
    memory = random_memory(kernel, Random(1))

    assert 2 == len(limits(kernel))
    assert_close(interpreted(kernel, memory), interpreted(block_statements(kernel, [Block((0,), 4)]), memory))


def test_without_a_mask_loops_stay_whole():
    assert [] == limits(attention(rows=8, keys=9))


@pytest.mark.parametrize(
    ("old", "new"),
    [("-inf)", "0.0)"), ("exp(", "sin("), ("where(-inf <", "where(-1.0 <"), ("max(", "min("), ("r7 < r1", "r7*2 < r1")],
    ids=["another constant", "another function", "a row of -inf", "another reduction", "another slope"],
)
def test_what_does_not_vanish_is_computed(old, new):
    kernel = changed(attention(rows=8, keys=9, causal=True), old, new)
    memory = random_memory(kernel, Random(3))

    assert [] == limits(kernel)
    assert_close(interpreted(kernel, memory), interpreted(block_statements(kernel, [Block((1,), 4)]), memory))


MASKS = {
    "causal": "r7 < r1 + 1", "the other side": "r1 < r7 + 1", "a window": "(r7 < r1 + 2) & (r1 < r7 + 2)",
    "two ends": "(r7 < r1 + 1) & (r7 < 6)", "beyond the end": "(r7 < r1 + 12) & (r1 < r7 + 1)",
    "before the begin": "r1 + 3 < r7 + 1",
}  # fmt: skip


def masked(rows, keys, mask):
    """Attention with a mask; "filled" is one that says where the scores are to be -inf."""
    if mask == "filled":
        text = to_text(attention(rows=rows, keys=keys, causal=True))
        score = text[text.index("where(r7 < r1 + 1, ") + 19 : text.index(", -inf)")]
        return parse(
            text.replace(f"where(r7 < r1 + 1, {score}, -inf)", f"where((r1 < r7) | (r7 + 4 < r1), -inf, {score})")
        )
    return changed(attention(rows=rows, keys=keys, causal=True), MASKS["causal"], MASKS[mask])


@pytest.mark.parametrize(
    ("mask", "most"), [("the other side", 9), ("a window", 9), ("before the begin", 6), ("filled", 8)]
)
def test_every_loop_over_masked_scores_begins_where_the_mask_ends(mask, most):
    found = limits(masked(8, 9, mask))

    assert 5 == len(found)
    assert 1 == len({r.src[0] for r in found})
    assert most == max(r.src[0].vmax for r in found)


def test_what_is_read_in_a_window_up_to_the_end_does_not_vary_with_where_it_begins():
    """So that copies of it can be made once for all blocks."""
    blocked = block_statements(masked(8, 9, "the other side"), [Block((1,), 4)])
    loads = [
        n for n in toposort(blocked) if n.op is ops.LOAD and n.src[0].op is ops.PARAM and n.src[0].arg[0] in (2, 3)
    ]

    assert 2 == len(loads)
    for load in loads:
        inside = toposort(load.src[1], enter=lambda n: n.op is not ops.RANGE)
        assert not any(node.op is ops.RANGE and node.arg[0][1:] == (1, 0) for node in inside)


@pytest.mark.parametrize("mask", [*MASKS, "filled"])
@given(rows=st.integers(1, 9), keys=st.integers(1, 9), factor=st.integers(1, 4))
@settings(max_examples=15, deadline=None)
def test_windows_change_no_result(mask, rows, keys, factor):
    kernel = masked(rows, keys, mask)
    memory = random_memory(kernel, Random(rows))

    assert_close(interpreted(kernel, memory), interpreted(block_statements(kernel, [Block((1,), factor)]), memory))


@given(rows=st.integers(1, 9), keys=st.integers(1, 9), factor=st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_limits_change_no_result(rows, keys, factor):
    kernel = attention(rows=rows, keys=keys, causal=True)
    memory = random_memory(kernel, Random(rows))

    assert_close(interpreted(kernel, memory), interpreted(block_statements(kernel, [Block((1,), factor)]), memory))


def test_a_value_behind_the_limit_has_no_influence():
    kernel = attention(heads=1, rows=4, keys=9, size=1, causal=True)
    memory = random_memory(kernel, Random(0))
    memory[3][4:] = np.nan

    assert np.isfinite(interpreted(block_statements(kernel, [Block((1,), 4)]), memory)[0]).all()
