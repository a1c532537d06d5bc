"""Sorting, picking and placing where sizes vary, along the axis and beside it: torch's values for every binding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazulite import GlobalCounters, Tensor, Variable, jit

torch = pytest.importorskip("torch")

FULL = np.random.default_rng(0).integers(0, 9, (6, 5, 7)).astype(np.float32)
PLACES = np.random.default_rng(1).integers(0, 2, (6, 5, 7)).astype(np.int32)
Function = Callable[[Any, Any, int], Any]

IN_ORDER: dict[str, tuple[Function, Function]] = {
    "sort": (lambda x, p, a: x.sort(a), lambda x, p, a: torch.sort(x, dim=a, stable=True)),
    "descending": (
        lambda x, p, a: x.sort(a, descending=True),
        lambda x, p, a: torch.sort(x, dim=a, descending=True, stable=True),
    ),
    "argsort": (lambda x, p, a: x.argsort(a), lambda x, p, a: torch.argsort(x, dim=a, stable=True)),
    "topk": (lambda x, p, a: x.topk(2, a)[0], lambda x, p, a: torch.topk(x, 2, a)[0]),
    "kthvalue": (lambda x, p, a: x.kthvalue(2, a)[0], lambda x, p, a: torch.kthvalue(x, 2, a)[0]),
    "median": (lambda x, p, a: x.median(a)[0], lambda x, p, a: torch.median(x, a)[0]),
    "median of all": (lambda x, p, a: x.median(), lambda x, p, a: torch.median(x)),
    "nanmedian": (lambda x, p, a: x.nanmedian(a)[0], lambda x, p, a: torch.nanmedian(x, a)[0]),
    "quantile": (lambda x, p, a: x.quantile(0.25, a), lambda x, p, a: torch.quantile(x, 0.25, a)),
    "cummax": (lambda x, p, a: x.cummax(a)[0], lambda x, p, a: torch.cummax(x, a)[0]),
    "cumsum": (lambda x, p, a: x.cumsum(a), lambda x, p, a: torch.cumsum(x, a)),
    "argmax": (lambda x, p, a: x.argmax(a), lambda x, p, a: torch.argmax(x, a)),
    "searchsorted": (
        lambda x, p, a: x.sort(-1)[0].searchsorted(x),
        lambda x, p, a: torch.searchsorted(torch.sort(x, -1)[0], x),
    ),
    "gather": (lambda x, p, a: x.gather(a, p), lambda x, p, a: torch.gather(x, a, p)),
    "scatter": (lambda x, p, a: x.scatter(a, p * 0, 3.0), lambda x, p, a: x.scatter(a, p * 0, 3.0)),
    "scatter_add": (lambda x, p, a: x.scatter_add(a, p, x), lambda x, p, a: x.scatter_add(a, p, x)),
    "scatter_reduce": (
        lambda x, p, a: x.scatter_reduce(a, p, x, "amax"),
        lambda x, p, a: x.scatter_reduce(a, p, x, "amax"),
    ),
    "index_add": (
        lambda x, p, a: x.index_add(1, Tensor([1, 1]), x[:, :2]),
        lambda x, p, a: x.index_add(1, torch.tensor([1, 1]), x[:, :2]),
    ),
    "bincount": (
        lambda x, p, a: p.flatten().bincount(minlength=3),
        lambda x, p, a: torch.bincount(p.flatten(), minlength=3),
    ),
}
LOOKED_AT: dict[str, tuple[Function, Function]] = {
    "unique": (lambda x, p, a: x.unique(), lambda x, p, a: torch.unique(x)),
    "unique parts": (lambda x, p, a: p.unique(dim=a), lambda x, p, a: torch.unique(p, dim=a)),
    "unique_consecutive": (lambda x, p, a: x.unique_consecutive(), lambda x, p, a: torch.unique_consecutive(x)),
    "masked_select": (lambda x, p, a: x.masked_select(x > 3), lambda x, p, a: x.masked_select(x > 3)),
    "nonzero": (lambda x, p, a: (x > 3).nonzero(), lambda x, p, a: torch.nonzero(x > 3)),
}


def assert_same(expected: Any, found: Any) -> None:
    several = (expected, found) if isinstance(found, tuple) else ([expected], [found])
    for theirs, ours in zip(*several, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 2], ids=["along", "beside"])
@pytest.mark.parametrize("name", IN_ORDER)
def test_what_is_compiled_once_is_right_for_every_size(name: str, axis: int) -> None:
    ours, theirs = IN_ORDER[name]
    size, x, places = Variable("n", 2, 6), Tensor(FULL).realize(), Tensor(PLACES).realize()
    for count, value in enumerate((4, 2, 6)):
        before = GlobalCounters.programs_compiled + GlobalCounters.programs_from_disk
        n = size.bind(value)
        found = ours(x[:n], places[:n], axis)
        parts = [part.realize() for part in (found if isinstance(found, tuple) else (found,))]
        if count:
            assert before == GlobalCounters.programs_compiled + GlobalCounters.programs_from_disk
        expected = theirs(torch.tensor(FULL[:value]), torch.tensor(PLACES[:value], dtype=torch.int64), axis)
        assert_same(expected, tuple(parts) if isinstance(found, tuple) else parts[0])


@pytest.mark.parametrize("axis", [0, 2], ids=["along", "beside"])
@pytest.mark.parametrize("name", LOOKED_AT)
def test_what_looks_at_values_sees_those_of_the_size(name: str, axis: int) -> None:
    ours, theirs = LOOKED_AT[name]
    n = Variable("n", 2, 6).bind(4)
    found = ours(Tensor(FULL)[:n], Tensor(PLACES)[:n], axis)
    assert_same(theirs(torch.tensor(FULL[:4]), torch.tensor(PLACES[:4], dtype=torch.int64), axis), found)


def test_a_given_number_of_rows_is_filled_up_for_every_size() -> None:
    x = Tensor(FULL).realize()
    for value in (2, 5):
        part, expected = x[: Variable("n", 2, 6).bind(value)], FULL[:value]
        chosen = expected[expected > 7]
        assert [*chosen, *[9.0] * 40][:40] == part.masked_select(part > 7, size=40, fill_value=9).tolist()
        assert [*np.argwhere(expected > 7).tolist(), *[[-1] * 3] * 40][:40] == (
            (part > 7).nonzero(size=40, fill_value=-1).tolist()
        )


def test_a_captured_sort_and_its_gradient_are_right_for_every_size() -> None:
    size, x = Variable("n", 2, 6), Tensor(FULL).realize()

    @jit
    def both(part: Tensor) -> tuple[Tensor, Tensor]:
        loss = (part.sort(0)[0] * part.sort(1)[0] * 2).sum()
        return part.argsort(1).realize(), loss.gradient(part)[0].realize()

    for value in (4, 2, 6, 3):
        theirs = torch.tensor(FULL[:value], requires_grad=True)
        by_axis = [torch.sort(theirs, dim=axis, stable=True)[0] for axis in (0, 1)]
        (by_axis[0] * by_axis[1] * 2).sum().backward()
        order, gradient = both(x[: size.bind(value)])
        assert np.argsort(FULL[:value], 1, kind="stable").tolist() == order.tolist()
        np.testing.assert_allclose(gradient.numpy(), theirs.grad.numpy(), rtol=1e-6)


def test_as_many_as_there_may_not_be_are_refused() -> None:
    n = Variable("n", 2, 6).bind(4)
    with pytest.raises(ValueError, match="topk: k is from 0 to the n = 4 elements"):
        Tensor(FULL)[:n].topk(5, 0)
