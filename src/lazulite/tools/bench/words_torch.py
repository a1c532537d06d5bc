"""The words of workloads in torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from lazulite.tools.bench.words import Lacks, Words


class TorchWords(Words):
    """Its functions by the names that programs use."""

    def __init__(self) -> None:
        self.torch = import_module("torch")
        self.nn = self.torch.nn.functional

    def tensor(self, array: Any, dtype: str) -> Any:
        tensor = self.torch.from_numpy(array)
        wanted = {"bfloat16": self.torch.bfloat16, "int32": self.torch.int64}  # it takes no other positions
        return tensor.to(wanted.get(dtype, tensor.dtype))

    def array(self, tensor: Any) -> Any:
        return (tensor.float() if tensor.dtype == self.torch.bfloat16 else tensor).detach().numpy()

    def exp(self, x: Any) -> Any:
        return x.exp()

    def relu(self, x: Any) -> Any:
        return x.relu()

    def silu(self, x: Any) -> Any:
        return self.nn.silu(x)

    def gelu(self, x: Any) -> Any:
        return self.nn.gelu(x, approximate="tanh")

    def softmax(self, x: Any) -> Any:
        return x.softmax(-1)

    def layer_norm(self, x: Any) -> Any:
        return self.nn.layer_norm(x, x.shape[-1:])

    def total(self, x: Any) -> Any:
        return x.sum()

    def mean(self, x: Any, axes: tuple[int, ...]) -> Any:
        return x.mean(axes)

    def cross_entropy(self, scores: Any, classes: Any) -> Any:
        return self.nn.cross_entropy(scores, classes)

    def conv2d(self, x: Any, weight: Any, stride: int = 1, padding: int = 0) -> Any:
        return self.nn.conv2d(x, weight, stride=stride, padding=padding)

    def max_pool(self, x: Any, size: int, stride: int, padding: int = 0) -> Any:
        return self.nn.max_pool2d(x, size, stride=stride, padding=padding)

    def batch_norm(self, x: Any, mean: Any, variance: Any, weight: Any, bias: Any) -> Any:
        return self.nn.batch_norm(x, mean, variance, weight, bias)

    def batch_norm_in_training(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.nn.batch_norm(x, None, None, weight, bias, training=True)

    def attention(self, queries: Any, keys: Any, values: Any, causal: bool) -> Any:
        return self.nn.scaled_dot_product_attention(queries, keys, values, is_causal=causal)

    def permute(self, x: Any, *order: int) -> Any:
        return x.permute(order)

    def joined(self, first: Any, second: Any) -> Any:
        return self.torch.cat((first, second), 1)

    def rows(self, table: Any, places: Any) -> Any:
        return self.nn.embedding(places, table)

    def gather(self, x: Any, places: Any) -> Any:
        return x.gather(1, places)

    def scatter_add(self, x: Any, places: Any, source: Any) -> Any:
        return x.scatter_add(1, places, source)

    def sort(self, x: Any) -> Any:
        return x.sort(-1)[0]

    def gradients(self, loss: Callable[..., Any], weights: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        with self.torch.enable_grad():
            leaves = [weight.detach().requires_grad_() for weight in weights]
            value = loss(*leaves)
            return value.detach(), self.torch.autograd.grad(value, leaves)


class TracedTorchWords(TorchWords):
    """With gradients as one more function, which its compiler takes in whole."""

    def gradients(self, loss: Callable[..., Any], weights: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        both = self.torch.func.grad_and_value(loss, argnums=tuple(range(len(weights))))
        slopes, value = both(*weights)
        return value, slopes


class ExportedTorchWords(TorchWords):
    """What goes into an ONNX file."""

    def gradients(self, loss: Callable[..., Any], weights: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        raise Lacks("has no gradients")
