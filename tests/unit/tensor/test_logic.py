"""Comparison, choice and bits."""

from __future__ import annotations

import math

import pytest

from lazulite import DTypeError, ShapeError, Tensor, dtypes


def test_nothing_but_inequality_holds_beside_nan() -> None:
    """O02"""
    x, one = Tensor([math.nan]), Tensor([1.0])
    for held in (x >= 1, x <= one, x > 1, x < 1, x == x, x >= x):
        assert [False] == held.tolist()
    assert [True] == (x != x).tolist()


def test_comparisons_give_bools_and_work_both_ways() -> None:
    x = Tensor([1, 2, 3])

    assert dtypes.bool is (x < 2).dtype
    assert [False, True, False] == (x == 2).tolist() == (2 == x).tolist()
    assert [True, False, False] == (2 > x).tolist()


def test_a_tensor_is_hashed_by_identity() -> None:
    x, y = Tensor([1]), Tensor([1])

    assert {x: "x", y: "y"}[x] == "x"


def test_bits_are_pythons() -> None:
    x = Tensor([6, 3, -1])

    assert [6 & 5, 3 & 5, 5] == (x & 5).tolist() == (5 & x).tolist()
    assert [6 | 5, 3 | 5, -1] == (x | 5).tolist() == (5 | x).tolist()
    assert [6 ^ 5, 3 ^ 5, -1 ^ 5] == (5 ^ x).tolist()
    assert [~6, ~3, 0] == (~x).tolist()
    assert [12, 6, -2] == (x << 1).tolist()
    assert [3, 1, -1] == (x >> 1).tolist()
    assert [64, 8] == (1 << Tensor([6, 3])).tolist()
    assert [1, 8] == (64 >> Tensor([6, 3])).tolist()
    assert [0] == (Tensor([1], dtype="uint8") << 8).tolist()


def test_bits_in_place_write_the_tensor() -> None:
    x = Tensor([6, 3])
    x &= 7
    x |= 8
    x ^= 1
    x <<= 2
    x >>= 1

    assert [((6 | 8) ^ 1) * 2, ((3 | 8) ^ 1) * 2] == x.tolist()


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor", "lshift", "rshift"])
def test_floats_have_no_bits(name: str) -> None:
    with pytest.raises(DTypeError, match=f"{name}: has no meaning for float32"):
        getattr(Tensor([1.0]), name)(Tensor([2.0]))


def test_logic_takes_zero_for_false() -> None:
    x, y = Tensor([0.0, 0.5, 2.0]), Tensor([1.0, 0.0, 3.0])

    assert [False, False, True] == x.logical_and(y).tolist()
    assert [True, True, True] == x.logical_or(y).tolist()
    assert [True, False, False] == x.logical_not().tolist()


def test_a_choice_broadcasts_all_three() -> None:
    gate = Tensor([[True], [False]])

    assert [[1, 2, 3], [0, 0, 0]] == gate.where(Tensor([1, 2, 3]), 0).tolist()
    assert [1.5, 0.0] == Tensor([3, 0]).where(1.5, 0).tolist()
    with pytest.raises(ShapeError, match="where: shapes do not broadcast"):
        gate.where(Tensor([1, 2, 3]), Tensor([1, 2]))


def test_scalar_choices_are_weak_beside_the_other_choice() -> None:
    gate, x = Tensor([True, False]), Tensor([1, 2], dtype="int8")

    assert dtypes.int8 is gate.where(x, 0).dtype
    assert dtypes.float32 is gate.where(x, 0.5).dtype
    assert dtypes.int32 is gate.where(1, 0).dtype
    with pytest.raises(OverflowError):
        gate.where(x, 300)


def test_a_choice_passes_the_gradient_to_what_was_chosen() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    for_x, for_y = Tensor([True, False]).where(x, y).sum().gradient(x, y)

    assert [1.0, 0.0] == for_x.tolist()
    assert [0.0, 1.0] == for_y.tolist()
