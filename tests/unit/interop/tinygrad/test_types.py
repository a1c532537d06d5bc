"""Element types as tinygrad's scripts ask for them."""

from __future__ import annotations

import numpy as np
import pytest

from lazulite.interop.tinygrad import types
from lazulite.interop.tinygrad.types import dtypes
from lazulite.ir.dtype import STORED
from lazulite.ir.dtype import dtypes as own


def test_questions_about_types() -> None:
    assert set(STORED) == set(dtypes.all)
    for dtype in STORED:
        assert (dtype in dtypes.floats, dtype in dtypes.ints) == (dtypes.is_float(dtype), dtypes.is_int(dtype))
        assert (dtype in dtypes.uints, dtype is own.bool) == (dtypes.is_unsigned(dtype), dtypes.is_bool(dtype))
        assert (dtype.min, dtype.max) == (dtypes.min(dtype), dtypes.max(dtype))
    assert (8, 23) == dtypes.finfo(own.float32)
    assert (own.uint8, own.int8) == tuple(sorted(dtypes.int8s, key=lambda t: t.kind, reverse=True))
    assert [own.bool, own.int32, own.float32, own.float32] == [dtypes.from_py(x) for x in (True, 1, 1.5, [1, 2.0])]


def test_a_default_is_set_for_all() -> None:
    before = own.default_float
    dtypes.default_float = own.float16
    try:
        assert own.float16 is own.default_float is dtypes.default_float
    finally:
        own.default_float = before


def test_conversions() -> None:
    assert own.int16 is types.least_upper_dtype(own.int8, own.uint8)
    assert [own.float32, own.float16] == [types.least_upper_float(t) for t in (own.int32, own.float16)]
    assert own.float16 is types.to_dtype("half") is types.DTYPES_DICT["half"]
    assert -126 == types.truncate[own.int8](130)
    for dtype in STORED:
        if dtype is own.bfloat16 or (dtype.itemsize == 1 and dtype.is_float):
            continue
        found = types._to_np_dtype(dtype)
        assert found is not None and dtype.itemsize == np.dtype(found).itemsize
        assert dtype is types._from_np_dtype(found)
    assert types._to_np_dtype(own.bfloat16) is None
    torch = pytest.importorskip("torch")
    assert torch.bfloat16 is types._to_torch_dtype(own.bfloat16)
    assert own.bfloat16 is types._from_torch_dtype(torch.bfloat16)
    assert "Invalid" == repr(types.Invalid)
