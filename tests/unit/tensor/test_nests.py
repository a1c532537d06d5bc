"""Statements written by hand, on the processor and by the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from lazulite import Tensor
from lazulite.ir import ops
from lazulite.ir.launches import launch
from lazulite.ir.uop import UOp
from lazulite.ir.verify import verify
from lazulite.tensor.base import expanded
from lazulite.tensor.nests import COUNT, Nests, at, filled


def summing(rows: int, lines: int, size: int) -> UOp:
    """For each count of a line the sum of all before it."""
    nests = Nests(rows)
    result, given = [UOp(ops.PARAM, COUNT, (), (slot, (rows * lines * size,), "")) for slot in (0, 1)]
    counts, i, last = nests.scratch(COUNT, lines * size), nests.turn(lines * size), nests.row * (lines * size)
    counts = filled(counts, i, at(counts, i).store(at(given, last + i)))
    sums, i = nests.added_up(counts, lines, size), nests.turn(lines * size)
    return UOp.sink(at(result, last + i).store(at(sums, i)))


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
@pytest.mark.parametrize(("rows", "lines", "size"), [(1, 1, 16), (3, 2, 48), (2, 1, 256)])
def test_counts_are_added_up_line_by_line_in_each_row(rows: int, lines: int, size: int, device: str) -> None:
    kernel = summing(rows, lines, size)
    counts = np.random.default_rng(0).integers(0, 9, (rows, lines, size)).astype(np.uint32)
    given = Tensor(counts, device=device)
    empty = expanded(UOp.const(COUNT, 0), given.shape)
    (found,) = launch(kernel, empty, given.uop, fresh=(0,))

    verify(kernel, "KERNEL")
    assert (np.cumsum(counts, -1) - counts).tolist() == given._derived(found).tolist()
