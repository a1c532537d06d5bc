"""Marks can always be hashed and compared, and tell apart what is not the same."""

from __future__ import annotations

import math
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lazulite.engine.marks import Itself, is_number, mark, number_mark


class Color(Enum):
    RED = {"r": 1}


class Refusing:
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")


VALUES: list[Any] = [
    0, 1, True, 0.0, -0.0, 1.0, math.nan, np.float32(1), 1j, Fraction(1), Decimal(1), "a", b"a", None, ..., (1, 2),
    (1, 2.0), (True, 2), range(3), [1], {}, np.zeros(2), Color.RED, Refusing(), int, len, ({},),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_mark_equals_that_of_the_same_value_and_no_other(value: Any) -> None:
    assert [value is other for other in VALUES] == [mark(value) == mark(other) for other in VALUES]
    assert hash(mark(value)) == hash(mark(value))


def test_numbers_are_equal_where_their_bits_are() -> None:
    assert number_mark(float("nan")) == number_mark(float("nan"))
    assert mark(2.5) == mark(float("2.5"))
    assert number_mark(0.0) != number_mark(-0.0)


def test_a_number_with_attributes_is_an_object() -> None:
    class Counted(int):
        pass

    assert [True, True, False, False] == [is_number(n) for n in (1, np.int8(1), True, Counted(1))]


def test_an_object_is_named_by_its_type() -> None:
    assert ("a Refusing", "len") == (repr(Itself(Refusing())), repr(Itself(len)))
