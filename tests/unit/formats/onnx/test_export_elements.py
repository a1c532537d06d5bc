"""Exported elementwise operations keep the meaning they have here, for the values where ONNX leaves it open too."""

from __future__ import annotations

import numpy
import pytest

from lazulite import Tensor, dtypes
from support.onnx_export import agrees, operators

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the reference implementation

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"]


def pair(kind: str) -> tuple[Tensor, Tensor]:
    """Numbers with the ends of their range among them, and divisors with 0 and -1."""
    limits = numpy.iinfo(kind)
    left = numpy.array([7, 100, limits.min, limits.max, limits.min, 0, 9, limits.max], kind)
    right = numpy.array([3, 3, 3, 0, -1 if limits.min else 5, 7, limits.max, limits.min], kind)
    return Tensor(left).realize(), Tensor(right).realize()


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_divide_down_and_nothing_faults(kind: str) -> None:
    agrees(lambda x, y: (x // y, x % y, x // 3, x % 3, x * y + x, -x), *pair(kind))


@pytest.mark.parametrize("kind", INTEGERS)
def test_bits_are_combined_and_shifted_by_any_distance(kind: str) -> None:
    x, y = pair(kind)
    distance = Tensor(numpy.array([0, 1, 2, 7, 15, 40, 63, 100], kind)).realize()
    agrees(lambda x, y, d: (x & y, x | y, x ^ y, ~x, x << d, x >> d, x << 2, x >> 1), x, y, distance)


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_are_compared_and_chosen(kind: str) -> None:
    agrees(lambda x, y: (x < y, x <= y, x.eq(y), x.ne(y), x.maximum(y), x.minimum(y), (x < y).where(x, y)), *pair(kind))


def test_quotients_by_a_constant_need_no_guards() -> None:
    assert 0 == operators(agrees(lambda x: x // 3 + x % 5, pair("int32")[0]))["Where"]


def test_bools_are_logic() -> None:
    x, y = Tensor([True, False, True, False]).realize(), Tensor([True, True, False, False]).realize()
    agrees(lambda x, y: (x & y, x | y, x ^ y, ~x, x < y, x <= y, x.eq(y), x.ne(y), x.maximum(y), x.minimum(y),
                         x.where(y, ~y), x.cast("float32"), x + y), x, y)  # fmt: skip


@pytest.mark.parametrize("kind", [*INTEGERS, "bool", "float16", "float64"])
def test_casts_of_floats_saturate_and_make_nan_zero(kind: str) -> None:
    values = [1.5, -1.5, 3e9, -3e9, 1e30, -1e30, float("nan"), 300.7, float("inf"), float("-inf"), 0.0, -0.5, 127.5]
    agrees(lambda x: x.cast(kind), Tensor(values).realize())


def test_functions_of_floats_agree() -> None:
    x = Tensor([0.3, -0.7, 1.5, -2.5, 3.0, 0.0]).realize()
    agrees(lambda x: (x.exp(), x.exp2(), x.abs().log(), x.abs().log2(), x.sin(), x.cos(), x.tan(), x.tanh(), x.erf(),
                      x.abs().sqrt(), x.abs() ** x, x / 3, 1 / x, x.sigmoid(), x.gelu()), x, within=2e-6)  # fmt: skip
    agrees(lambda x: (x.floor(), x.ceil(), x.trunc(), x.round(), x.sign(), x.relu(), x.clip(-1, 1), x.isnan()), x)


def test_maximum_and_minimum_keep_nan() -> None:
    x, y = Tensor([1.0, float("nan"), 3.0]).realize(), Tensor([float("nan"), 2.0, 1.0]).realize()
    agrees(lambda x, y: (x.maximum(y), x.minimum(y), y.maximum(0.0), x < y, x.ne(x)), x, y)


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_narrow_floats_round_after_each_operation(kind: str) -> None:
    def function(x: Tensor) -> Tensor:
        return (x.cast(kind) * 3 + 1).cast("float32")

    agrees(function, Tensor([0.1, 1.7, -300.3]).realize(), within=1e-2 if kind == "float16" else 0)


def test_bits_of_integers_are_reinterpreted() -> None:
    agrees(lambda x: (x.bitcast(dtypes.uint32), x.bitcast(dtypes.uint32).bitcast(dtypes.int32)), pair("int32")[0])


def test_operands_that_repeat_are_left_to_onnx() -> None:
    found = operators(agrees(lambda x, y: x + y, Tensor.randn(3, 4).realize(), Tensor.randn(4).realize()))

    assert {"Add": 1} == found
