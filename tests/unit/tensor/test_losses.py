"""Losses and class vectors."""

from __future__ import annotations

import math

import pytest

from lazulite import ArgumentError, DTypeError, ShapeError, Tensor, dtypes


def test_classes_become_vectors() -> None:
    assert [[[1, 0], [0, 1]]] == Tensor([[0, 1]]).one_hot(2).tolist()
    assert [[0, 0]] == Tensor([5]).one_hot(2).tolist()
    assert dtypes.int32 is Tensor([5], dtype="uint64").one_hot(2).dtype
    with pytest.raises(DTypeError, match="class numbers are integers"):
        Tensor([0.0]).one_hot(2)


def test_the_number_of_classes_is_an_integer() -> None:
    for wrong in (1.5, "x", -2, None, Tensor(1.5)):
        with pytest.raises((ShapeError, DTypeError), match="one_hot:"):
            Tensor([0, 1]).one_hot(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "uint64"])
def test_class_numbers_of_any_integer_type_are_held_against_the_ignored_one(dtype: str) -> None:
    scores, classes = Tensor([[0.0, 0.0], [1.0, 3.0]]), Tensor([1, 0], dtype=dtype)
    expected = scores.cross_entropy(classes.int()).item()

    assert expected == scores.cross_entropy(classes).item()
    assert expected == scores.log_softmax().nll_loss(classes, ignore_index=-100).item()


def test_a_single_number_is_no_score() -> None:
    number = Tensor(2.0)
    for loss in (number.cross_entropy, number.nll_loss, number.sparse_categorical_crossentropy):
        with pytest.raises(ShapeError, match="scores have an axis of classes"):
            loss(Tensor(0))


def test_ignored_rows_do_not_take_part_in_the_mean() -> None:
    """B083"""
    logits, targets = Tensor([[1.0, 2.0], [3.0, 0.4], [0.0, 1.0]]), Tensor([-100, 1, 0])

    assert 1.902453 == pytest.approx(logits.cross_entropy(targets, label_smoothing=0.1).item(), rel=1e-6)


def test_classes_run_along_axis_one() -> None:
    logits = Tensor.zeros(2, 4, 3)

    assert math.log(4) == pytest.approx(logits.cross_entropy(Tensor([[0, 1, 2], [3, 0, 1]])).item(), rel=1e-6)
    assert math.log(4) == pytest.approx(Tensor.zeros(4).cross_entropy(Tensor(2)).item(), rel=1e-6)
    with pytest.raises(ShapeError, match=r"cross_entropy: .* needs class numbers of shape \(2, 3\)"):
        logits.cross_entropy(Tensor([0, 1]))


def test_targets_may_be_probabilities() -> None:
    logits, half = Tensor([[0.0, 2.0]]), Tensor([[0.5, 0.5]])
    logs = [-math.log(1 + math.exp(2.0)), 2 - math.log(1 + math.exp(2.0))]

    assert -sum(logs) / 2 == pytest.approx(logits.cross_entropy(half).item(), rel=1e-6)


def test_an_impossible_class_costs_what_it_must() -> None:
    scores = Tensor([[0.0, -math.inf]])

    assert 0.0 == scores.cross_entropy(Tensor([0])).item()
    assert math.inf == scores.cross_entropy(Tensor([1])).item()


def test_class_weights_weigh_sum_and_mean() -> None:
    logs, classes = Tensor([[-1.0, -2.0], [-3.0, -4.0]]), Tensor([0, 1])
    weight = Tensor([1.0, 3.0])

    assert (1.0 + 3 * 4.0) / 4 == logs.nll_loss(classes, weight).item()
    assert 13.0 == logs.nll_loss(classes, weight, reduction="sum").item()
    assert [1.0, 0.0] == logs.nll_loss(classes, ignore_index=1, reduction="none").tolist()


def test_a_reduction_is_known() -> None:
    with pytest.raises(ArgumentError, match="reduction is 'mean', 'sum' or 'none'"):
        Tensor([[0.0]]).cross_entropy(Tensor([0]), reduction="median")


def test_binary_losses_agree_and_do_not_overflow() -> None:
    scores, targets = Tensor([-1.0, 0.5]), Tensor([0.0, 1.0])
    plain = scores.sigmoid().binary_crossentropy(targets).item()

    assert plain == pytest.approx(scores.binary_crossentropy_logits(targets).item(), rel=1e-5)
    assert 1000.0 == Tensor([1000.0]).binary_crossentropy_logits(Tensor([0.0])).item()
