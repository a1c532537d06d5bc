"""Kernels as the scheduler makes them, for tests of what is chosen for them and compiled from them.

A family draws a small program over tensors that has several reductions, windows, borders or gathers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from random import Random
from typing import Any

import numpy as np

from lazulite import Tensor
from lazulite.ir.uop import UOp
from support.schedules import scheduled

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 40)
LARGEST = 1500


def _shape(rng: Random, rank: int) -> list[int]:
    """Small odd sizes, together not more than the interpreter likes."""
    while True:
        shape = [rng.choice(SIZES) if rng.random() < 0.6 else rng.randint(1, 40) for _ in range(rank)]
        if prod(shape) <= LARGEST:
            return shape


def _leaf(*shape: int, dtype: str = "float32") -> Any:
    return Tensor(np.ones(shape, dtype))  # the values are never looked at


def _softmax(rng: Random) -> Sequence[Any]:
    x = _leaf(*_shape(rng, rng.randint(1, 3)), dtype=rng.choice(["float32", "float32", "float64", "float16"]))
    axis = rng.randrange(x.ndim)
    return [rng.choice([x.softmax, x.log_softmax, x.logsumexp])(axis)]


def _norm(rng: Random) -> Sequence[Any]:
    x = _leaf(*_shape(rng, rng.randint(2, 4)))
    axes = rng.choice([(-1,), tuple(range(1, x.ndim)), (0, *range(2, x.ndim)), (0,)])
    mean, variance = x.mean(axes, keepdim=True), x.var(axes, keepdim=True, correction=0)
    scale = _leaf(*[1 if rng.random() < 0.5 else n for n in x.shape])
    return [(x - mean) * (variance + 1e-5).rsqrt() * scale + scale, *([mean] if rng.random() < 0.3 else [])]


def _norm_gradient(rng: Random) -> Sequence[Any]:
    x = _leaf(*_shape(rng, 2))
    weight = _leaf(x.shape[1])
    y = (x - x.mean(-1, keepdim=True)) * (x.var(-1, keepdim=True, correction=0) + 1e-5).rsqrt() * weight
    return (y * y.sin()).sum().gradient(x, weight)


def _argmax(rng: Random) -> Sequence[Any]:
    x = _leaf(*_shape(rng, rng.randint(1, 3)), dtype=rng.choice(["float32", "int32"]))
    axis = rng.choice([None, *range(x.ndim)])
    return [rng.choice([x.argmax, x.argmin])(axis)]


def _cross_entropy(rng: Random) -> Sequence[Any]:
    n, m = _shape(rng, 2)
    x, labels = _leaf(n, m), _leaf(n, dtype="int32")
    loss = x.sparse_categorical_crossentropy(labels)
    return [loss] if rng.random() < 0.4 else [loss, *loss.gradient(x)]


def _pool(rng: Random) -> Sequence[Any]:
    x = _leaf(*_shape(rng, 4))
    kernel = rng.randint(1, min(3, *x.shape[2:])), rng.randint(1, min(3, *x.shape[2:]))
    stride = rng.choice([1, 2, 3])
    y = x.max_pool2d(kernel, stride) if rng.random() < 0.6 else x.avg_pool2d(kernel, stride)
    return [y] if rng.random() < 0.5 else y.square().sum().gradient(x)


def _padded(rng: Random) -> Sequence[Any]:
    x = _leaf(*_shape(rng, 2))
    y = x.pad(((rng.randint(0, 3), rng.randint(0, 3)), (rng.randint(0, 3), rng.randint(0, 3))))
    return [rng.choice([y.softmax, y.sum, y.max])(rng.randrange(2))]


def _convolution(rng: Random) -> Sequence[Any]:
    n, c, o, h, w = rng.randint(1, 3), rng.randint(1, 4), rng.randint(1, 9), rng.randint(3, 8), rng.randint(3, 18)
    x, weight = _leaf(n, c, h, w), _leaf(o, c, rng.choice([1, 3]), rng.choice([1, 3]))
    y = x.conv2d(weight, padding=rng.randint(0, 1), stride=rng.choice([1, 1, 2]))
    return [y.relu()] if rng.random() < 0.4 else y.square().sum().gradient(x, weight)


def _attention(rng: Random) -> Sequence[Any]:
    q = _leaf(rng.randint(1, 3), rng.randint(1, 12), rng.randint(1, 9))
    k = _leaf(q.shape[0], rng.randint(1, 18), q.shape[2])
    return [(q @ k.transpose(-1, -2) * 0.5).softmax(-1) @ k]


def _products(rng: Random) -> Sequence[Any]:
    (m, k), n = _shape(rng, 2), rng.randint(1, 12)
    y = _leaf(m, k) @ _leaf(k, n)
    return [rng.choice([y.softmax(-1), y.relu().sum(0), y.softmax(0), y.T.tanh()])]


def _several(rng: Random) -> Sequence[Any]:
    x = _leaf(*_shape(rng, 3))
    axis = rng.randrange(3)
    return [x.sum(axis), x.max(axis), x - x.mean(axis, keepdim=True), x.exp().sum(axis).log()]


_FAMILIES = (
    _softmax, _norm, _norm_gradient, _argmax, _cross_entropy, _pool, _padded, _convolution, _attention, _products,
    _several,
)  # fmt: skip
FAMILIES: dict[str, Callable[[Random], Sequence[Any]]] = {family.__name__[1:]: family for family in _FAMILIES}


def scheduled_kernels(family: str, rng: Random) -> list[UOp]:
    """The kernels of a random program of a family."""
    return scheduled([tensor.uop for tensor in FAMILIES[family](rng)]).kernels
