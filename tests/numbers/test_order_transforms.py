"""Sorting, picking and placing under vmap, jvp, grad and jit: what they are of each example, and of what changes."""

from __future__ import annotations

import numpy as np
import pytest

from lazulite import Tensor, grad, jit, jvp, vmap

LONG = np.random.default_rng(0).normal(size=(3, 40_000)).astype(np.float32)
SHORT = np.ascontiguousarray(LONG[:, :500])


@pytest.mark.parametrize("values", [LONG, SHORT], ids=["in blocks", "in one kernel"])
def test_each_example_is_sorted_by_itself(values: np.ndarray) -> None:
    order = np.argsort(values, -1, kind="stable")
    assert order.tolist() == vmap(lambda row: row.argsort())(Tensor(values)).tolist()
    best = np.argsort(-values, -1, kind="stable")[:, :5]
    assert best.tolist() == vmap(lambda row: row.topk(5)[1])(Tensor(values)).tolist()


def test_true_positions_and_sums_by_positions_are_of_each_example() -> None:
    found = vmap(lambda row: (row > 0).nonzero(size=10).flatten())(Tensor(LONG))
    assert [np.flatnonzero(row > 0)[:10].tolist() for row in LONG] == found.tolist()
    places = np.random.default_rng(1).integers(0, 50, 70_000).astype(np.int32)
    weights = np.random.default_rng(2).integers(-9, 9, (3, 70_000)).astype(np.float32)
    zeros = Tensor(np.zeros(50, np.float32))
    sums = vmap(lambda row: zeros.scatter_add(0, Tensor(places), row))(Tensor(weights))
    assert [np.bincount(places, row, 50).tolist() for row in weights] == sums.tolist()


def test_tangents_and_gradients_go_with_their_elements() -> None:
    x, change = Tensor(LONG[0]), Tensor(LONG[1])
    order = np.argsort(LONG[0], kind="stable")
    assert LONG[1][order].tolist() == jvp(lambda v: v.sort()[0], (x,), (change,))[1].tolist()
    expected = np.zeros(40_000, np.float32)
    expected[order[::-1][:3]] = 1
    assert expected.tolist() == grad(lambda v: v.topk(3)[0].sum())(x).tolist()


def test_a_captured_sort_is_replayed_for_other_values() -> None:
    whole, first = jit(lambda v: v.sort()[0].realize()), jit(lambda v: v.topk(1000)[0].realize())
    for row in (LONG[0], LONG[1], LONG[2], LONG[0]):
        assert np.sort(row).tolist() == whole(Tensor(row)).tolist()
        assert (-np.sort(-row)[:1000]).tolist() == first(Tensor(row)).tolist()


def test_what_is_sorted_may_be_stored_in_its_own_place() -> None:
    x = Tensor(LONG[0].copy()).realize()
    x.assign(x.sort()[0])
    assert np.sort(LONG[0]).tolist() == x.tolist()
