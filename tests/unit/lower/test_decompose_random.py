"""Threefry in 32-bit words gives the interpreter's bits (A48)."""

import random

import numpy as np

from float_samples import cost, processor
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.lower.decompose import decompose
from numpy_oracle import evaluate, leaf


def test_the_bits_equal_the_meaning():
    """A48."""
    counter, key = leaf(dtypes.uint64, 0), leaf(dtypes.uint64, 1)
    rng = random.Random(5)
    edges = [0, 1, (1 << 32) - 1, 1 << 32, (1 << 64) - 1]
    pairs = [(c, k) for c in edges for k in edges] + [(rng.getrandbits(64), rng.getrandbits(64)) for _ in range(200)]
    counters, keys = (np.array(column, np.uint64) for column in zip(*pairs, strict=True))

    root = decompose(UOp.apply(ops.THREEFRY, counter, key), processor)

    assert [ops.THREEFRY.meaning(c, k) for c, k in pairs] == list(evaluate(root, {counter: counters, key: keys}))


def test_twenty_rounds_cost_five_operations_each_and_a_few_for_the_key():
    root = decompose(UOp.apply(ops.THREEFRY, leaf(dtypes.uint64, 0), leaf(dtypes.uint64, 1)), processor)

    assert cost(root) < 20 * 5 + 40
