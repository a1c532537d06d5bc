"""LLVM spellings of types and constants."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.emit.llvm_types import conversion, float_literal, literal, vector_literal
from lazulite.ir.dtype import dtypes


@given(st.floats(width=32))
def test_a_float32_is_written_as_the_double_with_its_value(value):
    bits = int(literal(dtypes.float32, value), 16)
    back = struct.unpack("<d", bits.to_bytes(8, "little"))[0]

    assert back == value or (math.isnan(back) and math.isnan(value))


def test_the_bits_of_a_nan_are_kept():
    assert f"0x{0x7FF8000000000000 | 1 << 29:016X}" == float_literal(dtypes.float32, 0x7FC00001)


def test_equal_lanes_are_a_splat():
    assert "splat (float 1.0)" == vector_literal("float", ["1.0", "1.0"])


@pytest.mark.parametrize(
    ("source", "result", "expected"),
    [
        (dtypes.float32, dtypes.int8, "@llvm.fptosi.sat"),
        (dtypes.float32, dtypes.uint8, "@llvm.fptoui.sat"),
        (dtypes.uint8, dtypes.int64, "zext"),
        (dtypes.index, dtypes.float32, "sitofp"),
        (dtypes.int64, dtypes.int8, "trunc"),
        (dtypes.int32, dtypes.uint32, ""),
        (dtypes.float64, dtypes.bool, "nonzero"),
    ],
)
def test_conversions(source, result, expected):
    assert expected == conversion(source, result)
