"""Program order is the meaning: random programs of reads, writes, views and realizes equal a model
in which every read copies and every write through a view goes to the base."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite import Context, Tensor

SHAPE = (3, 4)


@dataclass
class Pair:
    """A tensor and what it should hold; `model` of a view is a NumPy view of its base's array."""

    tensor: Tensor
    model: np.ndarray


def _views(draw: Any, pair: Pair) -> tuple[Tensor, np.ndarray]:
    kind = draw(st.sampled_from(["whole", "rows", "column", "transposed", "flipped", "strided", "flat"]))
    t, m = pair.tensor, pair.model
    if kind == "rows":
        low = draw(st.integers(0, 2))
        high = draw(st.integers(low + 1, 3))
        return t[low:high], m[low:high]
    if kind == "column":
        column = draw(st.integers(0, 3))
        return t[:, column], m[:, column]
    if kind == "transposed":
        return t.transpose(0, 1), m.T
    if kind == "flipped":
        return t.flip(1), m[:, ::-1]
    if kind == "strided":
        return t[:, ::2], m[:, ::2]
    if kind == "flat":
        return t.reshape(12), m.reshape(12)
    return t, m


def _step(draw: Any, state: list[Pair], readers: list[tuple[Tensor, np.ndarray]]) -> None:
    action = draw(st.sampled_from(["read", "write", "number", "in place", "swap", "realize", "reduce", "clone"]))
    one, two = draw(st.sampled_from(state)), draw(st.sampled_from(state))
    if action == "read":
        view, model = _views(draw, one)
        readers.append((view * 3 + 1, model * 3 + 1))
    elif action == "reduce":
        readers.append((one.tensor.sum(0), one.model.sum(0)))
    elif action == "write":
        view, model = _views(draw, one)
        source = two.model.reshape(-1)[: model.size].reshape(model.shape).copy()
        flat = two.tensor.reshape(12)[: model.size].reshape(*model.shape)
        view.assign(flat + 1)
        model[...] = source + 1
    elif action == "number":
        view, model = _views(draw, one)
        view.assign(7)
        model[...] = 7
    elif action == "in place":
        view, model = _views(draw, one)
        view += view
        model += model.copy()
    elif action == "swap":
        left, right = one.tensor[0].clone(), one.tensor[2].clone()
        one.tensor[0], one.tensor[2] = right, left
        one.model[[0, 2]] = one.model[[2, 0]]
    elif action == "clone":
        readers.append((one.tensor.clone(), one.model.copy()))
    elif draw(st.booleans()) and readers:
        draw(st.sampled_from(readers))[0].realize()
    else:
        one.tensor.realize()


@pytest.mark.parametrize("device", ["PYTHON", "CPU"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_read_sees_the_writes_before_it_and_no_other(device: str, data: st.DataObject) -> None:
    """A1, A4, B001, B002, B005, B008."""
    with Context(CACHE=0):
        start = [np.arange(12, dtype=np.int32).reshape(SHAPE) * k for k in (1, 10)]
        state = [Pair(Tensor(array, device=device), array.copy()) for array in start]
        readers: list[tuple[Tensor, np.ndarray]] = []
        for _ in range(data.draw(st.integers(1, 7))):
            _step(data.draw, state, readers)
        everything = [*readers, *[(pair.tensor, pair.model) for pair in state]]
        for tensor, model in data.draw(st.permutations(everything)):
            np.testing.assert_array_equal(model, tensor.numpy())
