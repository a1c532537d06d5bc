"""torch.fft's names on pairs of real numbers: a complex array has a last axis (real part, imaginary part).

`dim` counts the axes without that of the pairs, as for a complex array.  `norm` is "backward" (the inverse is divided
by the number of elements; the default), "ortho" or "forward".  Half precision is computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.tensor.base import some_axes
from lazulite.tensor.fourier import as_pairs, axis_of, checked, resized, scale, transformed
from lazulite.tensor.guard import guard_module
from lazulite.tensor.tensor import Tensor

Sizes = Sequence[int] | None


def as_complex(input: Tensor) -> Tensor:
    """A real tensor as pairs.

    >>> as_complex(Tensor([1.0, 2.0])).tolist()
    [[1.0, 0.0], [2.0, 0.0]]
    """
    return as_pairs(input)  # type: ignore[no-any-return]


def _complex(
    function: str, x: Tensor, sizes: Sizes, dims: Sequence[int] | None, norm: str | None, inverse: bool
) -> Tensor:
    """The transform of pairs along several axes."""
    pairs = checked(function, x)
    rank = pairs.ndim - 1
    axes = _axes(function, rank, sizes, dims)
    count = 1
    for n, axis in zip(sizes or [pairs.shape[axis] for axis in axes], axes, strict=True):
        pairs = resized(pairs, axis, pairs.shape[axis] if n in (-1, None) else n)
        count *= pairs.shape[axis]
        pairs = transformed(pairs, axis, inverse)
    factor = scale(function, norm, count, inverse)
    return pairs if factor == 1 else pairs * factor  # type: ignore[no-any-return]


def _axes(function: str, rank: int, sizes: Sizes, dims: Sequence[int] | None) -> list[int]:
    given = dims if dims is not None else range(-len(sizes), 0) if sizes is not None else range(rank)
    axes = [axis_of(function, axis, rank) for axis in given]
    if not axes:
        raise ShapeError(function, "there is no axis to transform")
    if len(set(axes)) < len(axes) or (sizes is not None and len(sizes) != len(axes)):
        raise ArgumentError(function, f"axes {tuple(given)} and sizes {sizes} do not fit")
    return axes


def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The transform of pairs along an axis, cut or filled up to n elements.

    >>> from lazulite import fft
    >>> fft.fft(fft.as_complex(Tensor([1.0, 0.0, 0.0, 0.0]))).tolist()
    [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
    """
    return _complex("fft", input, None if n is None else [n], [dim], norm, False)


def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The way back from `fft`.

    >>> ifft(Tensor([[4.0, 0.0], [0.0, 0.0]])).tolist()
    [[2.0, 0.0], [2.0, 0.0]]
    """
    return _complex("ifft", input, None if n is None else [n], [dim], norm, True)


def fft2(input: Tensor, s: Sizes = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
    """`fft` along two axes."""
    return _complex("fft2", input, s, dim, norm, False)


def ifft2(input: Tensor, s: Sizes = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
    """`ifft` along two axes."""
    return _complex("ifft2", input, s, dim, norm, True)


def fftn(input: Tensor, s: Sizes = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """`fft` along all axes, or those named."""
    return _complex("fftn", input, s, dim, norm, False)


def ifftn(input: Tensor, s: Sizes = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """`ifft` along all axes, or those named."""
    return _complex("ifftn", input, s, dim, norm, True)


# --- real on one side --------------------------------------------------------------------------------


def _real_there(
    function: str, x: Tensor, sizes: Sizes, dims: Sequence[int] | None, norm: str | None, inverse: bool
) -> Tensor:
    """The first half of the last axis, which determines the other one."""
    axes = _axes(function, x.ndim, sizes, dims)
    whole = _complex(function, as_pairs(x), sizes, dims, norm, inverse)
    return resized(whole, axes[-1], whole.shape[axes[-1]] // 2 + 1)  # type: ignore[no-any-return]


def _real_back(
    function: str, x: Tensor, sizes: Sizes, dims: Sequence[int] | None, norm: str | None, inverse: bool
) -> Tensor:
    """The real transform of pairs of which the last axis holds the first half."""
    pairs = checked(function, x)
    axes = _axes(function, pairs.ndim - 1, sizes, dims)
    last = axes[-1]
    n = sizes[-1] if sizes is not None else 2 * (pairs.shape[last] - 1)
    if n < 1:
        raise ArgumentError(function, f"a transform has a size of 1 or more, got {n}")
    others = [pairs.shape[axis] for axis in axes[:-1]] if sizes is None else list(sizes[:-1])
    count = n
    for size, axis in zip(others, axes[:-1], strict=True):
        pairs = transformed(resized(pairs, axis, size), axis, inverse)
        count *= size
    half = resized(pairs, last, n // 2 + 1)
    real, imaginary = half[..., 0], half[..., 1]
    inner = [(1, (n + 1) // 2) if axis == last else None for axis in range(real.ndim)]
    real = real.cat(real.shrink(inner).flip(last), dim=last)
    ends = [(0, 1) if axis == last else None for axis in range(real.ndim)]
    middle = imaginary.shrink(inner)
    edge = imaginary.shrink(ends) * 0  # the first and, of an even number, the middle element count as real
    parts = [edge, middle, *([edge] if n % 2 == 0 else []), -middle.flip(last)]
    first, *rest = [part for part in parts if part.shape[last]]
    found = transformed(real.stack(first.cat(*rest, dim=last) if rest else first, dim=-1), last, inverse)
    factor = scale(function, norm, count, inverse)
    return found[..., 0] * factor  # type: ignore[no-any-return]


def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The first n // 2 + 1 elements of the transform of a real tensor, as pairs.

    >>> rfft(Tensor([1.0, 2.0])).tolist()
    [[3.0, 0.0], [-1.0, 0.0]]
    """
    return _real_there("rfft", input, None if n is None else [n], [dim], norm, False)


