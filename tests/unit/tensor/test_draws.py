"""Random orders and choices."""

from __future__ import annotations

import numpy as np
import pytest

from lazulite import ArgumentError, ShapeError, Tensor, dtypes


def test_an_order_holds_every_number_once_and_follows_the_seed() -> None:
    Tensor.manual_seed(3)
    first, second = Tensor.randperm(200).tolist(), Tensor.randperm(200).tolist()
    Tensor.manual_seed(3)

    assert list(range(200)) == sorted(first) == sorted(second)
    assert first != second
    assert first == Tensor.randperm(200).tolist()
    assert (0,) == Tensor.randperm(0).shape
    assert dtypes.int64 is Tensor.randperm(3, dtype="int64").dtype


def test_every_order_of_three_occurs() -> None:
    Tensor.manual_seed(0)
    orders = {tuple(Tensor.randperm(3).tolist()) for _ in range(80)}

    assert 6 == len(orders)


def test_positions_are_drawn_in_proportion_to_their_weights() -> None:
    Tensor.manual_seed(0)
    drawn = Tensor([[1.0, 0.0, 3.0], [0.0, 5.0, 0.0]]).multinomial(4000, replacement=True).numpy()
    counts = np.bincount(drawn[0], minlength=3)

    assert 0 == counts[1]
    assert 1000 == pytest.approx(counts[0], abs=120)
    assert {1} == set(drawn[1].tolist())


def test_without_replacement_no_position_is_drawn_twice() -> None:
    Tensor.manual_seed(0)
    weights = Tensor([[1.0, 2.0, 0.0, 4.0]]).expand(300, 4)
    drawn = weights.multinomial(3).numpy()

    assert all({0, 1, 3} == set(row) for row in drawn.tolist())
    assert 300 * 4 / 7 == pytest.approx((drawn[:, 0] == 3).sum(), abs=40)
    assert dtypes.int32.name == str(drawn.dtype)


def test_draws_that_make_no_sense_raise() -> None:
    with pytest.raises(ArgumentError, match="no -1 numbers"):
        Tensor.randperm(-1)
    with pytest.raises(ArgumentError, match="cannot draw 3 of 2"):
        Tensor([1.0, 1.0]).multinomial(3)
    with pytest.raises(ShapeError, match="one or two axes"):
        Tensor(1.0).multinomial(1)
