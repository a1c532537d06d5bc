"""Whole networks as workloads: training steps, ResNet-18, and GPT-2 over a prompt and token by token.

Weights are random and arrive as inputs, in the order in which the formula takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy

from lazulite.tools.bench.inputs import Input, normal, places, positive, weight
from lazulite.tools.bench.words import Words
from lazulite.tools.bench.words_numpy import NumPyWords
from lazulite.tools.bench.workload import Workload

# --- a training step -----------------------------------------------------------------------------

_RATE = 0.1
_CLASSES = 10
_SAMPLE = 97
"""Every so many-th weight of a large network is compared after a step."""
_NEAR_TIES = 1e-2
"""How far weights may lie apart after a step through a pool of maxima: which of two elements is the largest may depend
on how float32 rounds, and the whole gradient of a window goes there (1e-3 of the largest weight for jax and for us in
some runs; nothing in float64)."""


def training_step(batch: int, side: int, width: int) -> Workload:
    """One step of gradient descent of two convolutions and a layer over images of digits."""
    last = 2 * width * ((side - 2) // 2 - 2) ** 2
    weights = (weight(width, 1, 3, 3), weight(2 * width, width, 3, 3), weight(last, _CLASSES, fan=last))
    return Workload(
        f"training step, digits, batch {batch}",
        (normal(batch, 1, side, side), places(_CLASSES, batch), *weights),
        _step,
        _step_meaning,
        tolerance=1e-4,
    )


def _step(words: Words, images: Any, classes: Any, *weights: Any) -> list[Any]:
    """The loss, and the weights after the step."""

    def loss(first: Any, second: Any, last: Any) -> Any:
        pooled = words.max_pool(words.relu(words.conv2d(images, first)), 2, 2)
        features = words.relu(words.conv2d(pooled, second))
        return words.cross_entropy(features.reshape(features.shape[0], -1) @ last, classes)

    value, slopes = words.gradients(loss, weights)
    return [value, *[each - slope * _RATE for each, slope in zip(weights, slopes, strict=True)]]


def _step_meaning(words: NumPyWords, images: Any, classes: Any, first: Any, second: Any, last: Any) -> list[Any]:
    """The same with the derivatives written out."""
    inner = words.conv2d(images, first)
    pooled = words.max_pool(words.relu(inner), 2, 2)
    outer = words.conv2d(pooled, second)
    features = words.relu(outer).reshape(len(images), -1)
    scores = features @ last
    up = (words.softmax(scores) - numpy.eye(_CLASSES)[classes]) / len(images)
    below_outer = (up @ last.T).reshape(outer.shape) * (outer > 0)
    flipped = second[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    below_pool = words.conv2d(below_outer, flipped, padding=2)
    below_inner = _into_maxima(words.relu(inner), pooled, below_pool) * (inner > 0)
    slopes = (_by_kernel(words, images, below_inner), _by_kernel(words, pooled, below_outer), features.T @ up)
    moved = [each - slope * _RATE for each, slope in zip((first, second, last), slopes, strict=True)]
    return [words.cross_entropy(scores, classes), *moved]


def _by_kernel(words: NumPyWords, x: Any, up: Any) -> Any:
    return numpy.einsum("bcyxij,boyx->ocij", words.windows(x, 3, 1, 0), up, optimize=True)


def _into_maxima(x: Any, pooled: Any, up: Any) -> Any:
    """What arrives at a maximum of 2 x 2 goes to where it was; maxima of 0 come from below a relu and pass nothing."""
    result = numpy.zeros_like(x)
    rows, columns = 2 * pooled.shape[2], 2 * pooled.shape[3]
    larger = numpy.ones((2, 2))
    result[:, :, :rows, :columns] = numpy.kron(up, larger) * (x[:, :, :rows, :columns] == numpy.kron(pooled, larger))
    return result


def _descent(loss: Callable[..., Any], given: int) -> Callable[..., list[Any]]:
    """A step of gradient descent: the loss, and the weights after it; the first `given` inputs are none."""

    def step(words: Words, *inputs: Any) -> list[Any]:
        weights = inputs[given:]
        value, slopes = words.gradients(lambda *weights: loss(words, *inputs[:given], *weights), weights)
        return [value, *[each - slope * _RATE for each, slope in zip(weights, slopes, strict=True)]]

    return step


# --- ResNet-18 -----------------------------------------------------------------------------------

_STAGES = 4
_BLOCKS = 2


def resnet18(batch: int, side: int, width: int) -> Workload:
    """Forward, with the statistics of the training."""
    weights = tuple(_resnet_weights(width, statistics=True))
    return Workload(
        f"ResNet-18, batch {batch}",
        (normal(batch, 3, side, side), *weights),
        _resnet,
        weights=len(weights),
        tolerance=1e-4,
        flops=_resnet_flops(batch, side, width),
    )


def resnet18_step(batch: int, side: int, width: int) -> Workload:
    """One step of gradient descent, with the statistics of the batch; the reference knows the loss alone."""

    def loss(words: Words, x: Any, classes: Any, *weights: Any) -> Any:
        return words.cross_entropy(_resnet(words, x, *weights), classes)

    weights = tuple(_resnet_weights(width, statistics=False))
    return Workload(
        f"ResNet-18 training step, batch {batch}",
        (normal(batch, 3, side, side), places(1000, batch), *weights),
        _descent(loss, 2),
        loss,
        tolerance=_NEAR_TIES,
        sample=_SAMPLE,
        flops=3 * _resnet_flops(batch, side, width),
    )


def _resnet_weights(width: int, statistics: bool) -> Iterator[Input]:
    yield from _unit_weights(width, 3, 7, statistics)
    inner = width
    for stage in range(_STAGES):
        outer = width << stage
        for _ in range(_BLOCKS):
            yield from _unit_weights(outer, inner, 3, statistics)
            yield from _unit_weights(outer, outer, 3, statistics)
            if inner != outer:
                yield from _unit_weights(outer, inner, 1, statistics)
            inner = outer
    yield weight(1000, inner)
    yield normal(1000)


def _unit_weights(outer: int, inner: int, kernel: int, statistics: bool) -> Iterator[Input]:
    yield weight(outer, inner, kernel, kernel)
    if statistics:
        yield from (normal(outer), positive(outer))
    yield from (positive(outer), normal(outer))


def _resnet(words: Words, x: Any, *weights: Any) -> Any:
    """The scores; each unit has statistics among its weights, or normalises by those of the batch."""
    units = 1 + _STAGES * _BLOCKS * 2 + _STAGES - 1
    left, per_unit = iter(weights), (len(weights) - 2) // units

    def unit(x: Any, stride: int = 1) -> Any:
        """A convolution and its normalisation."""
        kernel, *rest = [next(left) for _ in range(per_unit)]
        y = words.conv2d(x, kernel, stride, kernel.shape[2] // 2)
        return words.batch_norm(y, *rest) if len(rest) == 4 else words.batch_norm_in_training(y, *rest)

    def block(x: Any, stride: int) -> Any:
        y = unit(words.relu(unit(x, stride)))
        return words.relu(y + (x if stride == 1 else unit(x, stride)))

    x = words.max_pool(words.relu(unit(x, 2)), 3, 2, padding=1)
    for stage in range(_STAGES):
        for number in range(_BLOCKS):
            x = block(x, 2 if stage and not number else 1)
    return words.mean(x, (2, 3)) @ words.permute(next(left), 1, 0) + next(left)


def _resnet_flops(batch: int, side: int, width: int) -> int:
    """Those of the convolutions and of the last layer."""
    side //= 2
    total, inner = width * 3 * 49 * side**2, width
    side //= 2
    for stage in range(_STAGES):
        outer, side = width << stage, side // 2 if stage else side
        for _ in range(_BLOCKS):
            total += (outer * inner * 9 + outer * outer * 9 + (outer * inner if inner != outer else 0)) * side**2
            inner = outer
    return 2 * batch * (total + 1000 * inner)


# --- GPT-2 ---------------------------------------------------------------------------------------


def gpt2_prefill(layers: int, width: int, heads: int, vocabulary: int, length: int) -> Workload:
    """A prompt through all layers; the scores of the token that follows it."""
    weights = _gpt2_weights(layers, width, vocabulary, length)
    return Workload(
        f"GPT-2, {layers} layers, {length} tokens",
        (places(vocabulary, length), *weights),
        lambda words, tokens, *weights: _scores(words, _gpt2(words, heads, tokens, *weights)[-1:], *weights),
        weights=len(weights),
        tolerance=1e-4,
        flops=2 * length * layers * (12 * width**2 + 2 * width * length) + 2 * width * vocabulary,
    )


def gpt2_step(layers: int, width: int, heads: int, vocabulary: int, length: int) -> Workload:
    """One step of gradient descent of all weights; the reference knows the loss alone."""

    def loss(words: Words, tokens: Any, classes: Any, *weights: Any) -> Any:
        return words.cross_entropy(_scores(words, _gpt2(words, heads, tokens, *weights), *weights), classes)

    return Workload(
        f"GPT-2 training step, {layers} layers of {width}, {length} tokens",
        (places(vocabulary, length), places(vocabulary, length), *_gpt2_weights(layers, width, vocabulary, length)),
        _descent(loss, 2),
        loss,
        tolerance=1e-4,
        sample=_SAMPLE,
    )


def gpt2_decode(layers: int, width: int, heads: int, vocabulary: int, length: int) -> Workload:
    """One token more behind `length` of them, whose keys and values are known: its scores, and all keys and values."""
    past = tuple([normal(heads, length, width // heads)] * 2 * layers)
    weights = _gpt2_weights(layers, width, vocabulary, length + 1)

    def step(words: Words, token: Any, *rest: Any) -> list[Any]:
        present: list[Any] = []
        known = iter(rest[: 2 * layers])

        def attend(queries: Any, keys: Any, values: Any) -> Any:
            keys, values = [words.joined(next(known), each) for each in (keys, values)]
            present.extend((keys, values))
            return words.attention(queries, keys, values, False)

        table, positions, *inner = rest[2 * layers :]
        x = _gpt2(words, heads, token, table, positions[length:], *inner, attend=attend)
        return [_scores(words, x, table, *inner), *present]

    return Workload(
        f"GPT-2 decoding, {layers} layers, token {length + 1}",
        (places(vocabulary, 1), *past, *weights),
        step,
        weights=len(weights),
        tolerance=1e-4,
    )


def _gpt2_weights(layers: int, width: int, vocabulary: int, length: int) -> tuple[Input, ...]:
    inner = ((normal(width), normal(width)), (weight(width, 3 * width, fan=2 * width), normal(3 * width)),
             (weight(width, width, fan=20 * width), normal(width)), (normal(width), normal(width)),
             (weight(width, 4 * width, fan=2 * width), normal(4 * width)),
             (weight(4 * width, width, fan=80 * width), normal(width)))  # fmt: skip
    layer = tuple([each for pair in inner for each in pair])
    return (weight(vocabulary, width), weight(length, width), *layer * layers, normal(width), normal(width))


def _gpt2(
    words: Words, heads: int, tokens: Any, table: Any, positions: Any, *weights: Any,
    attend: Callable[[Any, Any, Any], Any] | None = None,
) -> Any:  # fmt: skip
    """What the layers make of the tokens; `attend` takes queries, keys and values."""
    attend = attend or (lambda queries, keys, values: words.attention(queries, keys, values, True))
    x = words.rows(table, tokens) + positions
    left = iter(weights[:-2])
    for normal_weight in left:
        x = x + _attend(words, heads, words.layer_norm(x) * normal_weight + next(left), left, attend)
        inner = words.layer_norm(x) * next(left) + next(left)
        inner = words.gelu(inner @ next(left) + next(left))
        x = x + (inner @ next(left) + next(left))
    return x


def _scores(words: Words, x: Any, table: Any, *weights: Any) -> Any:
    return (words.layer_norm(x) * weights[-2] + weights[-1]) @ words.permute(table, 1, 0)


def _attend(words: Words, heads: int, x: Any, left: Iterator[Any], attend: Callable[[Any, Any, Any], Any]) -> Any:
    length, width = x.shape
    parts = (x @ next(left) + next(left)).reshape(length, 3, heads, width // heads)
    queries, keys, values = [words.permute(parts[:, i], 1, 0, 2) for i in range(3)]
    joined = words.permute(attend(queries, keys, values), 1, 0, 2).reshape(length, width)
    return joined @ next(left) + next(left)
