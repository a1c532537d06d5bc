"""Initialisers have the moments that they promise."""

from __future__ import annotations

import numpy as np
import pytest

from lazulite import ArgumentError, ShapeError, Tensor
from lazulite.nn import init


@pytest.mark.parametrize(
    ("name", "deviation"),
    [("xavier_uniform_", (2 / 300) ** 0.5), ("xavier_normal_", (2 / 300) ** 0.5), ("kaiming_uniform_", 0.1),
     ("kaiming_normal_", 0.1), ("normal_", 1.0)],
)  # fmt: skip
def test_the_deviation_is_the_papers(name: str, deviation: float) -> None:
    drawn = getattr(init, name)(Tensor.zeros(100, 200)).numpy()

    assert deviation == pytest.approx(drawn.std(), rel=0.03)
    assert abs(drawn.mean()) < 0.03 * deviation * 10


@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (4, 2, 3)])
def test_an_orthogonal_weight_has_orthonormal_rows_or_columns(shape: tuple[int, ...]) -> None:
    w = init.orthogonal_(Tensor.zeros(*shape)).numpy().reshape(shape[0], -1)
    inner = w @ w.T if shape[0] <= w.shape[1] else w.T @ w

    assert np.allclose(inner, np.eye(len(inner)), atol=1e-5)


def test_what_has_no_fans_is_refused() -> None:
    with pytest.raises(ShapeError, match="two axes or more"):
        init.xavier_uniform_(Tensor.zeros(3))
    with pytest.raises(ShapeError, match="a matrix is needed"):
        init.eye_(Tensor.zeros(3))
    with pytest.raises(ArgumentError, match="fan_in"):
        init.kaiming_normal_(Tensor.zeros(3, 3), mode="fan")
