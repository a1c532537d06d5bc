"""Inputs that broke other frameworks, in indexing, promotion, gradients and draws, with the right values."""

from __future__ import annotations

import numpy as np

from lazulite import GlobalCounters, Tensor, dtypes


def test_the_gradient_of_a_scatter_reaches_only_the_values_that_were_placed():
    """B034"""
    src = Tensor([1.0, 2.0, 3.0, 4.0])
    placed = Tensor.zeros(4).scatter(0, Tensor([1, 2]), src)
    (slope,) = placed.sum().gradient(src)
    assert slope.tolist() == [1.0, 1.0, 0.0, 0.0]
    assert placed.tolist() == [0.0, 1.0, 2.0, 0.0]


def test_an_integer_beside_a_bfloat16_becomes_one():
    """B071"""
    total = Tensor([257], dtype=dtypes.int32) + Tensor([0.0], dtype=dtypes.bfloat16)
    assert (total.dtype, total.tolist()) == (dtypes.bfloat16, [256.0])


def test_a_tensor_without_elements_is_a_nested_list_of_its_shape():
    """B101"""
    assert Tensor.zeros(2, 0).tolist() == [[], []]
    assert Tensor.zeros(0, 2).tolist() == []


def test_a_long_index_sets_every_element():
    """B106"""
    x = Tensor.zeros(256, dtype="int32").contiguous()
    x[Tensor.arange(256)] = 5
    assert x.tolist() == [5] * 256


def test_integers_around_a_slice_set_what_they_set_in_numpy():
    """B107"""
    values = np.arange(6, dtype=np.int32).reshape(2, 3)
    expected = np.zeros((3, 3, 3), np.int32)
    expected[[0, 2], :, [0, 2]] = values
    x = Tensor.zeros(3, 3, 3, dtype="int32").contiguous()
    x[[0, 2], :, [0, 2]] = Tensor(values)
    assert x.tolist() == expected.tolist()


def test_a_mask_sets_and_gets():
    """B109"""
    mask = Tensor([True, False, True])
    x = Tensor([1, 2, 3])
    assert x[mask].tolist() == [1, 3]
    x[mask] = 0
    assert x.tolist() == [0, 2, 0]


def test_masked_select_takes_operations_in_proportion_to_the_elements():
    """B110"""

    def work(count: int) -> int:
        values = np.random.default_rng(0).normal(size=count).astype(np.float32)
        x, before = Tensor(values).realize(), GlobalCounters.global_ops
        np.testing.assert_array_equal(values[values > 0], x.masked_select(x > 0).numpy())
        return GlobalCounters.global_ops - before

    assert work(3_000_000) <= 101 * work(30_000)


def test_every_class_is_drawn_from_probabilities_made_by_numpy():
    """B115"""
    Tensor.manual_seed(1)
    weights = Tensor(np.ones(27, np.float32))
    drawn = (weights / weights.sum()).multinomial(200, replacement=True).numpy()
    counts = np.bincount(drawn, minlength=27)
    assert len(counts) == 27 and counts.max() <= 25 and (counts > 0).sum() >= 22
