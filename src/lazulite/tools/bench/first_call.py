"""A fresh process that times the first call of one program: `python -m lazulite.tools.bench.first_call`.

`PROGRAMS` holds what such a process may run: a training step or an operation, spelled so that Lazulite
and torch take it alike, and its meaning over NumPy arrays.  The process gets the name of a program, of a
library and of a file; into the file it writes the results, to stdout the time and what was compiled.
Imports, and making the inputs, are not timed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

RATE = 0.1
"""How far a training step moves the weights."""
_FACTOR = 1 - 2**-13
"""Exact in float32, so that a long chain of products stays near its meaning."""


@dataclass(frozen=True)
class Program:
    """Something to call once; the last `weights` inputs want gradients."""

    inputs: tuple[tuple[int, ...], ...]
    weights: int
    run: Callable[..., Sequence[Any]]
    """Called with a convolution and tensors."""
    meaning: Callable[..., Sequence[Any]]
    """The same over float64 arrays; called with the inputs."""


# --- programs ------------------------------------------------------------------------------------


def _learnt(loss: Any, *weights: Any) -> list[Any]:
    """The loss and the weights after a step."""
    loss.backward()
    return [loss, *[weight.detach() - weight.grad * RATE for weight in weights]]


def two_layers(conv2d: Any, x: Any, target: Any, first: Any, second: Any) -> list[Any]:
    return _learnt((((x @ first).relu() @ second - target) ** 2).mean(), first, second)


def two_layers_meaning(x: Any, target: Any, first: Any, second: Any) -> list[Any]:
    hidden = (x @ first).clip(0)
    error = hidden @ second - target
    up = 2 * error / error.size
    below = (up @ second.T) * (hidden > 0)
    return [(error**2).mean(), first - RATE * (x.T @ below), second - RATE * (hidden.T @ up)]


def convolutional(conv2d: Any, x: Any, target: Any, kernel: Any, last: Any) -> list[Any]:
    features = conv2d(x, kernel).relu().reshape(x.shape[0], -1)
    return _learnt(((features @ last - target) ** 2).mean(), kernel, last)


def convolutional_meaning(x: Any, target: Any, kernel: Any, last: Any) -> list[Any]:
    import numpy

    windows = numpy.lib.stride_tricks.sliding_window_view(x, kernel.shape[2:], axis=(2, 3))
    maps = numpy.einsum("bcxyij,ocij->boxy", windows, kernel, optimize=True).clip(0)
    features = maps.reshape(x.shape[0], -1)
    error = features @ last - target
    up = 2 * error / error.size
    below = (up @ last.T).reshape(maps.shape) * (maps > 0)
    moved = numpy.einsum("bcxyij,boxy->ocij", windows, below, optimize=True)
    return [(error**2).mean(), kernel - RATE * moved, last - RATE * (features.T @ up)]


def softmax(conv2d: Any, x: Any) -> list[Any]:
    return [x.softmax(-1)]


def softmax_meaning(x: Any) -> list[Any]:
    import numpy

    powers = numpy.exp(x - x.max(-1, keepdims=True))
    return [powers / powers.sum(-1, keepdims=True)]


def chain(pairs: int) -> tuple[Callable[..., list[Any]], Callable[..., list[Any]]]:
    """So many times a product and a sum, one after the other, with the gradient; and its meaning."""

    def run(conv2d: Any, x: Any) -> list[Any]:
        y = x
        for _ in range(pairs):
            y = y * _FACTOR + (1 - _FACTOR)
        y.sum().backward()
        return [y, x.grad]

    def meaning(x: Any) -> list[Any]:
        slope = _FACTOR**pairs
        return [1 + (x - 1) * slope, x * 0 + slope]

    return run, meaning


PROGRAMS = {
    "training step, two layers": Program(((64, 784), (64, 10), (784, 128), (128, 10)), 2, two_layers,
                                         two_layers_meaning),
    "training step, convolution and a layer": Program(((16, 3, 16, 16), (16, 10), (8, 3, 3, 3), (8 * 14 * 14, 10)), 2,
                                                      convolutional, convolutional_meaning),
    "softmax, 512 x 512": Program(((512, 512),), 0, softmax, softmax_meaning),
    "chain of 10,000 operations with its gradient": Program(((16,),), 1, *chain(5000)),
}  # fmt: skip
QUICK = ("training step, two layers", "softmax, 512 x 512")
"""The programs of a quick look."""


def inputs_of(program: Program) -> list[Any]:
    """Random float32 arrays, the same in every process; weights are small."""
    import numpy

    generator = numpy.random.default_rng(11)
    arrays = [generator.standard_normal(shape, dtype=numpy.float32) for shape in program.inputs]
    plain = len(arrays) - program.weights
    return [*arrays[:plain], *[array * numpy.float32(0.1) for array in arrays[plain:]]]


# --- the process ---------------------------------------------------------------------------------


def ask_lazulite(program: Program) -> tuple[float, list[Any], dict[str, int]]:
    """Seconds, results, and what was compiled and scheduled."""
    from lazulite import GlobalCounters, Tensor

    arrays = inputs_of(program)
    plain = len(arrays) - program.weights
    tensors = [Tensor(array, requires_grad=i >= plain) for i, array in enumerate(arrays)]
    begin = time.perf_counter()
    results = program.run(lambda x, kernel: x.conv2d(kernel), *tensors)
    results[0].realize(*results[1:])
    seconds = time.perf_counter() - begin
    counts = {"compiled": GlobalCounters.programs_compiled, "scheduled": GlobalCounters.schedules_built}
    return seconds, [result.numpy() for result in results], counts


def ask_torch(program: Program) -> tuple[float, list[Any], dict[str, int]]:
    """The same of torch, which compiles nothing."""
    torch = import_module("torch")
    arrays = inputs_of(program)
    plain = len(arrays) - program.weights
    tensors = [torch.from_numpy(array).requires_grad_(i >= plain) for i, array in enumerate(arrays)]
    begin = time.perf_counter()
    results = program.run(torch.nn.functional.conv2d, *tensors)
    seconds = time.perf_counter() - begin
    return seconds, [result.detach().numpy() for result in results], {}


LIBRARIES = {"lazulite": ask_lazulite, "torch": ask_torch}


def main(program: str, library: str, results: str) -> None:
    import numpy

    seconds, arrays, counts = LIBRARIES[library](PROGRAMS[program])
    numpy.savez(results, *arrays)
    print(json.dumps({"seconds": seconds, **counts}))


if __name__ == "__main__":
    main(*sys.argv[1:])
