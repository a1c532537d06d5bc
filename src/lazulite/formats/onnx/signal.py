"""Fourier transforms, mel filters and windows, and random values.

A transform is a product with the matrix of its cosines and sines, whose angles are exact: the remainder of
the product of the numbers is taken as integers first.
"""

from __future__ import annotations

import math

import numpy

from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.formats.onnx.values import NAMES, Host, Ints
from lazulite.tensor.tensor import Tensor


def _waves(count: int, rows: int, columns: int, sign: float, like: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin of 2 pi j k / count, for j below `rows` and k below `columns`."""
    turns = numpy.outer(numpy.arange(rows), numpy.arange(columns)) % count
    angles = 2 * math.pi * turns / count
    name = like.dtype.name if like.dtype.name == "float64" else "float32"
    parts = [function(angles).astype(name) for function in (numpy.cos, numpy.sin)]
    real, imaginary = [Tensor(part, device=like.device).cast(like.dtype) for part in parts]
    return real, imaginary * sign


def _transformed(x: Tensor, length: int, inverse: bool, onesided: bool) -> Tensor:
    """Along the axis before the last, which is real or (real, imaginary)."""
    at = len(x.shape) - 2
    kept = min(length, x.shape[at])
    x = x.shrink([(0, kept if n == at else size) for n, size in enumerate(x.shape)])
    real, imaginary = x[..., 0], x[..., 1] if x.shape[-1] == 2 else None
    if inverse and onesided:
        return _real_inverse(real, imaginary, length).unsqueeze(-1)
    wanted = length // 2 + 1 if onesided else length
    cos, sin = _waves(length, kept, wanted, 1.0 if inverse else -1.0, x)
    if imaginary is None:
        parts = real @ cos, real @ sin
    else:
        parts = real @ cos - imaginary @ sin, real @ sin + imaginary @ cos
    y = parts[0].stack(parts[1], dim=-1)
    return y / length if inverse else y


def _real_inverse(real: Tensor, imaginary: Tensor | None, length: int) -> Tensor:
    """A real signal from the half of its spectrum that the other half mirrors."""
    half = min(real.shape[-1], length // 2 + 1)
    cos, sin = _waves(length, half, length, 1.0, real)
    twice = numpy.full(half, 2.0, "float32")
    twice[0] = 1.0
    if length % 2 == 0 and half == length // 2 + 1:
        twice[-1] = 1.0
    weight = Tensor(twice, device=real.device).cast(real.dtype)
    total = (real[..., :half] * weight) @ cos
    total = total if imaginary is None else total - (imaginary[..., :half] * weight) @ sin
    return total / length


@onnx_op("DFT", since=17)
def dft(
    x: Tensor, dft_length: Ints | None = None, axis: Ints | None = None, *, inverse: int = 0, onesided: int = 0,
    call: Call,
) -> Tensor:  # fmt: skip
    along = (1 if call.opset < 20 else -2) if axis is None else axis[0]
    at = along % len(x.shape)
    last = len(x.shape) - 2
    moved = x.transpose(at, last) if at != last else x
    size = moved.shape[last]
    whole = 2 * (size - 1) if inverse and onesided else size
    y = _transformed(moved, dft_length[0] if dft_length else whole, bool(inverse), bool(onesided))
    return y.transpose(at, last) if at != last else y


@onnx_op("STFT", since=17)
def stft(
    signal: Tensor, frame_step: Ints, window: Tensor | None = None, frame_length: Ints | None = None, *,
    onesided: int = 1,
) -> Tensor:  # fmt: skip
    """The transforms of the frames, of which each begins so many samples after the one before."""
    if frame_length:
        length = frame_length[0]
    else:
        length = signal.shape[1] if window is None else window.shape[0]
    x = signal if len(signal.shape) == 3 else signal.unsqueeze(-1)
    frames = x.unfold(1, length, frame_step[0]).transpose(2, 3)
    framed = frames if window is None else frames * window.reshape((length, 1))
    return _transformed(framed, length, False, bool(onesided))


@onnx_op("MelWeightMatrix", since=17)
def mel_weight_matrix(
    bins: Host, dft_length: Host, sample_rate: Host, lower: Host, upper: Host, *, output_datatype: int = 1
) -> Host:
    """Triangles over the spectrum whose corners are evenly spaced on the mel scale."""
    low, high = [2595 * math.log10(1 + edge.item() / 700) for edge in (lower, upper)]
    count, lines = bins.item(), dft_length.item() // 2 + 1
    corners = 700 * (10 ** ((low + numpy.arange(count + 2) * (high - low) / (count + 2)) / 2595) - 1)
    at = ((dft_length.item() + 1) * corners // sample_rate.item()).astype("int64")
    weights = numpy.zeros((lines, count))
    for n in range(count):
        begin, middle, end = at[n : n + 3]
        rising = numpy.arange(begin, middle + 1)
        weights[rising, n] = (rising - begin) / (middle - begin) if begin < middle else 1
        falling = numpy.arange(middle, end)
        weights[falling, n] = (end - falling) / max(end - middle, 1)
    return weights.astype(NAMES[output_datatype])


# --- random values ---------------------------------------------------------------------------------


def _uniform(shape: tuple[int, ...], low: float, high: float, dtype: str, device: str) -> Tensor:
    return (Tensor.rand(*shape, device=device) * (high - low) + low).cast(dtype)


def _normal(shape: tuple[int, ...], mean: float, scale: float, dtype: str, device: str) -> Tensor:
    return (Tensor.randn(*shape, device=device) * scale + mean).cast(dtype)


@onnx_op("RandomUniform")
def random_uniform(
    *, shape: list[int], dtype: int = 1, high: float = 1.0, low: float = 0.0, seed: float | None = None, call: Call
) -> Tensor:
    """Drawn by Lazulite's generator: `Tensor.manual_seed` fixes it, an attribute `seed` does not."""
    return _uniform(tuple(shape), low, high, NAMES[dtype], call.device)


@onnx_op("RandomUniformLike")
def random_uniform_like(
    x: Tensor, *, dtype: int = 0, high: float = 1.0, low: float = 0.0, seed: float | None = None
) -> Tensor:
    return _uniform(x.shape, low, high, NAMES[dtype] or x.dtype.name, x.device)


@onnx_op("RandomNormal")
def random_normal(
    *, shape: list[int], dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float | None = None, call: Call
) -> Tensor:
    return _normal(tuple(shape), mean, scale, NAMES[dtype], call.device)


@onnx_op("RandomNormalLike")
def random_normal_like(
    x: Tensor, *, dtype: int = 0, mean: float = 0.0, scale: float = 1.0, seed: float | None = None
) -> Tensor:
    return _normal(x.shape, mean, scale, NAMES[dtype] or x.dtype.name, x.device)


@onnx_op("Bernoulli", since=15)
def bernoulli(x: Tensor, *, dtype: int = 0, seed: float | None = None) -> Tensor:
    return (Tensor.rand(*x.shape, device=x.device) < x).cast(NAMES[dtype] or x.dtype.name)


@onnx_op("Multinomial", since=7)
def multinomial(x: Tensor, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Tensor:
    """By logarithms of probabilities that need not sum to one."""
    return x.softmax(-1).multinomial(sample_size, replacement=True).cast(NAMES[dtype])


@onnx_op("BlackmanWindow", since=17)
def blackman_window(size: Ints, *, output_datatype: int = 1, periodic: int = 1) -> Host:
    return _window(size, (0.42, -0.5, 0.08), output_datatype, periodic)


@onnx_op("HammingWindow", since=17)
def hamming_window(size: Ints, *, output_datatype: int = 1, periodic: int = 1) -> Host:
    return _window(size, (25 / 46, -21 / 46), output_datatype, periodic)


@onnx_op("HannWindow", since=17)
def hann_window(size: Ints, *, output_datatype: int = 1, periodic: int = 1) -> Host:
    return _window(size, (0.5, -0.5), output_datatype, periodic)


def _window(size: Ints, terms: tuple[float, ...], output_datatype: int, periodic: int) -> Host:
    """A sum of cosines over one period."""
    turn = 2 * math.pi * numpy.arange(size[0]) / max(size[0] if periodic else size[0] - 1, 1)
    total = sum(factor * numpy.cos(k * turn) for k, factor in enumerate(terms))
    return numpy.asarray(total, "float64").astype(NAMES[output_datatype])
