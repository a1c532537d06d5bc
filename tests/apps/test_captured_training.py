"""Captured trainings and draws equal the plain ones."""

import pytest

from lazulite import Tensor, jit, nn
from support.capture import captured


def test_random_numbers_are_those_of_the_program():
    """A24, B112"""

    def draw(x):
        return x + Tensor.rand(3), Tensor.randint(2, low=0, high=100), Tensor.randn(2)

    Tensor.manual_seed(5)
    expected = [[t.tolist() for t in draw(Tensor([0.0, 0.0, 0.0]))] for _ in range(6)]
    drawn = jit(draw)
    for _ in range(2):
        Tensor.manual_seed(5)
        assert expected == [[t.tolist() for t in drawn(Tensor([0.0, 0.0, 0.0]))] for _ in range(6)]
    assert captured(drawn) == 1
    Tensor.manual_seed(5)
    again = jit(lambda: (Tensor.manual_seed(5), Tensor.rand(3))[1])
    assert [again().tolist()] * 4 == [again().tolist() for _ in range(4)]


def test_gradients_pass_through_a_captured_function():
    """A3"""
    weight = Tensor([2.0, 3.0], requires_grad=True)
    loss = jit(lambda x: (x * weight * weight).sum())
    for n in range(5):
        weight.grad = None
        loss(Tensor([1.0, float(n)])).backward()
        assert [4.0, 6.0 * n] == weight.grad.tolist()
    x = Tensor([1.0, 1.0])
    (gradient,) = loss(x).gradient(x)
    assert [4.0, 9.0] == gradient.tolist()


def trained(optimiser, wrap):
    """Losses and state of a small training, and the step."""
    Tensor.manual_seed(1)
    layers = [nn.Linear(3, 4), nn.BatchNorm(4), nn.Linear(4, 1)]
    optimiser = optimiser(nn.state.get_parameters([layers[0], layers[2]]))

    def step(x, y):
        optimiser.zero_grad()
        hidden = layers[1](layers[0](x)).tanh().dropout(0.1)
        loss = ((layers[2](hidden) - y) ** 2).mean()
        loss.backward()
        optimiser.step()
        return loss

    step, losses = wrap(step), []
    with Tensor.train():
        for _ in range(10):
            losses.append(step(Tensor.rand(8, 3), Tensor.rand(8, 1)).item())
    return losses, [t.tolist() for t in nn.state.get_parameters([layers, optimiser])], step


@pytest.mark.parametrize(
    "optimiser",
    [
        lambda p: nn.optim.SGD(p, lr=0.1),
        lambda p: nn.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: nn.optim.Adam(p, lr=0.1),
        lambda p: nn.optim.AdamW(p, lr=0.1, weight_decay=0.1),
    ],
    ids=["SGD", "momentum", "Adam", "AdamW"],
)
def test_a_captured_training_equals_the_plain_one(optimiser):
    """A24: with batch statistics and dropout, bit for bit, and it is captured"""
    losses, state, _ = trained(optimiser, lambda step: step)
    captured_losses, captured_state, step = trained(optimiser, jit)

    assert (losses, state) == (captured_losses, captured_state)
    assert (1, "") == (captured(step), step.reason)


def test_gradients_add_up_as_they_do_without_capture():
    weight = Tensor([1.0])

    @jit
    def accumulate(x):
        (weight * x).sum().backward()

    for n in range(1, 6):
        accumulate(Tensor([2.0], requires_grad=False))
        assert [2.0 * n] == weight.grad.tolist()
