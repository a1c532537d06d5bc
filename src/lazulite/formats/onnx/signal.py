"""Fourier transforms, mel filters and windows, and random values."""

from __future__ import annotations

import math

import numpy

from lazulite.formats.onnx.proto import NAMES
from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.formats.onnx.values import Host, Ints
from lazulite.ir.dtype import dtypes
from lazulite.tensor.base import DeviceLike
from lazulite.tensor.fourier import as_pairs, resized, transformed
from lazulite.tensor.tensor import Tensor


def _transformed(x: Tensor, length: int, inverse: bool, onesided: bool) -> Tensor:
    """Along the axis before the last, which is real or (real, imaginary)."""
    at = len(x.shape) - 2
    pairs = x.cast(dtypes.promote(x.dtype, dtypes.float32)) if x.shape[-1] == 2 else as_pairs(x[..., 0])
    if inverse and onesided:
        pairs = _mirrored(resized(pairs, at, length // 2 + 1), length)
    y: Tensor = transformed(resized(pairs, at, length), at, inverse)
    y = (y / length if inverse else y).cast(x.dtype)
    if not onesided:
        return y
    return y[..., :1] if inverse else y[..., : length // 2 + 1, :]


def _mirrored(half: Tensor, length: int) -> Tensor:
    """The whole spectrum of a real signal: the other half is the conjugate, backwards."""
    rest = half[..., 1 : length - length // 2, :].flip(-2)
    return half.cat(rest[..., :1].cat(-rest[..., 1:], dim=-1), dim=-2)


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


def _uniform(shape: tuple[int, ...], low: float, high: float, dtype: str, device: DeviceLike) -> Tensor:
    return (Tensor.rand(*shape, device=device) * (high - low) + low).cast(dtype)


def _normal(shape: tuple[int, ...], mean: float, scale: float, dtype: str, device: DeviceLike) -> Tensor:
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
