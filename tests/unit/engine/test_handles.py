"""Handles: which of them a realize takes along, and which the engine still has to look at."""

from __future__ import annotations

import gc

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
