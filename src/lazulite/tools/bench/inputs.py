"""What workloads are given: arrays drawn from one generator, the same in every process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Input:
    """How to draw an array; `dtype` is that of the tensor which is made of it."""

    shape: Shape
    draw: Callable[[numpy.random.Generator, Shape], Any]
    dtype: str = "float32"


def normal(*shape: int) -> Input:
    return Input(shape, _normal)


def positive(*shape: int) -> Input:
    """Between 0.5 and 1.5: no sum of them is small."""
    return Input(shape, lambda generator, shape: generator.random(shape, numpy.float32) + numpy.float32(0.5))


def halves(*shape: int) -> Input:
    """bfloat16 around 0, as float32 that are such already."""
    return Input(shape, lambda generator, shape: to_bfloat16(_normal(generator, shape)), "bfloat16")


def places(count: int, *shape: int) -> Input:
    """Integers from 0 to below `count`."""
    return Input(shape, lambda generator, shape: generator.integers(0, count, shape, numpy.int32), "int32")


def permuted(rows: int, columns: int) -> Input:
    """In each row every place once: no two threads or orders of addition can differ."""
    ordered = numpy.arange(columns, dtype=numpy.int32)
    return Input(
        (rows, columns), lambda generator, _: generator.permuted(numpy.tile(ordered, (rows, 1)), axis=1), "int32"
    )


def weight(*shape: int, fan: int = 0) -> Input:
    """Uniform with the variance 2 / fan, by default of all axes but the first: a layer keeps the size of values."""
    bound = math.sqrt(6 / (fan or math.prod(shape[1:])))
    return Input(
        shape, lambda generator, shape: (generator.random(shape, numpy.float32) * 2 - 1) * numpy.float32(bound)
    )


def draw(inputs: Iterable[Input]) -> list[Any]:
    """The arrays, the same in every process."""
    generator = numpy.random.default_rng(7)
    return [each.draw(generator, each.shape) for each in inputs]


def to_bfloat16(x: Any) -> Any:
    """The nearest bfloat16, the even one of two, as float32.

    >>> to_bfloat16(numpy.array([1.0, 1.00390625, 1.01171875], numpy.float32)).tolist()
    [1.0, 1.0, 1.015625]
    """
    bits = x.view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(numpy.float32)


def _normal(generator: numpy.random.Generator, shape: Shape) -> Any:
    return generator.standard_normal(shape, numpy.float32)
