"""The part of `numpy.fft` whose results are real."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lazulite.interop.elementwise import as_tensor
from lazulite.tensor.tensor import Tensor

Axes = int | Sequence[int] | None


def fftfreq(n: int, d: float = 1.0) -> Tensor:
    """The frequencies of a transform of n samples at a distance: from 0 on, then the negative ones."""
    half = (n + 1) // 2
    numbers = Tensor.arange(n)
    return (numbers < half).where(numbers, numbers - n) / (n * d)


def rfftfreq(n: int, d: float = 1.0) -> Tensor:
    """The frequencies that are not negative."""
    return Tensor.arange(n // 2 + 1) / (n * d)


def fftshift(x: Any, axes: Axes = None) -> Tensor:
    """The frequency 0 moved to the middle."""
    return _shifted(x, axes, 1)


def ifftshift(x: Any, axes: Axes = None) -> Tensor:
    """The frequency 0 moved back to the front."""
    return _shifted(x, axes, -1)


def _shifted(x: Any, axes: Axes, sign: int) -> Tensor:
    tensor = as_tensor(x)
    chosen = list(range(len(tensor.shape))) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    shifts = [sign * (tensor.shape[axis] // 2) for axis in chosen]
    return tensor.roll(tuple(shifts), tuple(chosen))