def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The way back from `rfft`, to n real elements (an even number, unless given).

    >>> irfft(Tensor([[3.0, 0.0], [-1.0, 0.0]])).tolist()
    [1.0, 2.0]
    """
    return _real_back("irfft", input, None if n is None else [n], [dim], norm, True)


def rfft2(input: Tensor, s: Sizes = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
    """`rfft` along the last, `fft` along the other of two axes."""
    return _real_there("rfft2", input, s, dim, norm, False)


def irfft2(input: Tensor, s: Sizes = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
    """The way back from `rfft2`."""
    return _real_back("irfft2", input, s, dim, norm, True)


def rfftn(input: Tensor, s: Sizes = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """`rfft` along the last, `fft` along the other axes."""
    return _real_there("rfftn", input, s, dim, norm, False)


def irfftn(input: Tensor, s: Sizes = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The way back from `rfftn`."""
    return _real_back("irfftn", input, s, dim, norm, True)


def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The real transform of pairs of which the axis holds the first half of a symmetric whole."""
    return _real_back("hfft", input, None if n is None else [n], [dim], norm, False)


def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The way back from `hfft`."""
    return _real_there("ihfft", input, None if n is None else [n], [dim], norm, True)


# --- places ------------------------------------------------------------------------------------------


def fftfreq(n: int, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """The frequency of each element of a transform: 0, 1, .., -2, -1 over n * d.

    >>> fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    numbers = [k if 2 * k < n else k - n for k in range(n)]
    return Tensor([k / (n * d) for k in numbers], dtype=dtype, device=device)


def rfftfreq(n: int, d: float = 1.0, dtype: Any = None, device: str | None = None) -> Tensor:
    """The frequency of each element of `rfft`.

    >>> rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return Tensor([k / (n * d) for k in range(n // 2 + 1)], dtype=dtype, device=device)


def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The element of frequency zero in the middle; here `dim` counts all axes, also that of pairs.

    >>> fftshift(Tensor([0, 1, -2, -1])).tolist()
    [-2, -1, 0, 1]
    """
    return _shifted(input, dim, 0)


def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The way back from `fftshift`.

    >>> ifftshift(Tensor([-1, 0, 1])).tolist()
    [0, 1, -1]
    """
    return _shifted(input, dim, 1)


def _shifted(x: Tensor, dim: Any, up: int) -> Tensor:
    axes = some_axes("ifftshift" if up else "fftshift", dim, x.ndim)
    return x.roll(tuple([(x.shape[axis] + up) // 2 for axis in axes]), axes)


guard_module(globals())
