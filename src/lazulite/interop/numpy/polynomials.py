"""Polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

from lazulite.base.errors import ArgumentError
from lazulite.interop.elementwise import as_tensor
from lazulite.interop.numpy.creation import vander
from lazulite.interop.numpy.series import convolve
from lazulite.interop.numpy.shapes import concatenate
from lazulite.ir.dtype import dtypes, promote
from lazulite.tensor.base import float_dtype
from lazulite.tensor.tensor import Tensor

__all__ = ["poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval"]


def polyval(p: Any, x: Any) -> Tensor:
    """The value at places, by Horner's scheme."""
    coefficients, places = as_tensor(p), as_tensor(x)
    kind = promote(coefficients.dtype, places.dtype)
    found = places.zeros_like(dtype=kind)
    for number in range(coefficients.shape[0]):
        found = found * places + coefficients[number]
    return found


def _aligned(a1: Any, a2: Any) -> tuple[Tensor, Tensor]:
    first, second = as_tensor(a1).reshape(-1), as_tensor(a2).reshape(-1)
    size = max(first.shape[0], second.shape[0])
    padded = [each.pad(((size - each.shape[0], 0),)) for each in (first, second)]
    return padded[0], padded[1]


def polyadd(a1: Any, a2: Any) -> Tensor:
    """The sum."""
    first, second = _aligned(a1, a2)
    return first + second


def polysub(a1: Any, a2: Any) -> Tensor:
    """The difference."""
    first, second = _aligned(a1, a2)
    return first - second


def polymul(a1: Any, a2: Any) -> Tensor:
    """The product."""
    return convolve(a1, a2)


def polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """Quotient and remainder, this without leading zeros."""
    rest, divisor = as_tensor(u).reshape(-1), as_tensor(v).reshape(-1)
    kind = promote(float_dtype(rest.dtype), float_dtype(divisor.dtype))
    rest, divisor = rest.cast(kind), divisor.cast(kind)
    size, parts = divisor.shape[0], []
    for begin in range(max(rest.shape[0] - size + 1, 0)):
        share = rest[begin] / divisor[0]
        parts.append(share.reshape(1))
        behind = rest.shape[0] - begin - size
        rest = rest - (divisor * share).pad(((begin, behind),))
    quotient = concatenate(parts, 0) if parts else Tensor.zeros(1, dtype=kind)
    values = rest.tolist()
    first = next((n for n, value in enumerate(values) if abs(value) > 1e-6), len(values) - 1)
    return quotient, rest[max(first, 0) :]


def polyfit(x: Any, y: Any, deg: int, rcond: float | None = None, *, w: Any = None) -> Tensor:
    """The polynomial that is nearest to points by least squares, which may have weights."""
    places, values = [as_tensor(each).cast(float_dtype(as_tensor(each).dtype)) for each in (x, y)]
    rows = vander(places, deg + 1)
    if w is not None:
        weights = as_tensor(w)
        rows = rows * weights.reshape(-1, 1)
        values = values * (weights if len(values.shape) == 1 else weights.reshape(-1, 1))
    scale = (rows * rows).sum(0).sqrt()
    found = (rows / scale).lstsq(values, rcond)[0]
    scaled: Tensor = found / (scale if len(values.shape) == 1 else scale.reshape(-1, 1))
    return scaled


def polyder(p: Any, m: int = 1) -> Tensor:
    """The derivative, taken m times."""
    found = as_tensor(p)
    for _ in range(m):
        size = found.shape[0]
        found = found[:-1] * Tensor.arange(1, size).flip(0) if size > 1 else found[:0]
    return found


def polyint(p: Any, m: int = 1, k: Any = None) -> Tensor:
    """The integral, taken m times, with the constants k."""
    constants = [0.0] * m if k is None else as_tensor(k).reshape(-1).tolist()
    constants = constants * m if len(constants) == 1 else constants
    if len(constants) < m:
        raise ArgumentError("polyint", f"{m} integrals take {m} constants, got {len(constants)}")
    found = as_tensor(p).cast(float_dtype(as_tensor(p).dtype))
    for number in range(m):
        powers = Tensor.arange(1, found.shape[0] + 1).flip(0)
        found = concatenate([found / powers, Tensor([float(constants[number])], dtype=found.dtype)], 0)
    return found


def poly(seq_of_zeros: Any) -> Tensor:
    """The polynomial with these zeros and leading coefficient 1."""
    zeros = as_tensor(seq_of_zeros)
    kind = promote(float_dtype(zeros.dtype), dtypes.float32)
    found = Tensor([1.0], dtype=kind)
    for number in range(zeros.shape[0]):
        shifted = found * zeros[number]
        found = found.pad(((0, 1),)) - shifted.pad(((1, 0),))
    return found
