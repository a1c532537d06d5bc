"""Tensors that are pickled and copied, and the same bits everywhere."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from lazulite import Context, Tensor, nn
from lazulite.ir.dtype import STORED


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("dtype", STORED, ids=lambda d: d.name)
def test_a_tensor_pickles_with_its_contents_type_and_device(dtype: Any) -> None:
    """A55"""
    x = Tensor([[0, 1, 2], [3, 4, 100]]).cast(dtype)
    y = again(x)
    assert (x.dtype, x.shape, x.device) == (y.dtype, y.shape, y.device)
    assert x.tolist() == y.tolist()


def test_lazy_views_and_other_devices_pickle_too() -> None:
    """A55: what is pickled is the value of that moment, and writing to the copy changes only the copy."""
    base = Tensor([[1.0, 2.0], [3.0, 4.0]])
    view, there = base.T[0], Tensor([1, 2], device="PYTHON")
    loaded, elsewhere = again(view), again(there)
    loaded[0] = 9
    assert ([9.0, 3.0], [1.0, 3.0], [1, 2]) == (loaded.tolist(), view.tolist(), elsewhere.tolist())
    assert "PYTHON" == elsewhere.device and [[1.0, 2.0], [3.0, 4.0]] == base.tolist()


def test_requires_grad_survives() -> None:
    """A55"""
    wishes = (True, False, None)
    assert list(wishes) == [again(Tensor([1.0], requires_grad=wish)).requires_grad for wish in wishes]


def test_a_layer_pickles() -> None:
    """A55"""
    layer = nn.Linear(3, 2)
    x = Tensor([[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(layer(x).numpy(), again(layer)(x).numpy())


def test_a_deep_copy_owns_its_memory() -> None:
    """A4"""
    x = Tensor([1, 2])
    y = copy.deepcopy(x)
    y[0] = 7
    assert ([1, 2], [7, 2]) == (x.tolist(), y.tolist())


# --- random bits -------------------------------------------------------------------------------


def _bits(device: str) -> list[bytes]:
    Tensor.manual_seed(42)
    draws = [
        Tensor.rand(5, device=device), Tensor.rand(3, 3, dtype="float64", device=device),
        Tensor.rand(4, dtype="float16", device=device), Tensor.rand(4, dtype="bfloat16", device=device),
        Tensor.randint(7, low=-5, high=2**20, device=device),
        Tensor.randint(7, low=0, high=2**40, dtype="int64", device=device),
    ]  # fmt: skip
    return [bytes(draw.data()) for draw in draws]


@pytest.mark.parametrize("setting", [{}, {"FUSE": 0}, {"OPT": 0}], ids=str)
def test_draws_have_the_same_bits_on_every_device(setting: dict[str, int]) -> None:
    """A48"""
    with Context(CACHE=0, **setting):
        assert _bits("PYTHON") == _bits("CPU")
