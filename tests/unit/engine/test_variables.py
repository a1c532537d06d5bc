"""Variables of calls: captured functions are replayed for every value of the variables they are given."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazulite import CaptureError, GlobalCounters, Tensor, Variable, jit
from lazulite.engine.storage import _layouts
from lazulite.engine.variables import Variables, with_variables

N, M = Variable("n", 1, 6), Variable("m", 0, 4)


class Counted:
    """A captured function, and how often Python ran it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        count = self._count = itertools.count()  # no survey sees it change

        def run(*args: Any) -> Any:
            next(count)
            return function(*args)

        self.call = jit(run)

    @property
    def runs(self) -> int:
        return int(repr(self._count)[6:-1])


def test_calls_that_differ_in_values_have_one_key() -> None:
    one = Variables([N.bind(3) + 1, M.bind(2), N.bind(3)])  # type: ignore[list-item]
    other = Variables([N.bind(5) + 1, M.bind(1), N.bind(5)])  # type: ignore[list-item]

    assert one.key == other.key
    assert one.key != Variables([N.bind(3) + 1, M.bind(2), N.bind(4)]).key  # type: ignore[list-item]
    shape = (2, N.bind(3) * 2, M.bind(4))
    assert with_variables(one.numbered(shape), other.leaves) == (2, N.bind(5) * 2, M.bind(4))


def replayed(function: Callable[..., Any], expected: Callable[[np.ndarray, int], Any]) -> Counted:
    """The function, captured, called with several values."""
    counted, array = Counted(function), np.arange(24, dtype=np.float32).reshape(6, 4)
    x = Tensor(array).realize()
    for k in (3, 5, 1, 6, 2, 4):
        found, wanted = counted.call(x, N.bind(k)), expected(array, k)
        assert tuple(map(int, found.shape)) == wanted.shape
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)
    return counted


def test_a_returned_size_is_the_current_one() -> None:
    """A7, B020"""
    counted = Counted(lambda t, n: t[:n] + 1)
    t = Tensor([float(i) for i in range(6)]).realize()
    for k in range(1, 6):
        found = counted.call(t, N.bind(k))
        assert (k,) == tuple(map(int, found.shape))
        assert [i + 1.0 for i in range(k)] == found.tolist()
        assert k + 1 == (found.sum() * 0 + 1 + found.shape[0]).item()
    assert 2 == counted.runs


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, n: x[:n].sum(0), lambda a, k: a[:k].sum(0)),
        (lambda x, n: (x[:n].realize() * 2).mean(0), lambda a, k: (a[:k] * 2).mean(0)),
        (lambda x, n: x[:n] @ x[:n].T, lambda a, k: a[:k] @ a[:k].T),
        (lambda x, n: x * n, lambda a, k: a * k),
        (lambda x, n: Tensor.arange(n) * 2, lambda a, k: np.arange(k) * 2),
        (lambda x, n: x[:n].reshape(n * 2, 2).flip(0), lambda a, k: a[:k].reshape(-1, 2)[::-1]),
        (lambda x, n: x[:n].T, lambda a, k: a[:k].T),
    ],
)
def test_a_call_is_replayed_whatever_the_value_is(
    function: Callable[..., Any], expected: Callable[[np.ndarray, int], Any]
) -> None:
    """A7, A24"""
    counted = replayed(function, expected)

    assert "" == counted.call.reason
    assert 2 == counted.runs


def test_a_function_that_goes_by_the_value_runs_every_time() -> None:
    """A24"""

    def function(x: Tensor, n: Any) -> Tensor:
        for _ in range(n):
            x = x + 1
        return x

    counted = replayed(function, lambda a, k: a + k)

    assert 6 == counted.runs
    assert "it goes by the value of n = 4" == counted.call.reason


def test_a_variable_in_an_object_is_one_of_the_call() -> None:
    class Reader:
        length: Any = N.bind(1)

        def __init__(self) -> None:
            self.runs, self.step = [], jit(self.read)

        def read(self, x: Tensor) -> Tensor:
            self.runs.append(1)
            return x[: self.length].sum()

    reader, x = Reader(), Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).realize()
    for k in (2, 3, 4, 6):
        reader.length = N.bind(k)
        assert k * (k + 1) / 2 == reader.step(x).item()


def test_tensors_whose_sizes_vary_are_arguments_as_others() -> None:
    counted = Counted(lambda x, y: (x * 2, (x + y).sum()))
    whole = Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).realize()
    for k in (2, 5, 1, 6):
        n = N.bind(k)
        x, y = (whole[:n] + 1).realize(), (whole[:n] * 2).realize()
        doubled, total = counted.call(x, y)
        assert [2.0 * (i + 2) for i in range(k)] == doubled.tolist()
        assert sum(3 * (i + 1) + 1 for i in range(k)) == total.item()
    assert 2 == counted.runs


def test_a_step_of_a_decoder_is_replayed() -> None:
    """A5, A7, A24"""
    cache = Tensor.zeros(8, 4).clone().realize()
    position = Variable("position", 0, 7)

    def step(x: Tensor, s: Any) -> Tensor:
        cache[s : s + 1] = x
        rows = cache[: s + 1]
        return (x @ rows.T).softmax(-1) @ rows

    counted, known = Counted(step), np.zeros((8, 4), np.float32)
    random = np.random.default_rng(0)
    for k in (0, 1, 2, 3, 7, 4):
        x = random.standard_normal((1, 4)).astype(np.float32)
        known[k] = x
        weights = np.exp(x @ known[: k + 1].T)
        found = counted.call(Tensor(x).realize(), position.bind(k))
        np.testing.assert_allclose(found.numpy(), weights / weights.sum() @ known[: k + 1], rtol=1e-4)
        np.testing.assert_array_equal(cache.numpy(), known)
    assert 2 == counted.runs


def test_replays_compile_nothing() -> None:
    counted = replayed(lambda x, n: (x[:n] * 3).sum(0), lambda a, k: (a[:k] * 3).sum(0))
    before = GlobalCounters.programs_compiled, GlobalCounters.schedules_built
    x = Tensor.ones(6, 4).realize()
    assert [[3.0 * k] * 4 for k in (2, 6)] == [counted.call(x, N.bind(k)).tolist() for k in (2, 6)]

    assert before == (GlobalCounters.programs_compiled, GlobalCounters.schedules_built)


def test_values_are_read_outside_of_a_captured_function() -> None:
    with pytest.raises(CaptureError, match="must not look at values"):
        jit(lambda x, n: x[:n].tolist())(Tensor.ones(6).realize(), N.bind(2))


def test_values_leave_nothing_behind() -> None:
    length, x = Variable("length", 1, 500), Tensor.ones(500).realize()
    step = jit(lambda x, n: (x[:n] * 2).realize().sum())
    for k in range(1, 40):
        assert 2.0 * k == step(x, length.bind(k)).item() == (x[: length.bind(k)] * 2).sum().item()
        if k == 10:
            before = GlobalCounters.live_nodes, len(_layouts), GlobalCounters.programs_compiled
    gc.collect()

    assert before[1:] == (len(_layouts), GlobalCounters.programs_compiled)
    assert before[0] >= GlobalCounters.live_nodes
