"""The words of workloads in NumPy: over float64 arrays they are the reference, over float32 a participant."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from lazulite.tools.bench.words import Lacks, Words


class NumPyWords(Words):
    """Plain array expressions; a convolution is one product of windows."""

    def tensor(self, array: Any, dtype: str) -> Any:
        if dtype == "bfloat16":
            raise Lacks("has no bfloat16")
        return array

    def array(self, tensor: Any) -> Any:
        return numpy.asarray(tensor)

    def exp(self, x: Any) -> Any:
        return numpy.exp(x)

    def relu(self, x: Any) -> Any:
        return numpy.maximum(x, 0)

    def silu(self, x: Any) -> Any:
        return x / (1 + numpy.exp(-x))

    def gelu(self, x: Any) -> Any:
        return x * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))) * 0.5

    def softmax(self, x: Any) -> Any:
        powers = numpy.exp(x - x.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    def layer_norm(self, x: Any) -> Any:
        deviation = x - x.mean(axis=-1, keepdims=True)
        return deviation / numpy.sqrt((deviation**2).mean(axis=-1, keepdims=True) + 1e-5)

    def total(self, x: Any) -> Any:
        return x.sum()

    def mean(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.mean(axis=axes)

    def cross_entropy(self, scores: Any, classes: Any) -> Any:
        chances = self.softmax(scores)
        return -numpy.log(chances[numpy.arange(len(classes)), classes]).mean()

    def conv2d(self, x: Any, weight: Any, stride: int = 1, padding: int = 0) -> Any:
        spread = numpy.tensordot(self.windows(x, weight.shape[2], stride, padding), weight, ((1, 4, 5), (1, 2, 3)))
        return spread.transpose(0, 3, 1, 2)

    def windows(self, x: Any, size: int, stride: int, padding: int, fill: float = 0.0) -> Any:
        """A view (batch, channels, rows, columns, size, size) of square windows of the padded images."""
        padded = numpy.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2), constant_values=fill)
        return numpy.lib.stride_tricks.sliding_window_view(padded, (size, size), (2, 3))[:, :, ::stride, ::stride]

    def max_pool(self, x: Any, size: int, stride: int, padding: int = 0) -> Any:
        return self.windows(x, size, stride, padding, -math.inf).max(axis=(4, 5))

    def batch_norm(self, x: Any, mean: Any, variance: Any, weight: Any, bias: Any) -> Any:
        scale = weight / numpy.sqrt(variance + 1e-5)
        return x * scale[:, None, None] + (bias - mean * scale)[:, None, None]

    def batch_norm_in_training(self, x: Any, weight: Any, bias: Any) -> Any:
        mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
        return self.batch_norm(x, mean, variance, weight, bias)

    def attention(self, queries: Any, keys: Any, values: Any, causal: bool) -> Any:
        scores = queries @ keys.swapaxes(-1, -2) / math.sqrt(queries.shape[-1])
        if causal:
            scores = numpy.where(numpy.tri(*scores.shape[-2:]) > 0, scores, -numpy.inf).astype(scores.dtype)
        return self.softmax(scores) @ values

    def permute(self, x: Any, *order: int) -> Any:
        return x.transpose(order)

    def joined(self, first: Any, second: Any) -> Any:
        return numpy.concatenate((first, second), axis=1)

    def rows(self, table: Any, places: Any) -> Any:
        return table[places]

    def gather(self, x: Any, places: Any) -> Any:
        return numpy.take_along_axis(x, places, axis=1)

    def scatter_add(self, x: Any, places: Any, source: Any) -> Any:
        result = x.copy()
        numpy.add.at(result, (numpy.arange(len(x))[:, None], places), source)
        return result

    def sort(self, x: Any) -> Any:
        return numpy.sort(x, axis=-1)

    def gradients(self, loss: Callable[..., Any], weights: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        raise Lacks("has no gradients")
