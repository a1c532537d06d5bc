"""A program with fixed shapes that every participant runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lazulite.tools.bench.inputs import Input
from lazulite.tools.bench.words import Words

Formula = Callable[..., Any]
"""Called with words and the inputs; gives a tensor, or a list of them."""


@dataclass(frozen=True)
class Workload:
    """Every participant computes the same from the same inputs."""

    name: str
    inputs: tuple[Input, ...]
    formula: Formula
    meaning: Formula | None = None
    """The reference where the formula uses words that NumPy lacks."""
    weights: int = 0
    """How many inputs, the last ones, stay the same from call to call: a library may prepare them."""
    tolerance: float = 1e-5
    """The largest error that counts as correct, relative to the largest value of the result."""
    sample: int = 1
    """Every so many-th element of a result is compared: all of a large network's weights are too many to hand over."""
    flops: int = 0
    """float32 additions and products, where their number is what bounds the speed."""
    streams: bool = False
    """Whether it reads all of its inputs and writes its results, once, and this is what bounds the speed."""
    calls: int = 1
    """How many calls are timed together."""
    clock: Callable[[], float] = time.perf_counter
    """Wall time, or the processor time of this process where a call is short work of one thread."""
    settings: Mapping[str, int] = field(default_factory=dict)
    """Settings of Lazulite in which it is run."""

    captured: bool = False
    """Whether it is a function that every library captures which can, in a suite where they else do not."""

    def results(self, words: Words, *inputs: Any) -> list[Any]:
        """What the formula gives, as a list."""
        return as_list(self.formula(words, *inputs))


def as_list(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


def count_text(count: int) -> str:
    """A number of elements, short where it is a power of two.

    >>> count_text(1 << 24), count_text(1000)
    ('16M', '1000')
    """
    for bits, unit in ((20, "M"), (10, "K")):
        if count and count % (1 << bits) == 0:
            return f"{count >> bits}{unit}"
    return str(count)
