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
from lazulite.ir.uop import toposort
from lazulite.kernel.blocks import block_statements
from lazulite.kernel.nest import is_fixed
from lazulite.kernel.steps import Block
from support.kernels import assert_close, interpreted, random_memory
from support.statements import attention


def limits(kernel):
    """The ranges without a fixed number of turns, after blocks of four rows."""
    blocked = block_statements(kernel, [Block((1,), 4)])
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


def test_without_a_mask_loops_stay_whole():
    assert [] == limits(attention(rows=8, keys=9))


@pytest.mark.parametrize(
    ("old", "new"),
    [("-inf)", "0.0)"), ("exp(", "sin("), ("where(-inf <", "where(-1.0 <"), ("max(", "min("), ("r7 < r1", "r1 < r7")],
    ids=["another constant", "another function", "a row of -inf", "another reduction", "the other side"],
)
def test_what_does_not_vanish_is_computed(old, new):
    kernel = changed(attention(rows=8, keys=9, causal=True), old, new)
    memory = random_memory(kernel, Random(3))

    assert [] == limits(kernel)
    assert_close(interpreted(kernel, memory), interpreted(block_statements(kernel, [Block((1,), 4)]), memory))


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
