"""Discrete Fourier transforms on pairs of real numbers.

A complex array is a real tensor whose last axis holds real and imaginary part, as torch.view_as_real gives it.  A
transform of n elements is split by the factors of n (Cooley and Tukey): a factor is a product with a small matrix of
roots of unity, between two of them lie turns of the plane.  What has a large prime factor becomes a convolution of a
power of two (Bluestein).  All of it is products and sums, so gradients come by themselves; time is n log n.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import one_axis, wide_dtype

_LARGEST = 64
"""The largest factor that is a matrix product by itself."""
_BEST = 16
"""Factors are joined up to this one, which keeps products large and few."""
NORMS = ("backward", "ortho", "forward")


def transformed(x: Any, axis: int, inverse: bool) -> Any:
    """The transform of pairs along an axis (that of the pairs not counted), without a factor in front."""
    moved = x.transpose(axis, x.ndim - 2)
    return _along_last(moved, inverse).transpose(axis, x.ndim - 2)


def _along_last(x: Any, inverse: bool) -> Any:
    n = x.shape[-2]
    if n <= 1 or 0 in x.shape:
        return x
    factors = _factors(n)
    if not factors:
        return _by_convolution(x, inverse)
    return _split(x, factors, inverse)


@cache
def _factors(n: int) -> tuple[int, ...]:
    """Factors of n, joined where they are small; none where a prime is too large."""
    primes, left, prime = [], n, 2
    while left > 1 and prime <= _LARGEST:
        while left % prime == 0:
            primes.append(prime)
            left //= prime
        prime += 1
    if left > 1:
        return ()
    joined: list[int] = []
    for each in sorted(primes):
        if joined and joined[-1] * each <= _BEST:
            joined[-1] *= each
        else:
            joined.append(each)
    return tuple(joined)


def _split(x: Any, factors: Sequence[int], inverse: bool) -> Any:
    """n = a * b: transforms of a over every b-th element, turns, transforms of b."""
    a, rest = factors[0], factors[1:]
    if not rest:
        return _multiplied(x, a, inverse)
    b = x.shape[-2] // a
    columns = x.unflatten(-2, (a, b)).transpose(-3, -2)  # (.., b, a, 2)
    columns = _multiplied(columns, a, inverse)
    columns = times(columns, _roots(x, _numbers(x, b).unsqueeze(1) * _numbers(x, a), a * b, inverse))
    rows = _split(columns.transpose(-3, -2), rest, inverse)  # (.., a, b, 2)
    return rows.transpose(-3, -2).flatten(-3, -2)


def _root(power: int, n: int, inverse: bool) -> complex:
    """exp(-2 pi i power / n), exact at quarter turns."""
    power %= n
    quarter, left = divmod(4 * power, n)
    if not left:
        found = (1, -1j, -1, 1j)[quarter]
        return complex(found).conjugate() if inverse else complex(found)
    return cmath.exp((2j if inverse else -2j) * math.pi * power / n)


def _numbers(x: Any, count: int) -> Any:
    """0, 1, .. as int64, on the device of `x`."""
    return x._derived(UOp(ops.IOTA, dtypes.int64, (), count))


def _roots(x: Any, powers: Any, n: int, inverse: bool) -> Any:
    """exp(-2 pi i power / n) as pairs in the type of `x`; angles are those of whole numbers below n."""
    angle = (powers % n).cast(dtypes.float64) * (2 * math.pi / n)
    sine = angle.sin()
    return angle.cos().stack(sine if inverse else -sine, dim=-1).cast(x.dtype)


def _multiplied(x: Any, n: int, inverse: bool) -> Any:
    """The transform of a small size as one real product of size 2n."""
    matrix = [[_root(i * j, n, inverse) for j in range(n)] for i in range(n)]
    real = [[part for w in row for part in (w.real, -w.imag)] for row in matrix]
    imaginary = [[part for w in row for part in (w.imag, w.real)] for row in matrix]
    both = [row for pair in zip(real, imaginary, strict=True) for row in pair]
    weight = type(x)(both, dtype=x.dtype, device=x.device)
    return x.flatten(-2, -1).matmul(weight.transpose()).unflatten(-1, (n, 2))


def times(x: Any, y: Any) -> Any:
    """The product of complex numbers."""
    a, b, c, d = x[..., 0], x[..., 1], y[..., 0], y[..., 1]
    return (a * c - b * d).stack(a * d + b * c, dim=-1)


def _by_convolution(x: Any, inverse: bool) -> Any:
    """j k = (j^2 + k^2 - (k - j)^2) / 2, so a transform is a convolution between two turns."""
    n = x.shape[-2]
    size = 1 << (2 * n - 2).bit_length()
    number, place = _numbers(x, n), _numbers(x, size)
    away = place.minimum(size - place)
    chirp = _roots(x, number * number, 2 * n, inverse)
    back = (away < n).unsqueeze(-1).where(_roots(x, away * away, 2 * n, not inverse), 0)
    filled = times(x, chirp).pad([(0, 0)] * (x.ndim - 2) + [(0, size - n), (0, 0)])
    product = times(_along_last(filled, False), _along_last(back, False))
    mixed = _along_last(product, True) / size
    return times(mixed.shrink([*[None] * (x.ndim - 2), (0, n), None]), chirp)


# --- arguments -------------------------------------------------------------------------------------


def as_pairs(x: Any) -> Any:
    """A real tensor as pairs without imaginary part."""
    wide = x.cast(wide_dtype(x.dtype))
    return wide.stack(wide * 0, dim=-1)


def checked(function: str, x: Any) -> Any:
    """A tensor of pairs; ShapeError where the last axis holds none."""
    if not x.shape or x.shape[-1] != 2:
        raise ShapeError(
            function, f"the last axis holds real and imaginary part, got {x.shape}", about={"input": x},
            hint="a real tensor is made complex by fft.as_complex",
        )  # fmt: skip
    return x.cast(wide_dtype(x.dtype))


def resized(x: Any, axis: int, n: int) -> Any:
    """An axis cut, or filled up with zeros behind."""
    size = x.shape[axis]
    if n < 1:
        raise ArgumentError("fft", f"a transform has a size of 1 or more, got {n}")
    if n < size:
        return x.shrink([(0, n) if each == axis else None for each in range(x.ndim)])
    return x.pad([(0, n - size) if each == axis else (0, 0) for each in range(x.ndim)])


def scale(function: str, norm: str | None, count: int, inverse: bool) -> float:
    """The factor in front."""
    if norm is not None and norm not in NORMS:
        raise ArgumentError(function, f"norm is {', '.join(map(repr, NORMS))} or None, not {norm!r}")
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if ((norm or "backward") == "backward") is inverse else 1.0


def axis_of(function: str, dim: int, rank: int) -> int:
    """An axis to transform, counted from the front; there has to be one."""
    if not rank:
        raise ShapeError(function, "a single number has no axis to transform")
    return one_axis(function, dim, rank)
