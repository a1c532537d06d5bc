"""Memory of sorting, picking and placing: in proportion to the elements, whatever the positions are."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazulite import GlobalCounters, Tensor
from lazulite.runtime.allocator import Allocator

SIZE = 1_000_000


@pytest.fixture(scope="module")
def values() -> dict[str, Tensor]:
    numbers = np.random.default_rng(0)
    x = numbers.standard_normal(SIZE).astype(np.float32)
    places = numbers.integers(0, SIZE, SIZE).astype(np.int32)
    found = {"x": Tensor(x), "mask": Tensor(x > 0), "places": Tensor(places), "few": Tensor(places % 100)}
    found |= {"zeros": Tensor(np.zeros(SIZE, np.float32)), "hundred": Tensor(np.zeros(100, np.float32))}
    Tensor.realize(*found.values())
    return found


def peak(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> int:
    """How many bytes were in use at once, results included, beside those that were before."""
    most, allocate = [0], Allocator.allocate

    def noted(self: Allocator, *args: Any, **named: Any) -> Any:
        handle = allocate(self, *args, **named)
        most[0] = max(most[0], self.in_use)
        return handle

    gc.collect()
    before = GlobalCounters.mem_used
    with monkeypatch.context() as patch:
        patch.setattr(Allocator, "allocate", noted)
        run()
    return most[0] - before


CALLS: dict[str, tuple[float, Callable[[dict[str, Tensor]], Any]]] = {
    "sort": (6.5, lambda v: Tensor.realize(*v["x"].sort())),
    "sort rows": (4.5, lambda v: Tensor.realize(*v["x"].reshape(1000, 1000).sort())),
    "argsort": (5.5, lambda v: v["x"].argsort().realize()),
    "topk of few": (0.1, lambda v: Tensor.realize(*v["x"].topk(10))),
    "topk of many": (6.5, lambda v: Tensor.realize(*v["x"].topk(SIZE // 2))),
    "median": (5.5, lambda v: v["x"].median().realize()),
    "unique": (6.5, lambda v: v["x"].unique().realize()),
    "masked_select": (2.5, lambda v: v["x"].masked_select(v["mask"]).realize()),
    "masked_select of a size": (4.5, lambda v: v["x"].masked_select(v["mask"], size=SIZE).realize()),
    "nonzero": (2.5, lambda v: v["mask"].nonzero().realize()),
    "scatter_add": (4.5, lambda v: v["zeros"].scatter_add(0, v["places"], v["x"]).realize()),
    "scatter_add to few": (3.5, lambda v: v["hundred"].scatter_add(0, v["few"], v["x"]).realize()),
    "gather": (1.5, lambda v: v["x"].gather(0, v["places"]).realize()),
    "cumsum": (2.5, lambda v: v["x"].cumsum(0).realize()),
    "searchsorted": (1.5, lambda v: v["x"].searchsorted(v["x"]).realize()),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_million_elements_take_a_small_multiple_of_their_own_memory(
    name: str, values: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """float32 elements; the results, one or two of their size, count as well."""
    multiple, run = CALLS[name]
    assert peak(monkeypatch, lambda: run(values)) <= multiple * 4 * SIZE
