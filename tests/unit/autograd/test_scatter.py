"""Values combined at positions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import Tensor
from lazulite.autograd.scatter import scattered
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort

NUMPY = {ops.ADD: np.add, ops.MUL: np.multiply, ops.MAX: np.maximum, ops.MIN: np.minimum}


def drawn(seed: int, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)


@given(
    st.sampled_from(list(NUMPY)), st.lists(st.integers(1, 3), max_size=2),
    st.lists(st.integers(1, 4), min_size=1, max_size=2), st.lists(st.integers(1, 3), max_size=1), st.integers(0, 99),
)  # fmt: skip
def test_each_place_combines_what_goes_there(
    op: ops.Op, own: list[int], sizes: list[int], rest: list[int], seed: int
) -> None:
    values = drawn(seed, (*own, *rest), -5, 5)
    positions = [drawn(seed + 1 + axis, tuple(own), -1, size + 1) for axis, size in enumerate(sizes)]
    assert op.identity is not None
    expected = np.full((*sizes, *rest), op.identity(dtypes.int32), np.int32)
    for place in np.ndindex(*own):
        target = tuple([int(p[place]) for p in positions])
        if all(0 <= t < size for t, size in zip(target, sizes, strict=True)):
            expected[target] = NUMPY[op](expected[target], values[place])
    found = scattered(op, Tensor(values).uop, tuple(sizes), [Tensor(p).uop for p in positions])

    assert expected.tolist() == Tensor(found).tolist()


def counted(shape: tuple[int, ...], axis: int) -> UOp:
    count = UOp(ops.IOTA, dtypes.int32, (), shape[axis])
    column = UOp(ops.RESHAPE, dtypes.int32, (count,), (shape[axis],) + (1,) * (len(shape) - axis - 1))
    return UOp(ops.EXPAND, dtypes.int32, (column,), shape)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_an_axis_that_is_counted_along_is_not_searched_but_cut_or_filled_up(size: int) -> None:
    values, places = drawn(0, (3, 4), -5, 5), drawn(1, (3, 4), 0, 6)
    expected = np.zeros((size, 6), np.int32)
    for row, column in np.ndindex(min(3, size), 4):
        expected[row, places[row, column]] += values[row, column]
    found = scattered(ops.ADD, Tensor(values).uop, (size, 6), [counted((3, 4), 0), Tensor(places).uop])
    largest = max(np.prod(node.shape) for node in toposort(found))

    assert expected.tolist() == Tensor(found).tolist()
    assert max(3 * 4 * 6, size * 6) == largest
