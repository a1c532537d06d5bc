"""The words of workloads for tensors with the methods that Lazulite and tinygrad share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lazulite.tools.bench.words import Words


class TensorWords(Words):
    """`kind` is the class of the tensors, `types` what holds its element types by name."""

    def __init__(self, kind: Any, types: Any) -> None:
        self.kind, self.types = kind, types

    def tensor(self, array: Any, dtype: str) -> Any:
        tensor = self.kind(array)
        return tensor.cast(self.types.bfloat16) if dtype == "bfloat16" else tensor

    def array(self, tensor: Any) -> Any:
        return (tensor.float() if tensor.dtype == self.types.bfloat16 else tensor).numpy()

    def exp(self, x: Any) -> Any:
        return x.exp()

    def relu(self, x: Any) -> Any:
        return x.relu()

    def silu(self, x: Any) -> Any:
        return x.silu()

    def gelu(self, x: Any) -> Any:
        return x.gelu()

    def softmax(self, x: Any) -> Any:
        return x.softmax(-1)

    def layer_norm(self, x: Any) -> Any:
        return x.layernorm()

    def total(self, x: Any) -> Any:
        return x.sum()

    def mean(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.mean(axes)

    def cross_entropy(self, scores: Any, classes: Any) -> Any:
        return scores.sparse_categorical_crossentropy(classes)

    def conv2d(self, x: Any, weight: Any, stride: int = 1, padding: int = 0) -> Any:
        return x.conv2d(weight, stride=stride, padding=padding)

    def max_pool(self, x: Any, size: int, stride: int, padding: int = 0) -> Any:
        return x.max_pool2d((size, size), stride=stride, padding=padding)

    def batch_norm(self, x: Any, mean: Any, variance: Any, weight: Any, bias: Any) -> Any:
        return x.batchnorm(weight, bias, mean, (variance + 1e-5).rsqrt())

    def batch_norm_in_training(self, x: Any, weight: Any, bias: Any) -> Any:
        mean = x.mean((0, 2, 3))
        variance = (x - mean.reshape(1, -1, 1, 1)).square().mean((0, 2, 3))
        return self.batch_norm(x, mean, variance, weight, bias)

    def attention(self, queries: Any, keys: Any, values: Any, causal: bool) -> Any:
        return queries.scaled_dot_product_attention(keys, values, is_causal=causal)

    def permute(self, x: Any, *order: int) -> Any:
        return x.permute(*order)

    def joined(self, first: Any, second: Any) -> Any:
        return first.cat(second, dim=1)

    def rows(self, table: Any, places: Any) -> Any:
        return table[places]

    def gather(self, x: Any, places: Any) -> Any:
        return x.gather(1, places)

    def scatter_add(self, x: Any, places: Any, source: Any) -> Any:
        return x.scatter_reduce(1, places, source, "sum")

    def sort(self, x: Any) -> Any:
        return x.sort(-1)[0]

    def gradients(self, loss: Callable[..., Any], weights: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        value = loss(*weights)
        return value, value.gradient(*weights)
