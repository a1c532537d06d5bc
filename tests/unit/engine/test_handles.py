"""Handles: which of them a realize takes along, and which the engine still has to look at."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest

from lazulite import GlobalCounters, Tensor
from lazulite.engine import handles
from lazulite.engine.handles import history, live_handles, stored, tracked_values, with_company


def test_a_pending_write_goes_along_until_it_is_done() -> None:
    state, other = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()
    state.assign(state * 3)
    asked = (other + 1)._handle

    assert [asked, state._handle] == with_company([asked])
    assert [asked] == with_company([asked], state=False)
    state.realize()
    assert [asked] == with_company([asked])


def test_what_was_written_and_realized_is_not_looked_at_again() -> None:
    state = Tensor([1.0, 2.0]).realize()
    state.assign(state * 3).realize()
    (state + 1).realize()

    assert state._handle not in handles._written.all()


def test_writes_go_along_in_the_order_in_which_they_were_made() -> None:
    first, second = Tensor([1]).realize(), Tensor([2]).realize()
    asked = (Tensor([3]).realize() + 4)._handle
    second.assign(second + 5)
    first.assign(first + 5)

    assert [asked, second._handle, first._handle] == with_company([asked])


def test_wishing_for_gradients_later_is_noticed() -> None:
    x = Tensor([2.0, 3.0]).realize()
    x.requires_grad = True
    y = (x * x).realize()

    assert x.uop in tracked_values()
    assert history(y.uop) is not None
    x.requires_grad = False
    assert x.uop not in tracked_values()


def test_a_stored_value_is_known_while_somebody_holds_it() -> None:
    x = Tensor([2.0, 3.0]).realize()
    y = x * 7
    expression = y.uop
    y.realize()

    assert y.uop is stored(expression)
    del y
    gc.collect()
    assert stored(expression) is None


def test_the_dead_are_forgotten() -> None:
    held = [Tensor([1]) + 1 for _ in range(3)]
    before = len(live_handles())
    del held
    gc.collect()

    assert before - 3 >= len(live_handles())


def test_writing_again_and_again_to_what_was_zeros_does_not_pile_up() -> None:
    cache = Tensor.zeros(8, 4).contiguous().realize()
    nodes = []
    for step in range(40):
        cache[step % 8 : step % 8 + 1] = Tensor.ones(1, 4) * step
        cache[:4].sum().realize()
        gc.collect()
        nodes.append(GlobalCounters.live_nodes)
    assert nodes[-1] - nodes[7] < 32
    assert [[float(step)] * 4 for step in range(32, 40)] == cache.tolist()


def row_of(state: Tensor, x: Tensor, step: int) -> None:
    state[step % 4] = x + step


def all_of(state: Tensor, x: Tensor, step: int) -> None:
    state.assign(state * 0.5 + x)


def through_a_view(state: Tensor, x: Tensor, step: int) -> None:
    row = state[step % 4]
    row += x


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("writes", [row_of, all_of, through_a_view])
def test_what_was_never_realized_may_be_written_again_and_again(
    writes: Callable[[Tensor, Tensor, int], None], reads: bool
) -> None:
    """B013: it gets memory with whatever is realized next."""
    x = Tensor([1.0, 2.0]).realize()
    state, wanted, nodes = Tensor.ones(4, 2) * 2 - x, Tensor([[1.0, 0.0]] * 4).realize(), []
    for step in range(24):
        for each in (state, wanted):
            writes(each, x, step)
        (state[1].sum() if reads else x + 1).realize()
        wanted.realize()
        gc.collect()
        nodes.append(GlobalCounters.live_nodes)

    assert nodes[-1] <= nodes[11]
    assert wanted.tolist() == state.tolist()


def test_a_view_that_is_held_may_be_written_again_and_again() -> None:
    """B013"""
    x, state, nodes = Tensor([1.0, 2.0]).realize(), Tensor.ones(4, 2) * 0, []
    row = state[1]
    for _ in range(24):
        row += x
        state.sum().realize()
        gc.collect()
        nodes.append(GlobalCounters.live_nodes)

    assert nodes[-1] <= nodes[11]
    assert [[0.0, 0.0], [24.0, 48.0], [0.0, 0.0], [0.0, 0.0]] == state.tolist()


def test_what_gets_memory_with_something_else_keeps_its_gradient() -> None:
    """A3: nobody asked for it to be realized."""
    x, other = Tensor([1.0, 2.0, 3.0]), Tensor([1.0])
    y = x * 2
    y[0] = 5.0
    (other + 1).realize()

    assert not y._handle.pending
    assert [0.0, 2.0, 2.0] == y.sum().gradient(x)[0].tolist()
