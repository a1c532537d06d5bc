"""Reductions and products by element types against exact sums, within the promised bound."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from lazulite import Tensor, dtypes
from lazulite.ir.dtype import DType

FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
SIZES = (1, 2, 7, 64, 1000)


def samples(dtype: DType, *shape: int) -> list[float]:
    """Numbers of mixed sign and size that the type holds."""
    random = np.random.default_rng(math.prod(shape))
    return [float(dtype.round(x)) for x in (random.standard_normal(math.prod(shape)) * 3 + 0.5).tolist()]


def bound(dtype: DType, magnitudes: list[float]) -> float:
    """2 eps (log2 n + 1) sum|x| in the type of the accumulator, and one rounding to the type."""
    wide = dtypes.promote(dtype, dtypes.float32)
    total = math.fsum(magnitudes)
    return 2 * wide.epsilon * (math.log2(len(magnitudes)) + 1) * total + dtype.epsilon * total


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.name)
@pytest.mark.parametrize("size", SIZES)
def test_sums_and_means_stay_within_their_bound(dtype: DType, size: int) -> None:
    x = samples(dtype, size)
    tensor, exact = Tensor(x, dtype=dtype), math.fsum(x)

    assert exact == pytest.approx(tensor.sum().item(), rel=0, abs=bound(dtype, [abs(v) for v in x]))
    assert exact / size == pytest.approx(tensor.mean().item(), rel=0, abs=bound(dtype, [abs(v) / size for v in x]))
    assert dtype is tensor.sum().dtype is tensor.mean().dtype is tensor.var().dtype


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.name)
@pytest.mark.parametrize("size", SIZES[1:])
def test_variances_are_nearly_exact(dtype: DType, size: int) -> None:
    x = [Fraction(v) for v in samples(dtype, size)]
    mean = sum(x) / size
    exact = float(sum((v - mean) ** 2 for v in x) / (size - 1))

    assert exact == pytest.approx(Tensor([float(v) for v in x], dtype=dtype).var().item(), rel=4 * dtype.epsilon + 1e-6)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.name)
def test_extrema_are_exact(dtype: DType) -> None:
    x = samples(dtype, 777)
    tensor = Tensor(x, dtype=dtype)

    assert (max(x), min(x)) == (tensor.max().item(), tensor.min().item())
    assert (x.index(max(x)), x.index(min(x))) == (tensor.argmax().item(), tensor.argmin().item())


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.name)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (17, 64, 33)], ids=str)
def test_matrix_products_stay_within_their_bound(dtype: DType, shape: tuple[int, int, int]) -> None:
    n, k, m = shape
    x, y = np.array(samples(dtype, n, k)).reshape(n, k), np.array(samples(dtype, k, m)).reshape(k, m)
    result = Tensor(x.tolist(), dtype=dtype) @ Tensor(y.tolist(), dtype=dtype)
    limits = [[bound(dtype, list(abs(row * column))) for column in y.T] for row in x]

    assert dtype is result.dtype
    assert np.all(abs(np.array(result.tolist()) - x @ y) <= np.array(limits))


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_reduce_exactly(name: str) -> None:
    limits = np.iinfo(name)
    array = np.array([limits.max, limits.min, 3, limits.max // 2, 1, 0], name)
    tensor = Tensor(array)
    narrow = tensor.sum().dtype
    total, product = sum(array.tolist()), math.prod(array.tolist()[2:5])

    assert narrow.bits == max(32, limits.bits)
    assert narrow.round(total) == tensor.sum().item()
    assert narrow.round(product) == tensor[2:5].prod().item()
    assert (limits.max, limits.min) == (tensor.max().item(), tensor.min().item())
    assert 0 == tensor.argmax().item()
