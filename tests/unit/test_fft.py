"""Transforms are NumPy's for every kind of size, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazulite import ArgumentError, ShapeError, Tensor, fft

random = np.random.default_rng(23)
SIZES = [1, 2, 3, 4, 5, 8, 12, 16, 30, 49, 64, 67, 97, 128, 134, 210, 1000, 1009]
"""Powers, products, primes that are a matrix, and those (67, 97, 1009) that become a convolution."""


def pairs(x: np.ndarray[Any, Any]) -> Tensor:
    return Tensor(np.stack([x.real, x.imag], -1))


def back(x: Tensor) -> np.ndarray[Any, Any]:
    parts = x.numpy()
    return parts[..., 0] + 1j * parts[..., 1]


def drawn(*shape: int) -> np.ndarray[Any, Any]:
    return random.standard_normal(shape) + 1j * random.standard_normal(shape)


def close(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    return x.shape == y.shape and bool(np.abs(x - y).max(initial=0) <= 1e-12 * max(np.abs(y).max(initial=0), 1))


@pytest.mark.parametrize("n", SIZES)
def test_every_size_is_transformed_there_and_back(n: int) -> None:
    x = drawn(2, n)

    assert close(back(fft.fft(pairs(x))), np.fft.fft(x))
    assert close(back(fft.ifft(pairs(x))), np.fft.ifft(x))


@pytest.mark.parametrize("n", [1, 2, 5, 8, 67])
def test_real_transforms_are_halves(n: int) -> None:
    x = random.standard_normal((3, n))

    assert close(back(fft.rfft(Tensor(x))), np.fft.rfft(x))
    assert close(fft.irfft(fft.rfft(Tensor(x)), n).numpy(), x)
    assert close(fft.irfft(pairs(np.fft.rfft(x)), n).numpy(), np.fft.irfft(np.fft.rfft(x), n))
    assert close(fft.hfft(pairs(np.fft.ihfft(x)), n).numpy(), np.fft.hfft(np.fft.ihfft(x), n))
    assert close(back(fft.ihfft(Tensor(x))), np.fft.ihfft(x))


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
def test_several_axes_sizes_and_norms(norm: Any) -> None:
    x, real = drawn(3, 4, 5), random.standard_normal((3, 4, 6))

    assert close(back(fft.fft(pairs(x), 7, 1, norm)), np.fft.fft(x, 7, 1, norm))
    assert close(back(fft.fft2(pairs(x), (2, 8), norm=norm)), np.fft.fft2(x, (2, 8), norm=norm))
    assert close(back(fft.ifftn(pairs(x), norm=norm)), np.fft.ifftn(x, norm=norm))
    assert close(back(fft.fftn(pairs(x), dim=(0, 2), norm=norm)), np.fft.fftn(x, axes=(0, 2), norm=norm))
    assert close(back(fft.ifft2(pairs(x), norm=norm)), np.fft.ifft2(x, norm=norm))
    assert close(back(fft.rfftn(Tensor(real), norm=norm)), np.fft.rfftn(real, norm=norm))
    assert close(back(fft.rfft2(Tensor(real), norm=norm)), np.fft.rfft2(real, norm=norm))
    half = np.fft.rfft2(real)
    assert close(fft.irfft2(pairs(half), norm=norm).numpy(), np.fft.irfft2(half, norm=norm))
    assert close(fft.irfftn(pairs(half), (4, 6), (1, 2), norm).numpy(), np.fft.irfftn(half, (4, 6), (1, 2), norm))


def test_frequencies_and_shifts_are_numpys() -> None:
    for n in (4, 5):
        x = np.arange(float(n))
        assert np.fft.fftfreq(n, 0.5) == pytest.approx(fft.fftfreq(n, 0.5).numpy())
        assert np.fft.rfftfreq(n) == pytest.approx(fft.rfftfreq(n).numpy())
        assert np.fft.fftshift(x).tolist() == fft.fftshift(Tensor(x)).tolist()
        assert np.fft.ifftshift(x).tolist() == fft.ifftshift(Tensor(x)).tolist()


def test_the_gradient_is_the_transform_of_what_reaches_it() -> None:
    x, weight = Tensor(random.standard_normal(6)), drawn(4)
    spectrum = fft.rfft(x)
    (slope,) = (spectrum * pairs(weight)).sum().gradient(x)
    expected = [sum((w * np.exp(2j * np.pi * j * k / 6)).real for k, w in enumerate(weight)) for j in range(6)]

    assert expected == pytest.approx(slope.numpy())


def test_what_holds_no_pairs_is_refused() -> None:
    with pytest.raises(ShapeError, match="real and imaginary part"):
        fft.fft(Tensor([1.0, 2.0, 3.0]))
    with pytest.raises(ArgumentError, match="'backward', 'ortho', 'forward'"):
        fft.rfft(Tensor([1.0]), norm="unit")
    with pytest.raises(ArgumentError, match="a size of 1 or more"):
        fft.rfft(Tensor([1.0]), 0)
    with pytest.raises(ArgumentError, match="do not fit"):
        fft.rfftn(Tensor([[1.0]]), (1, 1), (0, 0))
