"""Kernels of groups: what is picked at computed positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import GlobalCounters, Tensor
from lazulite.ir import ops
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.uop import UOp, toposort
from support.random_graphs import movement


def gathered(x: Tensor, *positions: Tensor) -> Tensor:
    return Tensor(UOp(ops.GATHER, x.dtype, (x.uop, *[p.uop for p in positions])))


def numbers(*shape: int, low: int = -9, high: int = 9, seed: int = 0) -> Tensor:
    array = np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)
    return Tensor(array).realize()


def meaning(x: Tensor) -> list[Any]:
    """What the interpreter makes of the value, from the leaves' contents."""
    leaves = [node for node in toposort(x.uop) if node.op is ops.BUFFER]
    return evaluate_tensors([x.uop], {leaf: Tensor(leaf).flatten().tolist() for leaf in leaves})[0]


@given(st.data())
def test_picking_behind_any_movements_means_what_the_interpreter_says(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    x = numbers(*shape)
    for _ in range(data.draw(st.integers(0, 3))):
        name, arg = movement(data.draw, x.shape)
        x = Tensor(UOp(ops.OPS[name], x.dtype, (x.uop,), arg))
    if not x.shape:
        x = x.reshape(1)
    own = data.draw(st.sampled_from([(), (3,), (2, 5)]))
    count = data.draw(st.integers(1, len(x.shape)))
    positions = [numbers(*own, low=-1, high=size + 2, seed=axis) for axis, size in enumerate(x.shape[:count])]
    consumer = data.draw(st.sampled_from([lambda y: y, lambda y: y + 1, lambda y: y.sum(), lambda y: gathered(y, y)]))
    result = gathered(x, *positions)
    result = consumer(result) if result.shape else result

    assert meaning(result) == result.flatten().tolist()


def test_a_leaf_is_picked_from_without_a_copy_of_it() -> None:
    x, rows = numbers(30, 20, 4), numbers(7, low=0, high=20)
    GlobalCounters.reset()
    gathered(x.permute(1, 0, 2).flip(0).shrink(((2, 20), None, None)), rows).realize()

    assert GlobalCounters.kernel_count == 1


def test_a_computed_value_is_stored_once_and_picked_from() -> None:
    x, rows = numbers(30, 20), numbers(7, low=0, high=30)
    GlobalCounters.reset()
    (gathered(x * 2, rows) + gathered(x * 2, rows + 1)).realize()

    assert GlobalCounters.kernel_count == 2


def test_what_is_cast_is_picked_first() -> None:
    x, rows = numbers(30, 20), numbers(7, low=-2, high=30)
    GlobalCounters.reset()
    picked = gathered(x.float(), rows).realize()

    assert GlobalCounters.kernel_count == 1
    assert picked.tolist() == gathered(x, rows).float().tolist()


def test_positions_are_computed_where_they_are_used() -> None:
    x, scores = numbers(10, 3), numbers(6, 10, seed=3)
    GlobalCounters.reset()
    picked = gathered(x, scores.argmax(1)).realize()

    assert GlobalCounters.kernel_count <= 3
    assert picked.tolist() == [x.tolist()[place] for place in scores.argmax(1).tolist()]


@pytest.mark.parametrize("shape", [(64, 33), (257, 5), (3, 1000)])
def test_picked_rows_enter_products_and_sums(shape: tuple[int, int]) -> None:
    table = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    rows = np.arange(90, dtype=np.int32) * 7 % shape[0]
    weight = np.random.default_rng(1).standard_normal((shape[1], 17)).astype(np.float32)
    picked = gathered(Tensor(table), Tensor(rows))

    assert table[rows] @ weight == pytest.approx((picked @ Tensor(weight)).numpy(), rel=1e-4, abs=1e-4)
    assert table[rows].sum(0) == pytest.approx(picked.sum(0).numpy(), rel=1e-4, abs=1e-4)


def test_a_target_may_be_written_with_what_is_picked_from_it() -> None:
    x = numbers(100).realize()
    before = x.tolist()
    x.assign(gathered(x, Tensor(np.arange(99, -1, -1, dtype=np.int32))))

    assert before[::-1] == x.tolist()


def test_nothing_is_picked_from_nothing() -> None:
    empty = Tensor(np.zeros((0, 3), np.int32))

    assert [[0, 0, 0]] == gathered(empty, Tensor([0])).tolist()
    assert math.prod((0, 3)) == gathered(numbers(4, 3), Tensor(np.zeros(0, np.int32))).numel()
