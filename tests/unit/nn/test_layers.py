"""Layers: shapes, statistics, training and use."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lazulite import ArgumentError, GlobalCounters, ShapeError, Tensor
from lazulite.nn import (
    BatchNorm,
    BatchNorm2d,
    Conv2d,
    ConvTranspose2d,
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
    Sequential,
)
from lazulite.nn.optim import SGD
from lazulite.nn.state import get_parameters


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_a_linear_layer_is_a_product_and_a_sum() -> None:
    layer, x = Linear(3, 2), normal(4, 3)
    expected = x @ layer.weight.numpy().T + layer.bias.numpy()  # type: ignore[union-attr]

    assert expected == pytest.approx(layer(Tensor(x)).numpy(), rel=1e-5)
    assert abs(layer.weight.numpy()).max() <= 1 / math.sqrt(3)
    assert Linear(3, 2, bias=False).bias is None


def test_a_convolution_may_keep_the_size() -> None:
    x = Tensor.ones(1, 2, 6, 5)

    assert (1, 4, 6, 5) == Conv2d(2, 4, (4, 3), padding="same")(x).shape
    assert (1, 4, 6, 5) == Conv2d(2, 4, 3, padding="same", dilation=2)(x).shape
    assert (1, 4, 2, 2) == Conv2d(2, 4, 3, stride=2, groups=2, bias=False)(x).shape


def test_convolutions_that_make_no_sense_raise() -> None:
    with pytest.raises(ShapeError, match="3 groups do not divide 2 and 4 channels"):
        Conv2d(2, 4, 3, groups=3)
    with pytest.raises(ArgumentError, match="'same' needs stride 1"):
        Conv2d(2, 4, 3, stride=2, padding="same")
    with pytest.raises(ArgumentError, match="padding is a size"):
        Conv2d(2, 4, 3, padding="full")


def test_batch_norm_uses_the_batch_in_training_and_the_running_statistics_otherwise() -> None:
    layer, x = BatchNorm(3), normal(8, 3, 5) * 4 + 7
    with Tensor.train():
        y = layer(Tensor(x)).numpy()
    mean, variance = x.mean((0, 2)), x.var((0, 2))

    assert (x - mean[:, None]) / np.sqrt(variance + 1e-5)[:, None] == pytest.approx(y, abs=1e-4)
    assert mean * 0.1 == pytest.approx(layer.running_mean.numpy(), rel=1e-4)  # type: ignore[union-attr]
    unbiased = 0.9 + 0.1 * x.var((0, 2), ddof=1)
    assert unbiased == pytest.approx(layer.running_var.numpy(), rel=1e-4)  # type: ignore[union-attr]
    used = (x - mean[:, None] * 0.1) / np.sqrt(unbiased + 1e-5)[:, None]
    assert used == pytest.approx(layer(Tensor(x)).numpy(), rel=1e-3, abs=1e-3)
    assert 1 == layer.num_batches_tracked.item()


def test_running_statistics_are_computed_with_the_step_and_the_graph_stays_small() -> None:
    """B013"""
    layer, x = BatchNorm2d(2), Tensor(normal(4, 2, 3, 3))
    nodes = []
    with Tensor.train():
        for _ in range(4):
            layer(x).realize()
            nodes.append(GlobalCounters.live_nodes)
            assert "buffer" == layer.running_mean.uop.op.name  # type: ignore[union-attr]

    assert nodes[1] == nodes[2] == nodes[3]


def test_a_constant_channel_becomes_zero() -> None:
    """B080"""
    layer = BatchNorm(1, affine=False, track_running_stats=False)

    x = Tensor.full((10, 1, 10, 10), 7e9).clone()
    assert not layer(x).numpy().any()
    with Tensor.train():
        assert not layer(x).numpy().any()


def test_no_gradient_flows_through_running_statistics() -> None:
    layer = BatchNorm(2)
    optimizer = SGD(get_parameters(layer), lr=0.1)
    with Tensor.train():
        layer(Tensor(normal(4, 2))).square().sum().backward()

    assert layer.running_mean is not None and layer.running_mean.grad is None
    assert layer.weight is not None and layer.weight.grad is not None
    assert 2 == len(optimizer.params)


def test_layer_norm_runs_over_the_last_axes() -> None:
    x = normal(2, 3, 4)
    layer = LayerNorm((3, 4))
    mean, deviation = x.mean((1, 2), keepdims=True), x.std((1, 2), keepdims=True)

    assert (x - mean) / deviation == pytest.approx(layer(Tensor(x)).numpy(), abs=1e-4)
    assert LayerNorm(4, elementwise_affine=False).weight is None
    with pytest.raises(ShapeError, match=r"the last axes must be \(3, 4\)"):
        layer(Tensor.ones(2, 4))


def test_normalisation_keeps_narrow_types() -> None:
    assert "float16" == BatchNorm(2)(Tensor.ones(3, 2, dtype="float16")).dtype.name


def test_an_embedding_looks_rows_up_and_learns_them() -> None:
    layer, rows = Embedding(5, 3), Tensor([[4, 0], [4, 7]])
    y = layer(rows)
    (gradient,) = y.sum().gradient(layer.weight)
    table = layer.weight.numpy()

    assert [[table[4].tolist(), table[0].tolist()], [table[4].tolist(), [0.0] * 3]] == y.tolist()
    assert [1.0, 0.0, 0.0, 0.0, 2.0] == gradient[:, 0].tolist()


def test_layers_run_one_after_the_other_and_their_tensors_are_found() -> None:
    model = Sequential(Linear(3, 4), Tensor.relu, Dropout(0.5), Linear(4, 2))
    x = Tensor(normal(5, 3))

    assert 4 == len(get_parameters(model)) == len(model)
    assert model[3](model[0](x).relu()).tolist() == model(x).tolist()
    with Tensor.train():
        dropped = Dropout(0.5)(Tensor.ones(1000)).numpy()
    assert {0.0, 2.0} == set(dropped.tolist())


def test_a_transposed_convolution_grows_its_input() -> None:
    layer = ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)

    assert (2, 6, 10, 12) == layer(Tensor.ones(2, 4, 5, 6)).shape
    assert ConvTranspose2d(4, 6, (3, 2), bias=False).bias is None
    with pytest.raises(ShapeError, match="3 groups do not divide 4 and 6 channels"):
        ConvTranspose2d(4, 6, 3, groups=3)
