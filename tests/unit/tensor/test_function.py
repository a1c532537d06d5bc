"""What a gradient passes, and how."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazulite import Tensor, checkpoint, function, grad, jvp, no_grad, vmap
from lazulite.base.errors import GradientError


def test_a_function_has_the_gradient_that_its_user_writes() -> None:
    """A3."""
    clipped = function(lambda x: x * 1, grad_fxn=lambda upstream, call: (upstream.clip(-1, 1),))
    x = Tensor([1.0, 2.0])

    assert [1.0, 2.0] == clipped(x).tolist()
    assert [1.0, -1.0] == (clipped(x) * Tensor([5.0, -7.0])).sum().gradient(x)[0].tolist()


def test_several_results_and_arguments() -> None:
    @function(grad_fxn=lambda of_sum, of_product, call: (of_sum * 10 + of_product * call.src[2], None))
    def both(x: Tensor, y: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        return x + y, x * y * scale

    x, y = Tensor([2.0]), Tensor([3.0])
    first, second = both(x, y, scale=1.0)
    assert [[10.0], [0.0]] == [part.tolist() for part in first.sum().gradient(x, y)]
    assert [13.0] == (first + second).sum().gradient(x)[0].tolist()


def test_one_tensor_given_twice_is_one_operand() -> None:
    square = function(lambda x, y: x * y, grad_fxn=lambda upstream, call: (upstream * call.src[1] * 2,))
    x = Tensor([3.0])

    assert [6.0] == square(x, x).sum().gradient(x)[0].tolist()


def test_a_gradient_may_hold_tensors_of_its_own_and_is_differentiated_again() -> None:
    weight = Tensor([3.0])
    cubed = function(lambda x: x * x * x, grad_fxn=lambda upstream, call: (upstream * call.src[1] ** 2 * weight,))
    x = Tensor([2.0])

    assert [12.0] == grad(lambda x: cubed(x).sum())(x).tolist()
    assert [12.0] == grad(lambda x: grad(lambda x: cubed(x).sum())(x).sum())(x).tolist()
    assert [24.0] == jvp(cubed, (x,), (Tensor([2.0]),))[1].tolist()
    assert [[12.0], [27.0]] == vmap(grad(lambda x: cubed(x).sum()))(Tensor([[2.0], [3.0]])).tolist()


def test_without_a_gradient_it_is_the_function_and_it_decorates_methods() -> None:
    class Model:
        scale = 3.0

        @function(precompile=True)
        def __call__(self, x: Tensor) -> Tensor:
            return x * self.scale

    x = Tensor([2.0])
    assert [6.0] == Model()(x).tolist()
    assert [3.0] == Model()(x).sum().gradient(x)[0].tolist()


def test_a_gradient_for_the_wrong_number_of_tensors_is_refused() -> None:
    wrong = function(lambda x: x, grad_fxn=lambda upstream, call: (upstream, upstream))
    with pytest.raises(GradientError, match="each of 1 tensors, got 2"):
        wrong(Tensor([1.0]))


# --- checkpoint ------------------------------------------------------------------------------------


def _deep(block: Any, weights: list[Tensor]) -> Any:
    def run(x: Tensor) -> Tensor:
        for weight in weights:
            x = block(x, weight)
        return x.sum()

    return run


def _block(x: Tensor, weight: Tensor) -> Tensor:
    for _ in range(3):
        x = (x @ weight).tanh()
    return x


def test_a_checkpoint_changes_no_gradient_and_needs_less_memory() -> None:
    """The plan of the backward pass keeps what goes into each block, not what lies inside."""
    numbers = np.random.default_rng(0)
    weights = [Tensor(numbers.normal(0, 0.2, (32, 32)).astype(np.float32)) for _ in range(6)]
    x = Tensor(numbers.normal(size=(128, 32)).astype(np.float32))
    kept, again = [grad(_deep(block, weights))(x) for block in (_block, checkpoint(_block))]

    assert again.explain().arena < 0.7 * kept.explain().arena
    np.testing.assert_allclose(again.numpy(), kept.numpy(), rtol=1e-4, atol=1e-5)


def test_what_a_checkpoint_holds_has_its_gradient_too() -> None:
    weight, x = Tensor([2.0, 3.0]), Tensor([0.5, 0.25])
    tokens = Tensor([1, 0])

    def run(block: Any) -> list[float]:
        return (block(x, tokens) * 2).sum().gradient(weight)[0].tolist()

    def block(x: Tensor, tokens: Tensor) -> Tensor:
        return (x * weight[tokens]).sin()

    assert run(block) == pytest.approx(run(checkpoint(block)), rel=1e-6)


def test_a_checkpoint_gives_containers_and_backward_fills_grad() -> None:
    w = Tensor([2.0], requires_grad=True)
    found = checkpoint(lambda x: {"square": x * w, "rest": [x, 3]})(Tensor([5.0]))
    found["square"].sum().backward()

    assert [3] == found["rest"][1:]
    assert [5.0] == w.grad.tolist()


# --- no_grad ---------------------------------------------------------------------------------------


def test_under_no_grad_nothing_passes_a_gradient() -> None:
    x = Tensor([2.0, 3.0])
    with no_grad():
        product, view = x * x, x.reshape(2, 1)
        with no_grad():
            pass
        inner = x + 1
    y = (product * x + view.reshape(2) * x + inner).sum()

    assert [6.0, 12.0] == y.gradient(x)[0].tolist()
    assert [0.0, 0.0] == no_grad()(lambda x: x * x)(x).sum().gradient(x)[0].tolist()


def test_a_step_of_training_under_no_grad_keeps_no_graph() -> None:
    w = Tensor([4.0], requires_grad=True)
    for _ in range(3):
        w.grad = None
        (w * w).sum().backward()
        with no_grad():
            w.assign(w - w.grad * 0.25)
    assert [0.5] == w.tolist()
