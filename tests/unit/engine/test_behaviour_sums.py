"""Sums of floats stay within 2 eps (log2 n + 1) sum|x| of the true sum, whatever lies beside what in memory.

Equal summands are the hard case: in a plain loop every rounding then errs to the same side.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lazulite import Context, Tensor

LAYOUTS = {
    "all": ((-1,), None),
    "rows": ((3, -1), 1),
    "columns": ((-1, 3), 0),
    "many columns": ((-1, 40), 0),
    "middle": ((2, -1, 3), 1),
}


def _bound(count: int, kind: Any, absolute: float) -> float:
    return float(2 * np.finfo(kind).eps * (math.log2(count) + 1) * absolute)


@pytest.mark.parametrize("opt", [1, 0])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [np.float32, np.float64], ids=["float32", "float64"])
def test_sums_of_equal_summands_keep_the_bound(kind: Any, layout: str, opt: int) -> None:
    shape, axis = LAYOUTS[layout]
    others = -math.prod(shape)
    for count in (31, 1000, 4096, 60000):
        array = np.full(count * others, 4.7123456789, kind)
        with Context(CACHE=0, OPT=opt):
            total = Tensor(array.reshape(shape)).sum(axis).numpy().reshape(-1)
        right = math.fsum(array[:count].tolist())
        assert np.abs(total.astype(float) - right).max() <= _bound(count, kind, right), f"{count} summands"


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_sums_of_narrow_floats_round_once(name: str) -> None:
    """B076: the sum is the nearest narrow number of a sum in float32."""
    numbers = np.random.default_rng(3).normal(0, 1, (500, 9)).astype(np.float32)
    x = Tensor(numbers).cast(name)
    exact = x.cast("float64").numpy()
    for axis in (0, 1):
        total = x.sum(axis)
        right = Tensor(exact.sum(axis).astype(np.float32)).cast(name).cast("float64").numpy()
        step = 2.0 ** (-10 if name == "float16" else -7)
        close = np.abs(total.cast("float64").numpy() - right)
        assert (close <= step * np.abs(right)).all() and np.mean(close == 0) > 0.98


def test_a_sum_does_not_depend_on_the_number_of_threads() -> None:
    x = Tensor(np.random.default_rng(4).normal(0, 1, (300, 1001)).astype(np.float32))
    totals = []
    for threads in (1, 2, 3):
        with Context(CACHE=0, THREADS=threads):
            totals.append([x.sum().item(), x.sum(0).tolist(), x.sum(1).tolist(), x.mean().item()])
    assert totals[0] == totals[1] == totals[2]
