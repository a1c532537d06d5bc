"""A fresh process that times the first call of one program: `python -m lazulite.tools.bench.first_call`.

`PROGRAMS` holds what such a process may run: operations, training steps and whole networks, as workloads.
The process gets the name of a program, of a library and of a file; into the file it writes the results, to
stdout the time and what was compiled.  Imports, and making the inputs, are not timed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from lazulite.tools.bench import models
from lazulite.tools.bench.inputs import draw, normal, weight
from lazulite.tools.bench.words import Words
from lazulite.tools.bench.words_numpy import NumPyWords
from lazulite.tools.bench.workload import Workload
from lazulite.tools.bench.workloads import softmax

if TYPE_CHECKING:
    from lazulite.tools.bench.participants import Participant

_RATE = 0.1
"""How far a training step moves the weights."""
_FACTOR = 1 - 2**-13
"""Exact in float32, so that a long chain of products stays near its meaning."""


# --- programs ------------------------------------------------------------------------------------


def _learnt(words: Words, loss: Callable[..., Any], *weights: Any) -> list[Any]:
    """The loss and the weights after a step."""
    value, slopes = words.gradients(loss, weights)
    return [value, *[each - slope * _RATE for each, slope in zip(weights, slopes, strict=True)]]


def two_layers(batch: int) -> Workload:
    inputs = (normal(batch, 784), normal(batch, 10), weight(784, 128, fan=784), weight(128, 10, fan=128))
    return Workload("training step, two layers", inputs, _two_layers, _two_layers_meaning, tolerance=1e-4)


def _two_layers(words: Words, x: Any, target: Any, *weights: Any) -> list[Any]:
    return _learnt(
        words, lambda first, second: words.mean((words.relu(x @ first) @ second - target) ** 2, (0, 1)), *weights
    )


def _two_layers_meaning(words: NumPyWords, x: Any, target: Any, first: Any, second: Any) -> list[Any]:
    hidden = words.relu(x @ first)
    error = hidden @ second - target
    up = 2 * error / error.size
    below = (up @ second.T) * (hidden > 0)
    return [(error**2).mean(), first - _RATE * (x.T @ below), second - _RATE * (hidden.T @ up)]


def convolutional(batch: int) -> Workload:
    inputs = (normal(batch, 3, 16, 16), normal(batch, 10), weight(8, 3, 3, 3), weight(8 * 14 * 14, 10, fan=8 * 14 * 14))
    name = "training step, convolution and a layer"
    return Workload(name, inputs, _convolutional, _convolutional_meaning, tolerance=1e-4)


def _convolutional(words: Words, x: Any, target: Any, *weights: Any) -> list[Any]:
    def loss(kernel: Any, last: Any) -> Any:
        features = words.relu(words.conv2d(x, kernel)).reshape(x.shape[0], -1)
        return words.mean((features @ last - target) ** 2, (0, 1))

    return _learnt(words, loss, *weights)


def _convolutional_meaning(words: NumPyWords, x: Any, target: Any, kernel: Any, last: Any) -> list[Any]:
    maps = words.relu(words.conv2d(x, kernel))
    features = maps.reshape(x.shape[0], -1)
    error = features @ last - target
    up = 2 * error / error.size
    below = (up @ last.T).reshape(maps.shape) * (maps > 0)
    moved = numpy.einsum("bcxyij,boxy->ocij", words.windows(x, 3, 1, 0), below, optimize=True)
    return [(error**2).mean(), kernel - _RATE * moved, last - _RATE * (features.T @ up)]


def chain_with_gradient(pairs: int) -> Workload:
    """So many times a product and a sum, one after the other."""

    def summed(words: Words, y: Any) -> Any:
        for _ in range(pairs):
            y = y * _FACTOR + (1 - _FACTOR)
        return words.total(y)

    def run(words: Words, x: Any) -> list[Any]:
        value, slopes = words.gradients(lambda x: summed(words, x), [x])
        return [value, *slopes]

    def meaning(words: NumPyWords, x: Any) -> list[Any]:
        slope = _FACTOR**pairs
        return [(1 + (x - 1) * slope).sum(), x * 0 + slope]

    name = f"chain of {2 * pairs:,} operations with its gradient"
    return Workload(name, (normal(16),), run, meaning, tolerance=1e-4)


_QUICK = (two_layers(64), softmax(512, 512))
_LONG = (convolutional(16), chain_with_gradient(5000), models.resnet18(1, 224, 64),
         models.gpt2_step(12, 768, 12, 50257, 64), models.gpt2_step(12, 192, 12, 1000, 64),
         models.gpt2_step(48, 192, 12, 1000, 64))  # fmt: skip
PROGRAMS = {workload.name: workload for workload in (*_QUICK, *_LONG)}
QUICK = tuple([workload.name for workload in _QUICK])
"""The programs of a quick look."""


# --- the process ---------------------------------------------------------------------------------


def ask(participant: Participant, program: Workload) -> tuple[float, list[Any], dict[str, int]]:
    """Seconds, results, and what was compiled and scheduled."""
    from lazulite import GlobalCounters

    call = participant.prepare(program, draw(program.inputs))
    GlobalCounters.reset()
    begin = time.perf_counter()
    results = call()
    seconds = time.perf_counter() - begin
    counts = {
        "compiled": GlobalCounters.programs_compiled, "scheduled": GlobalCounters.schedules_built,
        "kernels": GlobalCounters.kernel_count,
    }  # fmt: skip
    return seconds, participant.fetch(results), counts


def main(program: str, library: str, results: str) -> None:
    from lazulite.runtime.workers import usable_cores
    from lazulite.tools.bench.participants import OURS, Lazulite, Torch

    participant = {OURS: Lazulite, "torch": Torch}[library](usable_cores())
    seconds, arrays, counts = ask(participant, PROGRAMS[program])
    numpy.savez(results, *arrays)
    print(json.dumps({"seconds": seconds, **(counts if library == OURS else {})}))


if __name__ == "__main__":
    main(*sys.argv[1:])
