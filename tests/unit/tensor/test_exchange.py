"""Memory shared with other libraries."""

from __future__ import annotations

import array
import gc
from typing import Any

import numpy as np
import pytest

from lazulite import ArgumentError, DeviceError, DTypeError, Tensor, dtypes
from lazulite.tensor import exchange

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

TYPES = (
    "bool",
    *[f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)],
    "float16",
    "float32",
    "float64",
)


@pytest.mark.parametrize("name", TYPES)
def test_numpy_takes_every_type_and_gives_it_back_in_any_layout(name: str) -> None:
    x = np.arange(12).reshape(3, 4).astype(name)
    out = np.from_dlpack(Tensor(x))

    assert (name, x.tolist()) == (out.dtype.name, out.tolist())
    for part in (out, out.T, out[::2, 1:3], x[::-1]):
        back = Tensor.from_dlpack(part)
        assert (name, part.tolist()) == (back.dtype.name, back.tolist())


@pytest.mark.skipif(torch is None, reason="notimpl: torch is not installed here")
def test_torch_shares_the_memory() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    shared = torch.from_dlpack(x)
    shared[0] = 9
    x[1] = 7
    x.realize()

    assert [9.0, 7.0, 3.0] == x.tolist() == shared.tolist()
    assert [1.0, 2.5] == Tensor.from_dlpack(torch.tensor([1.0, 2.5], dtype=torch.bfloat16)).tolist()
    assert torch.bfloat16 is torch.from_dlpack(Tensor([1.0], dtype="bfloat16")).dtype


def test_what_has_no_memory_is_copied_and_scalars_and_empty_tensors_go_out() -> None:
    assert [1.0, 1.0] == np.from_dlpack(Tensor.ones(2)).tolist()
    assert 3 == np.from_dlpack(Tensor(3)).item()
    assert (0, 2) == np.from_dlpack(Tensor.zeros(0, 2)).shape
    assert [2, 4] == np.from_dlpack(Tensor([1, 2]) * 2).tolist()


def test_memory_is_held_as_long_as_somebody_uses_it() -> None:
    gc.collect()
    before = len(exchange._ALIVE)
    capsule, shown = Tensor([1, 2]).__dlpack__(), np.from_dlpack(Tensor([1, 2]) + 1)
    assert before + 2 == len(exchange._ALIVE)
    assert [2, 3] == shown.tolist()
    del capsule, shown
    gc.collect()

    assert before == len(exchange._ALIVE)


def test_a_copy_is_the_receivers_own() -> None:
    x = Tensor([1, 2])
    pointers = {_pointer(x.__dlpack__(copy=copy)) for copy in (None, None, True)}

    assert 2 == len(pointers)


@pytest.mark.parametrize("copy", [None, True])
def test_the_versioned_form_says_whether_it_is_a_copy(copy: bool | None) -> None:
    capsule = Tensor([1, 2]).__dlpack__(max_version=(1, 1), copy=copy)
    pointer = exchange._get_pointer(capsule, b"dltensor_versioned")
    managed = exchange._Versioned.from_address(pointer)

    assert (1, 0) == (managed.major, managed.minor)
    assert bool(copy) == bool(managed.flags & 2)
    assert (1, 0) == Tensor([1]).__dlpack_device__()
    before = len(exchange._ALIVE)
    del capsule
    gc.collect()
    assert before - 1 == len(exchange._ALIVE)


def test_numpy_takes_a_tensor_as_an_array() -> None:
    assert [1, 2] == np.asarray(Tensor([1, 2]), copy=True).tolist()
    assert np.float64 == np.asarray(Tensor([1, 2]), dtype=np.float64).dtype


def _pointer(capsule: Any) -> int:
    data = exchange._described(capsule).data
    assert data
    return int(data)


def test_memory_at_an_address_is_used_in_place() -> None:
    numbers = array.array("i", [1, 2, 3, 4])
    x = Tensor.from_blob(numbers.buffer_info()[0], (2, 2), dtype=dtypes.int32)
    x.assign(x * 2)
    x.realize()

    assert [[2, 4], [6, 8]] == x.tolist()
    assert [2, 4, 6, 8] == numbers.tolist()


class Elsewhere:
    """Memory on another kind of device."""

    def __dlpack__(self) -> Any:
        capsule = Tensor([1.0]).__dlpack__()
        exchange._described(capsule).device_type = 2
        return capsule


def test_what_cannot_be_shared_raises() -> None:
    with pytest.raises(DTypeError, match="has no __dlpack__"):
        Tensor.from_dlpack([1, 2])
    with pytest.raises(DeviceError, match="on a device of kind 2"):
        Tensor.from_dlpack(Elsewhere())
    with pytest.raises(BufferError, match=r"not on device \(2, 0\)"):
        Tensor([1]).__dlpack__(dl_device=(2, 0))
    with pytest.raises(DeviceError, match="no streams"):
        Tensor([1]).__dlpack__(stream=1)
    with pytest.raises(BufferError, match="forbids a copy"):
        Tensor.ones(2).__dlpack__(copy=False)
    with pytest.raises(BufferError, match="forbids that"):
        Tensor.from_dlpack(np.ones(2), copy=False)
    with pytest.raises(ValueError, match="forbids that"):
        np.asarray(Tensor([1]), copy=False)
    with pytest.raises(ArgumentError, match=r"version '2020\.12' is not here"):
        Tensor([1]).__array_namespace__(api_version="2020.12")
    with pytest.raises(DTypeError, match="no dtype here has kind 5"):
        Tensor.from_dlpack(np.array([1j]))
    with pytest.raises(DeviceError, match="cannot be shared"):
        Tensor([1], device="NULL").__dlpack_device__()
    with pytest.raises(DeviceError, match="does not use host memory"):
        Tensor.from_blob(0, (0,), device="NULL")
