"""The first elements in order, against a whole sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import GlobalCounters, Tensor
from lazulite.tensor import radix, selection


@given(
    st.sampled_from([(1, 1), (2, 7), (3, 500), (1, 4001)]), st.sampled_from(["float32", "int8", "int64", "bool"]),
    st.floats(0, 1), st.booleans(), st.integers(0, 99),
)  # fmt: skip
def test_the_first_of_all_are_those_of_a_whole_sort(
    shape: tuple[int, int], dtype: str, part: float, largest: bool, seed: int
) -> None:
    """However small the chunks are that are looked through, and with many equal elements."""
    values = np.random.default_rng(seed).integers(-5, 5, shape).astype(dtype)
    x, count = Tensor(values), round(part * shape[1] / 10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "FEW", 4)
        patch.setattr(selection, "_SMALL", 4)
        patch.setattr(selection, "_SHORTEST", 2)
        chosen = x.topk(count, largest=largest)
    expected = x.sort(descending=largest)

    assert expected[0][:, :count].tolist() == chosen[0].tolist()
    assert expected[1][:, :count].tolist() == chosen[1].tolist()


@pytest.mark.parametrize("count", [1, 10, 1000])
@pytest.mark.parametrize("largest", [False, True])
def test_few_of_a_million_are_numpys(count: int, largest: bool) -> None:
    values = np.random.default_rng(0).normal(size=1_000_000).astype(np.float32).round(4)
    values[::100_000] = np.nan
    values[1::100_000] = -np.inf
    keys = np.where(np.isnan(values), np.inf, -values if largest else values)
    keys[np.isnan(values)] = -np.inf if largest else np.inf
    ties = ~np.isnan(values) if largest else np.isnan(values)
    expected = np.lexsort((keys, ties))[:count]

    found, places = Tensor(values).topk(count, largest=largest)

    assert expected.tolist() == places.tolist()
    np.testing.assert_array_equal(values[expected], found.numpy())


def test_what_is_not_wanted_is_not_sorted() -> None:
    x = Tensor(np.random.default_rng(0).normal(size=300_000).astype(np.float32)).realize()
    GlobalCounters.reset()
    Tensor.realize(*x.topk(20))
    assert GlobalCounters.global_mem < 3 * 300_000 * 4
    assert radix.FEW < 300


def test_the_rank_that_is_asked_for_is_numpys() -> None:
    values = np.random.default_rng(0).permutation(5000).astype(np.float32)
    for rank in (1, 3, 70, 2500, 5000):
        found, place = Tensor(values).kthvalue(rank)
        assert (rank - 1, int(np.argsort(values)[rank - 1])) == (found.item(), place.item())
