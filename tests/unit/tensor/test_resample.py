"""Axes brought to new sizes: exact places, and what is refused.  Other values are compared in `tests/surface`."""

from __future__ import annotations

import pytest

from lazulite import ArgumentError, ShapeError, Tensor


def test_a_single_new_element_between_corners_is_the_first() -> None:
    """B092."""
    x = Tensor.arange(4.0).reshape(1, 1, 4)

    assert [[[0.0]]] == x.interpolate(1, align_corners=True).tolist()
    assert [[[0.0]]] == x.interpolate(1, "bicubic", align_corners=True).tolist()


def test_nearest_places_are_exact_fractions() -> None:
    x = Tensor.arange(49)

    assert [(i * 49) // 7 for i in range(7)] == x.interpolate(7, "nearest").tolist()
    assert [i // 3 for i in range(147)] == x.interpolate(147, "nearest").tolist()


def test_the_mean_stays_where_an_axis_shrinks_smoothly() -> None:
    x = Tensor([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0])

    assert [0.0, 1.0, 0.0, 1.0] == x.interpolate(4, "area").tolist()
    for mode in ("linear", "bicubic"):
        assert x.interpolate(4, mode, antialias=True).mean().item() == pytest.approx(0.5)


def test_modes_and_sizes_without_meaning_are_refused() -> None:
    with pytest.raises(ArgumentError, match="none of the modes"):
        Tensor([1.0]).interpolate(2, "cubic")
    with pytest.raises(ArgumentError, match="none of the modes"):
        Tensor([1.0]).interpolate(2, "nearest", align_corners=True)
    with pytest.raises(ShapeError, match="cannot become"):
        Tensor.zeros(0).interpolate(2)
