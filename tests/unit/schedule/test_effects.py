"""Hand-written stores mean what running them in their order would leave, or they are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite import Context, Tensor
from lazulite.base.errors import DTypeError, EffectError, ShapeError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.uop import UOp
from lazulite.schedule.effects import elaborate

SIZE = 6
X, Y = [UOp(ops.BUFFER, dtypes.int32, (), (number, 0, (SIZE,), "CPU")) for number in range(2)]


def part(node: UOp, begin: int, end: int) -> UOp:
    return UOp(ops.SHRINK, node.dtype, (node,), ((begin, end),))


def flipped(node: UOp) -> UOp:
    return UOp(ops.FLIP, node.dtype, (node,), (0,))


def pure(*values: UOp):
    return elaborate(values, lambda node: None, lambda effect: False)


# --- values and writes ---------------------------------------------------------------------------


def test_after_a_store_elsewhere_a_value_is_what_it_was():
    """A1."""
    found = pure(X.after(Y.store(X * 3)) + X)

    assert [X + X] == found.values
    assert {Y: X * 3} == found.writes


def test_ordered_stores_chain():
    """A1."""
    a = X.after(X.store(1))
    found = pure(a.after(a.store(2)), a)

    assert [2, 1] == [value.src[0].value for value in found.values]
    assert found.values[0] is found.writes[X]


def test_disjoint_stores_merge():
    """A1."""
    found = pure(X.after(part(X, 0, 2).store(7), part(X, 3, 6).store(8)))

    assert [[7, 7, 2, 8, 8, 8]] == evaluate_tensors(found.values, {X: list(range(SIZE))})


def test_unordered_stores_of_one_element_are_refused():
    """A1."""
    with pytest.raises(EffectError, match="nothing orders them"):
        pure(X.after(part(X, 0, 3).store(7), part(X, 2, 6).store(8)))


def test_a_read_between_two_stores_sees_the_first():
    a = X.after(part(X, 0, 1).store(7))
    found = pure(Y.after(Y.store(a)), a.after(a.store(0)))

    assert [[7, 1, 2, 3, 4, 5]] == evaluate_tensors([found.writes[Y]], {X: list(range(SIZE))})


def test_effects_executed_before_are_left_out():
    store = X.store(1)
    found = elaborate([X.after(store) + 1], lambda node: None, lambda effect: effect is store)

    assert {} == found.writes
    assert [] == found.effects


# --- refusals ------------------------------------------------------------------------------------


def cyclic() -> dict[str, list[UOp]]:
    """Graphs that no order of their stores can meet."""
    swap = X.store(Y), Y.store(X)
    return {
        "swap": [X.after(*swap)],
        "reversed": [X.after(X.store(flipped(X)))],
        "shifted": [X.after(part(X, 1, 6).store(part(X, 0, 5)))],
        "old and new": [X.after(X.store(2)) + X * 3],
        "too late": [Y.after(Y.after(X.store(2)).store(X + 1))],
    }


@pytest.mark.parametrize("name", cyclic())
def test_what_no_order_can_meet_is_a_cycle(name):
    """A1."""
    with pytest.raises(EffectError, match="cycle"):
        pure(*cyclic()[name])


def test_a_reduction_and_a_copy_of_what_was_are_there_in_time():
    total = UOp(ops.REDUCE, X.dtype, (X,), (ops.ADD, (0,)))
    copy = UOp(ops.COPY, X.dtype, (X,), "CPU")
    new = X.after(X.store(2))

    assert {X} == set(pure(part(new, 0, 1) + total, new + copy).writes)


@pytest.mark.parametrize(
    ("error", "graph"),
    [
        (EffectError, lambda: X.after((X + 1).store(2))),
        (ShapeError, lambda: X.after(X.store(part(X, 0, 2)))),
        (DTypeError, lambda: X.after(X.store(X.cast(dtypes.float32)))),
    ],
)
def test_a_store_needs_memory_and_a_value_that_fits(error, graph):
    with pytest.raises(error, match="store"):
        pure(graph())


# --- whole programs ------------------------------------------------------------------------------


def _ordered_program(draw: Any, tensors: list[Tensor], models: list[np.ndarray]) -> UOp | None:
    """Stores, each after the one before it, that never read what they write elsewhere."""
    last: UOp | None = None
    for step in range(draw(st.integers(1, 4))):
        target, source = draw(st.integers(0, 1)), draw(st.integers(0, 1))
        size = draw(st.integers(1, SIZE))
        at, begin = draw(st.integers(0, SIZE - size)), draw(st.integers(0, SIZE - size))
        if target == source and 0 < abs(at - begin) < size:
            continue
        now = [t.uop if last is None else t.uop.after(last) for t in tensors]
        last = part(now[target], at, at + size).store(part(now[source], begin, begin + size) * 2 + step)
        models[target][at : at + size] = models[source][begin : begin + size] * 2 + step
    return last


@pytest.mark.parametrize("device", ["PYTHON", "CPU"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_chain_of_stores_leaves_what_running_them_in_order_leaves(device: str, data: st.DataObject) -> None:
    """A1."""
    with Context(CACHE=0):
        models = [np.arange(SIZE, dtype=np.int32), np.arange(SIZE, dtype=np.int32) * 10]
        tensors = [Tensor(model.copy(), device=device) for model in models]
        last = _ordered_program(data.draw, tensors, models)
        if last is not None:
            Tensor(tensors[data.draw(st.integers(0, 1))].uop.after(last) + 1).realize()
        for tensor, model in zip(tensors, models, strict=True):
            np.testing.assert_array_equal(model, tensor.numpy())
