"""Pads that take from the tensor itself, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from lazulite import ArgumentError, ShapeError, Tensor

NUMPY = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", NUMPY)
@pytest.mark.parametrize("pairs", [((1, 2), (0, 0)), ((0, 1), (3, 2)), ((2, 2), (1, 0))])
def test_the_elements_around_are_numpys(mode: str, pairs: tuple[tuple[int, int], ...]) -> None:
    x = np.arange(12).reshape(3, 4)

    assert np.pad(x, pairs, NUMPY[mode]).tolist() == Tensor(x).pad(pairs, mode).tolist()  # type: ignore[call-overload]


def test_more_than_there_is_is_refused() -> None:
    with pytest.raises(ShapeError, match="2 elements of mode 'reflect' around an axis of size 2"):
        Tensor([1, 2]).pad((2, 0), "reflect")
    with pytest.raises(ShapeError, match="3 elements of mode 'circular'"):
        Tensor([1, 2]).pad((0, 3), "circular")
    with pytest.raises(ArgumentError, match="not 'mirror'"):
        Tensor([1, 2]).pad((1, 0), "mirror")


def test_a_gradient_adds_up_what_was_taken() -> None:
    x = Tensor([1.0, 2.0, 3.0])

    assert [1.0, 3.0, 1.0] == x.pad((1, 1), "reflect").sum().gradient(x)[0].tolist()
    assert [3.0, 1.0, 1.0] == x.pad((2, 0), "replicate").sum().gradient(x)[0].tolist()
