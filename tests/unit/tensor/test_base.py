"""How operands meet: weak scalars, promotion, broadcasting, axes, devices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import AxisError, DeviceError, DTypeError, ShapeError, Tensor, dtypes
from lazulite.ir.dtype import STORED, DType
from lazulite.tensor.base import constant, match, one_axis, some_axes, weak_dtype


@pytest.mark.parametrize("dtype", STORED, ids=lambda t: t.name)
def test_python_scalars_are_weak(dtype: DType) -> None:
    """A8"""
    kept = dtypes.default_int if dtype is dtypes.bool else dtype
    widened = dtype if dtype.is_float else dtypes.default_float

    assert kept is (Tensor.ones(2, dtype=dtype) + 1).dtype
    assert widened is (Tensor.ones(2, dtype=dtype) * 1.5).dtype
    assert dtype is Tensor.ones(2, dtype=dtype).maximum(True).dtype


@pytest.mark.parametrize(("dtype", "value"), [("int8", 128), ("int8", -129), ("uint8", -1), ("uint64", 1 << 64)])
def test_an_integer_that_does_not_fit_raises(dtype: str, value: int) -> None:
    """A8"""
    with pytest.raises(OverflowError, match=f"{value} does not fit {dtype}"):
        Tensor.ones(2, dtype=dtype) + value


def test_an_integer_beyond_the_largest_float_raises() -> None:
    with pytest.raises(OverflowError, match="float16"):
        constant(dtypes.float16, 10**6)


@given(st.integers(-(1 << 40), 1 << 40))
def test_a_python_integer_makes_int32_or_int64(value: int) -> None:
    expected = dtypes.int32 if -(1 << 31) <= value < 1 << 31 else dtypes.int64

    assert expected is weak_dtype(value)
    assert expected is weak_dtype(value, dtypes.bool)
    assert dtypes.uint8 is weak_dtype(value, dtypes.uint8)


def test_numpy_scalars_and_arrays_are_operands() -> None:
    x = Tensor([1.0, 2.0])

    assert dtypes.float32 is (x + np.float64(1.5)).dtype is (x + np.float32(1.5)).dtype
    assert dtypes.int8 is (Tensor([1], dtype="int8") + np.int64(3)).dtype
    assert [2.0, 4.0] == (np.array([1.0, 2.0], np.float32) + x).tolist()
    assert [2.0, 4.0] == (x * 2).tolist() == x.add([1.0, 2.0]).tolist()


def test_operands_that_agree_are_taken_as_they_are() -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])

    assert [x.uop, y.uop] == match("add", [x, y])
    assert (x.uop, y.uop) == (x + y).uop.src


shapes = st.lists(st.integers(1, 3), max_size=3).map(tuple)


@given(shapes, shapes)
def test_shapes_broadcast_as_in_numpy(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    x, y = Tensor.ones(*left), Tensor.ones(*right)
    try:
        expected = np.broadcast_shapes(left, right)
    except ValueError:
        with pytest.raises(ShapeError, match="add: shapes do not broadcast"):
            x + y
    else:
        assert expected == (x + y).shape


def test_a_shape_error_names_function_operands_and_line() -> None:
    hidden, weight = Tensor.ones(4, 3), Tensor.ones(5, 2)
    with pytest.raises(ShapeError) as caught:
        hidden @ weight

    text = str(caught.value)
    assert text.startswith("matmul: inner sizes must be equal, got 3 and 5 in (4, 3) @ (5, 2)")
    assert "test_base.py" in text and "hidden @ weight" in text
    assert "hidden   (4, 3) float32" in text


def test_operands_on_two_devices_raise() -> None:
    with pytest.raises(DeviceError, match="CPU and PYTHON"):
        Tensor([1.0], device="CPU") + Tensor([1.0], device="PYTHON")


def test_axes_count_from_both_ends() -> None:
    assert 2 == one_axis("f", -1, 3)
    assert (0, 2) == some_axes("f", (-1, 0), 3)
    assert (0, 1) == some_axes("f", None, 2)
    with pytest.raises(AxisError, match="axis 3 is outside a shape of rank 3"):
        one_axis("f", 3, 3)
    with pytest.raises(AxisError, match="named twice"):
        some_axes("f", (0, -3), 3)
    with pytest.raises(AxisError, match="an axis is an integer"):
        Tensor.ones(2).sum(axis=1.5)  # type: ignore[arg-type]


def test_a_type_is_given_by_name_or_as_itself() -> None:
    assert dtypes.int8 is Tensor([1]).cast("int8").dtype is Tensor([1]).cast(dtypes.char).dtype
    with pytest.raises(DTypeError, match="'int7' is no dtype"):
        Tensor([1]).cast("int7")


@pytest.mark.parametrize("name", ["void", "index"])
def test_the_compilers_own_types_are_no_types_of_elements(name: str) -> None:
    with pytest.raises(DTypeError, match=f"no elements of {name}"):
        Tensor([1]).cast(name)
    with pytest.raises(DTypeError, match=f"no elements of {name}"):
        Tensor([1], dtype=name)


def test_a_shape_consists_of_integers() -> None:
    with pytest.raises(ShapeError, match="a shape consists of integers"):
        Tensor.zeros(2.5)
