"""Layers that bring values to a common scale."""

from __future__ import annotations

import numpy as np
import pytest

from lazulite import ShapeError, Tensor, dtypes
from lazulite.nn import GroupNorm, InstanceNorm, RMSNorm


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * 3 + 7


def standard(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def test_groups_and_channels_are_normalised_and_scaled() -> None:
    x, scale, shift = normal(2, 6, 4, 5), normal(6, seed=1), normal(6, seed=2)
    group, instance = GroupNorm(3, 6), InstanceNorm(6)
    for layer in (group, instance):
        layer.weight, layer.bias = Tensor(scale), Tensor(shift)
    column = (slice(None), None, None)
    grouped = standard(x.reshape(2, 3, 2, 4, 5), (2, 3, 4)).reshape(x.shape)

    assert grouped * scale[column] + shift[column] == pytest.approx(group(Tensor(x)).numpy(), rel=1e-4, abs=1e-4)
    alone = standard(x, (2, 3)) * scale[column] + shift[column]
    assert alone == pytest.approx(instance(Tensor(x)).numpy(), rel=1e-4, abs=1e-4)
    assert GroupNorm(3, 6, affine=False).weight is None


def test_the_root_mean_square_becomes_one() -> None:
    x, scale = normal(2, 3, 8), normal(8, seed=1)
    layer = RMSNorm(8)
    layer.weight = Tensor(scale)
    expected = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale

    assert expected == pytest.approx(layer(Tensor(x)).numpy(), rel=1e-5)
    assert dtypes.float16 is RMSNorm((3, 8), elementwise_affine=False)(Tensor(x).cast("float16")).dtype


def test_shapes_that_do_not_fit_raise() -> None:
    with pytest.raises(ShapeError, match="4 groups do not divide 6 channels"):
        GroupNorm(4, 6)
    with pytest.raises(ShapeError, match="InstanceNorm: axis 1 must have 6 channels"):
        InstanceNorm(6)(Tensor.ones(2, 5, 3))
    with pytest.raises(ShapeError, match="the last axes must be"):
        RMSNorm(4)(Tensor.ones(2, 5))
