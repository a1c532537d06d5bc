"""Operators by element types against NumPy, with gradients against differences and torch."""

from __future__ import annotations

import functools
import zlib
from typing import Any

import numpy as np
import pytest

from lazulite import Tensor, dtypes
from lazulite.ir.dtype import DType
from support.operator_records import BINARY, INTEGER, UNARY, Record

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
INTS = tuple(getattr(dtypes, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64))
SIZE = 17


def samples(record: Record, dtype: DType) -> list[np.ndarray[Any, Any]]:
    """Operands that the type holds exactly, as float64."""
    random = np.random.default_rng(zlib.crc32(record.name.encode()))
    drawn = [random.uniform(record.low, record.high, SIZE) for _ in range(record.operands)]
    return [np.array([dtype.round(value) for value in each.tolist()]) for each in drawn]


def tensors(operands: list[np.ndarray[Any, Any]], dtype: DType) -> list[Tensor]:
    return [Tensor(each.tolist(), dtype=dtype) for each in operands]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda t: t.name)
@pytest.mark.parametrize("record", UNARY + BINARY, ids=lambda r: r.name)
def test_a_float_operator_is_numpys(record: Record, dtype: DType) -> None:
    operands = samples(record, dtype)
    result = record.apply(*tensors(operands, dtype))
    expected = record.meaning(*operands)

    assert result.dtype is dtype
    bound = 16 * dtype.epsilon * np.maximum(np.abs(expected), 1.0)
    assert np.all(np.abs(np.array(result.tolist()) - expected) <= bound)


@pytest.mark.parametrize("record", [r for r in UNARY + BINARY if r.smooth], ids=lambda r: r.name)
def test_the_gradient_of_an_operator_is_its_slope(record: Record) -> None:
    operands = samples(record, dtypes.float64)
    leaves = tensors(operands, dtypes.float64)
    found = record.apply(*leaves).sum().gradient(*leaves)
    for position, gradient in enumerate(found):
        moved = [[x + step * (i == position) for i, x in enumerate(operands)] for step in (1e-6, -1e-6)]
        slope = (record.meaning(*moved[0]) - record.meaning(*moved[1])) / 2e-6

        assert slope == pytest.approx(np.array(gradient.tolist()), rel=1e-4, abs=1e-4)


@pytest.mark.skipif(torch is None, reason="notimpl: torch is not installed here")
@pytest.mark.parametrize("record", [r for r in UNARY + BINARY if r.torch_name], ids=lambda r: r.name)
def test_value_and_gradient_are_torchs(record: Record) -> None:
    operands = samples(record, dtypes.float32)
    ours = tensors(operands, dtypes.float32)
    theirs = [torch.tensor(each, dtype=torch.float32, requires_grad=True) for each in operands]
    result = record.apply(*ours)
    gradients = result.sum().gradient(*ours)
    expected = functools.reduce(getattr, record.torch_name.split("."), torch)(*theirs)
    expected.sum().backward()

    assert expected.detach().numpy() == pytest.approx(result.numpy(), rel=2e-5, abs=2e-6)
    for our, their in zip(gradients, theirs, strict=True):
        assert their.grad.numpy() == pytest.approx(our.numpy(), rel=2e-5, abs=1e-5)


@pytest.mark.parametrize("dtype", INTS, ids=lambda t: t.name)
@pytest.mark.parametrize("record", INTEGER, ids=lambda r: r.name)
def test_an_integer_operator_is_numpys(record: Record, dtype: DType) -> None:
    limits = [int(dtype.min), int(dtype.max), 0, 1, 2, 3, 7, 100]
    if dtype.kind == "int":
        limits += [-1, -2, -7]
    pairs = [(x, y) for x in limits for y in limits if y != 0]
    x, y = [np.array(side, dtype=dtype.name) for side in zip(*pairs, strict=True)]
    with np.errstate(over="ignore"):
        expected = record.meaning(x, y)

    assert expected.tolist() == record.apply(Tensor(x), Tensor(y)).tolist()
