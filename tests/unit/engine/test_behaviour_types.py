"""Types of results: two operands meet in `dtypes.promote`, for every pair and every way to combine them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazulite import Tensor, dtypes
from lazulite.ir.dtype import STORED, DType

COMBINING: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "maximum": lambda a, b: a.maximum(b),
    "minimum": lambda a, b: a.minimum(b),
    "where": lambda a, b: Tensor([True]).where(a, b),
    "cat": lambda a, b: a.cat(b),
}
COMPARING: dict[str, Callable[[Any, Any], Any]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
PAIRS = list(itertools.product(STORED, STORED))


def one(dtype: DType, value: int = 1) -> Tensor:
    return Tensor([value]).cast(dtype)


def test_the_printed_table_is_the_promotion_of_every_pair() -> None:
    """A9"""
    head, *rows = dtypes.promotion_table().splitlines()
    columns = head.split()
    shown = {(row.split()[0], c): cell for row in rows for c, cell in zip(columns, row.split()[1:], strict=True)}
    assert {(a.name, b.name): dtypes.promote(a, b).name for a, b in PAIRS} == shown
    assert all(shown[a, b] == shown[b, a] for a, b in shown)


@pytest.mark.parametrize("name", COMBINING)
def test_operands_meet_in_the_promoted_type(name: str) -> None:
    """A9"""
    for a, b in PAIRS:
        if name == "sub" and a is b is dtypes.bool:
            continue
        assert dtypes.promote(a, b) is COMBINING[name](one(a), one(b)).dtype, (a, b)


@pytest.mark.parametrize("name", COMPARING)
def test_comparisons_are_bool_whatever_meets(name: str) -> None:
    """A9"""
    for a, b in PAIRS:
        assert dtypes.bool is COMPARING[name](one(a), one(b)).dtype


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_mixed_sums_have_the_value_of_the_promoted_type(device: str) -> None:
    """A9: of all pairs at once, in one realize."""
    sums = [Tensor([3], device=device).cast(a) + Tensor([1], device=device).cast(b) for a, b in PAIRS]
    Tensor.realize(*sums)
    for (a, b), total in zip(PAIRS, sums, strict=True):
        right = (3 if a is not dtypes.bool else 1) + 1
        right = 1 if a is b is dtypes.bool else right
        assert [right] == total.numpy().astype(np.int64).tolist(), (a, b)


def test_true_division_of_whole_numbers_is_float() -> None:
    """A9: and stays what it is for floats."""
    for a, b in PAIRS:
        meeting = dtypes.promote(a, b)
        assert (meeting if meeting.is_float else dtypes.float32) is (one(a) / one(b)).dtype, (a, b)


def test_python_scalars_are_weak() -> None:
    """A8, O11"""
    for dtype in STORED:
        x = one(dtype)
        assert (dtypes.int32 if dtype is dtypes.bool else dtype) is (x + 1).dtype
        assert (dtype if dtype.is_float else dtypes.float32) is (x + 1.5).dtype
        assert dtype is (x * x).dtype
    with pytest.raises(OverflowError):
        one(dtypes.int8) + 128
    with pytest.raises(OverflowError):
        one(dtypes.uint8) + -1
