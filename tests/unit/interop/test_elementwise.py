"""The table of elementwise functions names methods, and operands meet as tensors do."""

from __future__ import annotations

import pytest

from lazulite import Tensor, dtypes
from lazulite.interop.elementwise import NUMPY, STANDARD, as_tensor, kind_of, pair


@pytest.mark.parametrize("name", sorted(STANDARD | NUMPY))
def test_every_function_is_a_method(name: str) -> None:
    assert callable(getattr(Tensor, (STANDARD | NUMPY)[name].method))


def test_numbers_take_the_type_of_the_tensor_beside_them() -> None:
    x = Tensor([1, 2], dtype="int8")
    for first, second in (pair(x, 3), pair(3, x)):
        assert dtypes.int8 is (first + second).dtype
    assert [4, 5] == (pair([3, 3], x)[0] + x).tolist()
    assert [1, 2] == as_tensor([1, 2]).tolist() and as_tensor(x) is x
    assert ["b", "i", "u", "f"] == [kind_of(t) for t in (dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.float32)]
