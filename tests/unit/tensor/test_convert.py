"""Casts, bits, and values without history."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import DTypeError, GradientError, ShapeError, Tensor, dtypes


@given(st.floats(width=32))
def test_a_cast_to_an_integer_saturates_in_memory_and_folded(value: float) -> None:
    """B067, B068"""
    expected = 0 if math.isnan(value) else max(min(value, 2**31 - 1), -(2**31))

    assert [int(expected)] == Tensor([value]).cast("int32").tolist() == Tensor.full((1,), value).int().tolist()


@pytest.mark.parametrize("name", ["bfloat16", "half", "float", "double", "short", "int", "long", "bool"])
def test_types_have_methods(name: str) -> None:
    assert getattr(dtypes, name) is getattr(Tensor([1.5]), name)().dtype


def test_wide_unsigned_integers_become_exact_doubles() -> None:
    """A10"""
    assert [float(2**32 + 1)] == Tensor([2**32 + 1], dtype="uint64").double().tolist()


def test_bits_are_read_anew_in_any_width() -> None:
    assert [0x3F800000] == Tensor([1.0]).bitcast("int32").tolist()
    assert [[1, 0], [2, 0]] == Tensor([[1], [2]], dtype="int16").bitcast("int8").tolist()
    assert [[0x0201]] == Tensor([[1, 2]], dtype="uint8").bitcast("uint16").tolist()


def test_bits_that_do_not_divide_raise() -> None:
    with pytest.raises(ShapeError, match="does not divide into int16"):
        Tensor([1, 2, 3], dtype="int8").bitcast("int16")
    with pytest.raises(ShapeError, match="does not divide"):
        Tensor(1.0).bitcast("int8")
    with pytest.raises(DTypeError, match="differ in width"):
        Tensor([True, False]).bitcast("int16")


def test_detached_values_pass_no_gradient() -> None:
    x = Tensor([3.0])

    assert [3.0] == (x * x.detach()).sum().gradient(x)[0].tolist()
    assert [0.0] == x.detach().sum().gradient(x)[0].tolist()
    with pytest.raises(GradientError, match="int32 has no gradient"):
        x.sum().gradient(Tensor([1]))


def test_floats_are_told_from_integers() -> None:
    assert Tensor([1.0]).is_floating_point() and not Tensor([1]).is_floating_point()


@pytest.mark.parametrize(("values", "given", "wanted"), [
    ([True, False], "bool", "uint8"), ([True, False], "bool", "int8"), ([True, False], "bool", "fp8e4m3"),
    ([0, 1, 2, 255], "uint8", "bool"), ([0, -1], "int8", "bool"), ([0.0, -0.0, 1.0], "fp8e5m2", "bool"),
])  # fmt: skip
def test_the_bits_of_a_bool_are_a_byte(values: list[float], given: str, wanted: str) -> None:
    compiled, interpreted = [Tensor(values, dtype=given, device=name).bitcast(wanted) for name in ("CPU", "PYTHON")]

    assert interpreted.tolist() == compiled.tolist()
