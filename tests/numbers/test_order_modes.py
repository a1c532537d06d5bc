"""Kernels written by hand under the settings that look at, or choose, what all other kernels do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lazulite import Context, Tensor

ROWS = np.random.default_rng(0).normal(size=(6, 300)).astype(np.float32)
LONG = np.random.default_rng(1).normal(size=40_000).astype(np.float32)
PLACES = np.random.default_rng(2).integers(0, 50, 70_000).astype(np.int32)


@pytest.mark.parametrize(
    "settings",
    [{"CHECK": "bounds"}, {"CHECK": "nan"}, {"CHECK": "reference"}, {"BEAM": 2, "BEAM_SECONDS": 1},
     {"OPT": 0}, {"FUSE": 0},
     {"VERIFY": 1}, {"PLAN_MEMORY": 0}],
    ids=str,
)  # fmt: skip
def test_order_and_places_are_right_under_every_setting(settings: dict[str, Any]) -> None:
    """BEAM leaves the order of stores as it is."""
    with Context(CACHE=0, **settings):
        assert np.argsort(ROWS, -1, kind="stable").tolist() == Tensor(ROWS).argsort().tolist()
        assert np.argsort(LONG, kind="stable").tolist() == Tensor(LONG).argsort().tolist()
        assert np.argsort(-LONG, kind="stable")[:5].tolist() == Tensor(LONG).topk(5)[1].tolist()
        assert np.flatnonzero(LONG > 2).tolist() == Tensor(LONG > 2).nonzero((LONG > 2).sum().item()).flatten().tolist()
        sums = Tensor(np.zeros(50, np.float32)).scatter_add(0, Tensor(PLACES), Tensor(np.ones(70_000, np.float32)))
        assert np.bincount(PLACES).tolist() == sums.tolist()
