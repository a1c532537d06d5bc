"""Activation functions: values and gradients stay finite, bounds are exact."""

from __future__ import annotations

import math

import pytest

from lazulite import ArgumentError, Tensor

LARGE = [-1000.0, 0.0, 1000.0]


@pytest.mark.parametrize(
    ("name", "values", "slopes"),
    [
        ("relu", [0.0, 0.0, 1000.0], [0.0, 0.0, 1.0]),
        ("sigmoid", [0.0, 0.5, 1.0], [0.0, 0.25, 0.0]),
        ("silu", [0.0, 0.0, 1000.0], [0.0, 0.5, 1.0]),
        ("swish", [0.0, 0.0, 1000.0], [0.0, 0.5, 1.0]),
        ("gelu", [0.0, 0.0, 1000.0], [0.0, 0.5, 1.0]),
        ("quick_gelu", [0.0, 0.0, 1000.0], [0.0, 0.5, 1.0]),
        ("softplus", [0.0, math.log(2), 1000.0], [0.0, 0.5, 1.0]),
        ("logsigmoid", [-1000.0, -math.log(2), 0.0], [1.0, 0.5, 0.0]),
        ("elu", [-1.0, 0.0, 1000.0], [0.0, 1.0, 1.0]),
        ("celu", [-1.0, 0.0, 1000.0], [0.0, 1.0, 1.0]),
        ("selu", [-1.67326 * 1.0507, 0.0, 1050.7], [0.0, 1.67326 * 1.0507, 1.0507]),
        ("mish", [0.0, 0.0, 1000.0], [0.0, 0.6, 1.0]),
        ("tanh", [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0]),
        ("leaky_relu", [-10.0, 0.0, 1000.0], [0.01, 0.01, 1.0]),
    ],
)
def test_far_from_zero_values_and_slopes_are_the_limits(name: str, values: list[float], slopes: list[float]) -> None:
    x = Tensor(LARGE)
    y = getattr(x, name)()
    (slope,) = y.sum().gradient(x)

    assert values == pytest.approx(y.tolist(), rel=1e-5, abs=1e-6)
    assert slopes == pytest.approx(slope.tolist(), rel=1e-5, abs=1e-6)


def test_hard_functions_are_exact_at_and_beyond_their_bounds() -> None:
    """A10"""
    far = [1e7, 1e8, 2.68e8, 1e9]

    assert [1.0] * 4 == Tensor(far).hardsigmoid().tolist()
    assert [6.0] * 5 == Tensor([6.7e7, *far]).relu6().tolist()
    assert [0.0, 6.0] == Tensor([0.0, 6.0]).relu6().tolist()
    near = [-3.1, -3.0, -2.9, 2.9, 3.0, 3.1]
    assert [min(max(x / 6 + 0.5, 0.0), 1.0) for x in near] == pytest.approx(
        Tensor(near).hardsigmoid().tolist(), abs=1e-7
    )
    assert [0.0, 3.0] == pytest.approx(Tensor([-3.0, 3.0]).hardswish().tolist())
    assert [-1.0, 0.5, 1.0] == Tensor([-2.0, 0.5, 2.0]).hardtanh().tolist()


def test_nan_passes_through() -> None:
    x = Tensor([math.nan])
    for name in ("relu", "relu6", "sigmoid", "silu", "gelu", "softplus", "elu", "hardtanh", "leaky_relu"):
        assert math.isnan(getattr(x, name)().item())


def test_gelu_knows_two_forms() -> None:
    assert math.erf(math.sqrt(0.5)) / 2 + 0.5 == pytest.approx(Tensor([1.0]).gelu("none").item(), rel=1e-6)
    with pytest.raises(ArgumentError, match="approximate"):
        Tensor([1.0]).gelu("sometimes")


def test_integers_become_floats() -> None:
    assert [0.5] == Tensor([0]).sigmoid().tolist()
    assert [0, 3] == Tensor([-2, 3]).relu().tolist()


def test_a_list_of_layers_is_applied_in_order() -> None:
    assert [-1.0] == Tensor([-1.0]).sequential([Tensor.abs, Tensor.neg]).tolist()
