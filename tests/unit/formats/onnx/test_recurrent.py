"""Recurrent layers: a step that is replayed gives, bit by bit, what one graph of all steps gives, and compiles once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lazulite import GlobalCounters, Tensor, jit
from lazulite.formats.onnx import recurrent

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
BATCH, INPUTS, HIDDEN = 2, 5, 6


def layer(kind: str, steps: int, direction: str = "forward", lengths: list[int] | None = None) -> Callable[[], Any]:
    """A layer with random weights, on a random sequence."""
    random, ways, gates = np.random.default_rng(steps), 2 if direction == "bidirectional" else 1, GATES[kind]

    def drawn(*shape: int) -> Tensor:
        return Tensor((random.normal(size=shape) * 0.3).astype(np.float32))

    x, w = drawn(steps, BATCH, INPUTS), drawn(ways, gates * HIDDEN, INPUTS)
    r, b = drawn(ways, gates * HIDDEN, HIDDEN), drawn(ways, 2 * gates * HIDDEN)
    ends = None if lengths is None else Tensor(lengths, dtype="int32")
    function = getattr(recurrent, kind)
    return lambda: function(x, w, r, b, ends, direction=direction, hidden_size=HIDDEN)


@pytest.mark.parametrize("lengths", [None, [5, 2]])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", GATES)
def test_a_replayed_step_gives_what_one_graph_gives(
    kind: str, direction: str, lengths: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = layer(kind, 5, direction, lengths)
    unrolled = [value.numpy() for value in run()]
    monkeypatch.setattr(recurrent, "_UNROLLED", 2)
    replayed = [value.numpy() for value in run()]

    assert [value.tobytes() for value in unrolled] == [value.tobytes() for value in replayed]


def test_a_long_sequence_compiles_no_more_than_a_short_one() -> None:
    def compiled(steps: int) -> int:
        before = GlobalCounters.schedules_built
        Tensor.realize(*layer("lstm", steps)())
        return GlobalCounters.schedules_built - before

    compiled(30)  # what does not depend on the number of steps

    assert compiled(40) == compiled(400)


def test_a_captured_layer_is_replayed_as_a_whole() -> None:
    run = layer("gru", 40)
    expected = run()[0].numpy()
    captured = jit(run)
    found = [captured()[0].numpy() for _ in range(4)]

    assert not captured.reason
    assert all(expected.tobytes() == each.tobytes() for each in found)


def test_a_layer_that_learns_stays_one_graph() -> None:
    """A gradient goes through every step."""
    x = Tensor(np.ones((20, 1, 3), dtype=np.float32), requires_grad=True)
    w, r = Tensor(np.full((1, 4, 3), 0.1, dtype=np.float32)), Tensor(np.full((1, 4, 4), 0.1, dtype=np.float32))
    y, _ = recurrent.rnn(x, w, r, hidden_size=4)
    y.sum().backward()
    gradient = x.grad

    assert gradient is not None and (gradient.numpy() > 0).all()
