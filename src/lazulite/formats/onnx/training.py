"""Operators of training: gradients of the graph, and one step of an optimiser over several tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.tensor.tensor import Tensor

DOMAIN = "ai.onnx.preview.training"


@onnx_op("Gradient", domain=DOMAIN)
def gradient(*inputs: Tensor, xs: list[str], y: str, zs: list[str] | None = None, call: Call) -> tuple[Tensor, ...]:
    """Of the sum of a value of this graph with respect to others, by their names."""
    target, *sources = [call.lift(call.values[name]) for name in (y, *xs)]
    return tuple(target.sum().gradient(*sources))


def _for_each(inputs: tuple[Tensor, ...], kinds: int, step: Callable[..., tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """A step for each tensor; inputs and results stand kind by kind."""
    count = len(inputs) // kinds
    made = [step(*inputs[n::count]) for n in range(count)]
    return tuple([row[kind] for kind in range(len(made[0])) for row in made])


@onnx_op("Momentum", domain=DOMAIN)
def momentum(
    rate: Tensor, turn: Tensor, *inputs: Tensor, alpha: float, beta: float, mode: str, norm_coefficient: float
) -> Any:
    def step(x: Tensor, g: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        whole = x * norm_coefficient + g
        moved = v * alpha + whole * (turn > 0).where(beta, 1.0)
        by = whole + moved * alpha if mode == "nesterov" else moved
        return x - rate * by, moved

    return _for_each(inputs, 3, step)


@onnx_op("Adagrad", domain=DOMAIN)
def adagrad(
    rate: Tensor, turn: Tensor, *inputs: Tensor, decay_factor: float = 0.0, epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> Any:  # fmt: skip
    def step(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        whole = x * norm_coefficient + g
        squares = h + whole * whole
        return x - rate / (turn * decay_factor + 1) * whole / (squares.sqrt() + epsilon), squares

    return _for_each(inputs, 3, step)


@onnx_op("Adam", domain=DOMAIN)
def adam(
    rate: Tensor, turn: Tensor, *inputs: Tensor, alpha: float = 0.9, beta: float = 0.999, epsilon: float = 1e-6,
    norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0,
) -> Any:  # fmt: skip
    def step(x: Tensor, g: Tensor, v: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        whole = x * norm_coefficient + g
        mean = v * alpha + whole * (1 - alpha)
        squares = h * beta + whole * whole * (1 - beta)
        by = turn.cast(x.dtype)
        adjusted = (turn > 0).where(rate * (1 - beta**by).sqrt() / (1 - alpha**by), rate)
        moved = x - adjusted * mean / (squares.sqrt() + epsilon)
        return moved * (1 - norm_coefficient_post), mean, squares

    return _for_each(inputs, 4, step)
