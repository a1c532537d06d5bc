"""What losses refuse, and corners that torch's samples leave out.  Values are compared in `tests/surface`."""

from __future__ import annotations

import math

import pytest

from lazulite import ArgumentError, DTypeError, ShapeError, Tensor
from lazulite.nn import functional as F


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(ArgumentError, match="'mean', 'sum' or 'none', not 'max'"):
        F.mse_loss(Tensor([1.0]), Tensor([2.0]), reduction="max")


def test_a_parameter_without_meaning_is_refused() -> None:
    x = Tensor([1.0])
    with pytest.raises(ArgumentError, match="delta is above zero"):
        F.huber_loss(x, x, delta=0.0)
    with pytest.raises(ArgumentError, match="beta is not below zero"):
        F.smooth_l1_loss(x, x, beta=-1.0)
    with pytest.raises(ArgumentError, match="label_smoothing is from 0 to 1"):
        F.cross_entropy(Tensor([[1.0, 2.0]]), Tensor([1]), label_smoothing=2.0)
    with pytest.raises(ShapeError, match="differ"):
        F.binary_cross_entropy(Tensor([1.0, 2.0]), x)


def test_what_is_no_argument_is_named() -> None:
    with pytest.raises(DTypeError, match="unexpected keyword argument 'reductoin'"):
        F.l1_loss(Tensor([1.0]), Tensor([2.0]), reductoin="sum")


def test_smoothing_leaves_ignored_rows_out() -> None:
    """B083."""
    logits, targets = Tensor([[1.0, 2.0], [3.0, 0.4], [0.0, 1.0]]), Tensor([-100, 1, 0])

    assert F.cross_entropy(logits, targets, label_smoothing=0.1).item() == pytest.approx(1.902453)


def test_an_alignment_that_cannot_be_is_infinite_or_nothing() -> None:
    chances = Tensor.full((1, 1, 2), math.log(0.5))
    facts = (Tensor([[1, 1]]), Tensor([1]), Tensor([2]))

    assert F.ctc_loss(chances, *facts).item() == math.inf
    assert F.ctc_loss(chances, *facts, zero_infinity=True).item() == 0
