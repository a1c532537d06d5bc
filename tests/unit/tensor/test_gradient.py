"""`gradient` and `backward` on tensors."""

from __future__ import annotations

import math

import pytest

from lazulite import GradientError, ShapeError, Tensor


def test_two_leaves_of_equal_value_are_two() -> None:
    """B031"""
    x, y = Tensor(3.0), Tensor(3.0)
    for_x, for_y = (x + y).gradient(x, y)

    assert (1.0, 1.0) == (for_x.item(), for_y.item())
    a, b = Tensor.ones(2), Tensor.ones(2)
    assert [[1.0, 1.0], [2.0, 2.0]] == [g.tolist() for g in (a + b * 2).sum().gradient(a, b)]


def test_the_second_derivative_is_the_gradient_of_the_gradient() -> None:
    """B035"""
    x = Tensor(2.0)
    (first,) = (x * 3).exp().gradient(x)
    (second,) = first.gradient(x)

    assert 9 * math.exp(6) == pytest.approx(second.item(), rel=1e-6)


def test_adding_twice_in_place_counts_twice() -> None:
    """B010"""
    x = Tensor([[1.0, 2.0, -3.0], [4.0, 5.0, 6.0]])
    y = Tensor.zeros(2, 3)
    y[:, 0] += x[:, 2].abs()
    y[:, 0] += x[:, 2].abs()

    assert [[0.0, 0.0, -2.0], [0.0, 0.0, 2.0]] == y.sum().gradient(x)[0].tolist()


def test_one_of_two_ways_to_the_same_element_is_not_lost() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    y = x[0:2] * x[1:3] + x.flip(0)[0:2]

    assert [2.0, 5.0, 3.0] == y.sum().gradient(x)[0].tolist()


def test_weights_take_the_place_of_ones() -> None:
    x = Tensor([1.0, 3.0])
    (found,) = x.square().gradient(x, gradient=Tensor([10.0, 100.0]))

    assert [20.0, 600.0] == found.tolist()


def test_backward_adds_to_the_gradient_of_every_tensor_reached() -> None:
    x, w, frozen = Tensor([1.0, 2.0]), Tensor([3.0, 4.0]), Tensor([5.0, 6.0], requires_grad=False)
    for _ in range(2):
        (x * w * frozen).sum().backward()

    assert ([30.0, 48.0], [10.0, 24.0]) == (x.grad.tolist(), w.grad.tolist())
    assert frozen.grad is None


def test_a_gradient_needs_one_float() -> None:
    x = Tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match="a tensor of one element is needed"):
        x.gradient(x)
    with pytest.raises(ShapeError, match="a tensor of one element is needed"):
        x.backward()
    with pytest.raises(GradientError, match="a float tensor is needed, got int32"):
        Tensor([1]).sum().backward()


def test_the_gradient_of_a_half_is_a_half() -> None:
    x = Tensor([1.0, 2.0], dtype="float16")

    assert "float16" == x.float().square().sum().gradient(x)[0].dtype.name
