"""Values in from the host and out to it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from lazulite import DTypeError, ShapeError, Tensor, dtypes
from lazulite.ir.dtype import EIGHT_BITS, STORED, DType

NUMPY_TYPES = [t for t in STORED if t is not dtypes.bfloat16 and t not in EIGHT_BITS]


@given(st.sampled_from(NUMPY_TYPES), st.data())
def test_an_array_comes_back_bit_by_bit(dtype: DType, data: st.DataObject) -> None:
    values = data.draw(arrays.arrays(dtype.name, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
    back = Tensor(values).numpy()

    assert (values.dtype, values.shape, values.tobytes()) == (back.dtype, back.shape, back.tobytes())


@given(arrays.arrays("int32", arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)))
def test_lists_come_back_with_their_nesting(values: Any) -> None:
    assert values.tolist() == Tensor(values.tolist(), dtype="int32").reshape(values.shape).tolist()


def test_what_comes_in_is_copied_at_once() -> None:
    values = np.zeros(3, np.float32)
    tensor = Tensor(values)
    values[0] = 7

    assert [0.0, 0.0, 0.0] == tensor.tolist()


@pytest.mark.parametrize(("data", "dtype"), [
    ([True, False], dtypes.bool), ([1, 2], dtypes.int32), ([1, 1 << 40], dtypes.int64), ([1, 2.5], dtypes.float32),
    ([], dtypes.float32), (b"ab", dtypes.uint8), (np.float16([1]), dtypes.float16), ([np.int64(1), 2], dtypes.int32),
])  # fmt: skip
def test_the_type_follows_from_the_data(data: Any, dtype: DType) -> None:
    assert dtype is Tensor(data).dtype


@pytest.mark.parametrize(("data", "error", "message"), [
    (object(), DTypeError, "cannot make a tensor of object"),
    ("abc", DTypeError, "cannot make a tensor of str"),
    (None, DTypeError, "cannot make a tensor of NoneType"),
    ([1, "a"], DTypeError, "elements must be numbers, got str"),
    ([np.float32(1), "a"], DTypeError, "elements must be numbers, got str"),
    ([np.array([1, 2])], DTypeError, "elements must be numbers, got ndarray"),
    ([[1], [1, 2]], ShapeError, "equal lengths, expected 1"),
    ([1, [2]], ShapeError, "equal depths"),
    (np.array([1j]), DTypeError, "an array of complex128 has no dtype"),
], ids=range(9))  # fmt: skip
def test_what_makes_no_tensor_is_refused(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Tensor(data)


@pytest.mark.parametrize("shape", [(2,), (0,), (1, 3)])
def test_only_one_element_is_an_item(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="item: a tensor of one element"):
        Tensor.zeros(*shape).item()


@pytest.mark.parametrize("dtype", STORED, ids=lambda t: t.name)
def test_a_tensor_pickles_with_contents_type_and_device(dtype: DType) -> None:
    """A55"""
    tensor = Tensor([[0, 1], [1, 0]], dtype=dtype, device="PYTHON")
    back = pickle.loads(pickle.dumps(tensor))

    assert (tensor.tolist(), dtype, "PYTHON") == (back.tolist(), back.dtype, back.device)
