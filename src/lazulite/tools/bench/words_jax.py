"""The words of workloads in jax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy

from lazulite.tools.bench.words import Words


class JaxWords(Words):
    """Its functions, as programs for it are written."""

    def __init__(self) -> None:
        self.jax = import_module("jax")
        self.np = import_module("jax.numpy")

    def tensor(self, array: Any, dtype: str) -> Any:
        return self.np.asarray(array, dtype=dtype)

    def array(self, tensor: Any) -> Any:
        return numpy.asarray(tensor.astype("float32") if tensor.dtype == self.np.bfloat16 else tensor)

    def exp(self, x: Any) -> Any:
        return self.np.exp(x)

    def relu(self, x: Any) -> Any:
        return self.jax.nn.relu(x)

    def silu(self, x: Any) -> Any:
        return self.jax.nn.silu(x)

    def gelu(self, x: Any) -> Any:
        return self.jax.nn.gelu(x, approximate=True)

    def softmax(self, x: Any) -> Any:
        return self.jax.nn.softmax(x, axis=-1)

    def layer_norm(self, x: Any) -> Any:
        return self.jax.nn.standardize(x, axis=-1, epsilon=1e-5)

    def total(self, x: Any) -> Any:
        return x.sum()

    def mean(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.mean(axes)

    def cross_entropy(self, scores: Any, classes: Any) -> Any:
        chances = self.jax.nn.log_softmax(scores, axis=-1)
        return -self.np.take_along_axis(chances, classes[:, None], axis=1).mean()

    def conv2d(self, x: Any, weight: Any, stride: int = 1, padding: int = 0) -> Any:
        return self.jax.lax.conv_general_dilated(x, weight, (stride, stride), [(padding, padding)] * 2)

    def max_pool(self, x: Any, size: int, stride: int, padding: int = 0) -> Any:
        lax, around = self.jax.lax, ((0, 0), (0, 0), (padding, padding), (padding, padding))
        return lax.reduce_window(x, -math.inf, lax.max, (1, 1, size, size), (1, 1, stride, stride), around)

    def batch_norm(self, x: Any, mean: Any, variance: Any, weight: Any, bias: Any) -> Any:
        scale = weight * self.jax.lax.rsqrt(variance + 1e-5)
        return x * scale[:, None, None] + (bias - mean * scale)[:, None, None]

    def batch_norm_in_training(self, x: Any, weight: Any, bias: Any) -> Any:
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
        return self.batch_norm(x, mean, variance, weight, bias)

    def attention(self, queries: Any, keys: Any, values: Any, causal: bool) -> Any:
        scores = queries @ keys.swapaxes(-1, -2) / math.sqrt(queries.shape[-1])
        if causal:
            scores = self.np.where(self.np.tri(*scores.shape[-2:], dtype=bool), scores, -math.inf)
        return self.softmax(scores) @ values

    def permute(self, x: Any, *order: int) -> Any:
        return x.transpose(order)

    def joined(self, first: Any, second: Any) -> Any:
        return self.np.concatenate((first, second), axis=1)

    def rows(self, table: Any, places: Any) -> Any:
        return table[places]

    def gather(self, x: Any, places: Any) -> Any:
        return self.np.take_along_axis(x, places, axis=1)

    def scatter_add(self, x: Any, places: Any, source: Any) -> Any:
        return x.at[self.np.arange(len(x))[:, None], places].add(source)

    def sort(self, x: Any) -> Any:
        return self.np.sort(x, axis=-1)

    def gradients(self, loss: Callable[..., Any], weights: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        return self.jax.value_and_grad(loss, argnums=tuple(range(len(weights))))(*weights)  # type: ignore[no-any-return]
