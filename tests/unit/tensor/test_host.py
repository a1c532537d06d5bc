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
from lazulite.ir import ops
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


@given(st.sampled_from(NUMPY_TYPES), st.sampled_from(STORED), st.data())
def test_an_array_is_converted_as_a_cast_does(dtype: DType, wanted: DType, data: st.DataObject) -> None:
    values = data.draw(arrays.arrays(dtype.name, arrays.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)))
    converted = Tensor(values, dtype=wanted)

    assert wanted is converted.dtype and converted.uop.op is ops.BUFFER
    assert converted.bitcast(_bits(wanted)).tolist() == Tensor(values).cast(wanted).bitcast(_bits(wanted)).tolist()


def _bits(dtype: DType) -> DType:
    return {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}[dtype.itemsize]


def test_arrays_of_the_other_byte_order_hold_the_same_numbers() -> None:
    assert [0, 1, 258] == Tensor(np.array([0, 1, 258], dtype=">i4")).tolist()
    assert [1.5, -2.0] == Tensor(np.array([-2.0, 1.5], dtype=">f4")[::-1], dtype="float16").tolist()


def test_tensors_of_other_libraries_come_in() -> None:
    torch = pytest.importorskip("torch")

    assert [[1.0, 3.0], [2.0, 4.0]] == Tensor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).T).tolist()
    assert dtypes.bfloat16 is Tensor(torch.ones(2, dtype=torch.bfloat16)).dtype
    assert "PYTHON" == Tensor(torch.arange(3), device="PYTHON", dtype="float32").device


def test_integers_of_a_list_have_to_fit() -> None:
    assert [255, 0] == Tensor([255, 0], dtype="uint8").tolist()
    for wrong in ([0, 256], [-1, 0], [0.5, 300]):
        with pytest.raises(OverflowError, match="does not fit uint8"):
            Tensor(wrong, dtype="uint8")


def test_one_element_prints_in_the_format_of_a_number() -> None:
    assert "2.50|   3" == f"{Tensor(2.5):.2f}|{Tensor([3]):>4}"
    assert str(Tensor([1, 2])) == f"{Tensor([1, 2])}"
    with pytest.raises(ShapeError, match="format: a tensor of one element"):
        f"{Tensor([1.0, 2.0]):.2f}"


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
