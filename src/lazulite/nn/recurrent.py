"""Recurrent layers: plain, gated (Cho et al.) and with long memory (Hochreiter and Schmidhuber).

Weights have PyTorch's names and layout.  A sequence is (length, batch, features), with `batch_first` (batch, length,
features), or without a batch (length, features).  Every step is part of one graph; steps of one layer are equal, so
they share one kernel.
"""

from __future__ import annotations

import math
from typing import Any

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.nn import functional as F
from lazulite.nn.module import Module
from lazulite.tensor.tensor import Tensor

State = tuple[Tensor, ...]
"""(h,), or (h, c) of a memory."""


def _plain(gates: Tensor, hidden: Tensor, state: State, nonlinearity: str) -> State:
    total = gates + hidden
    return (total.tanh() if nonlinearity == "tanh" else total.relu(),)


def _gated(gates: Tensor, hidden: Tensor, state: State, _: str) -> State:
    reset, update, new = gates.chunk(3, -1)
    own_reset, own_update, own_new = hidden.chunk(3, -1)
    keep = (update + own_update).sigmoid()
    candidate = (new + (reset + own_reset).sigmoid() * own_new).tanh()
    return (candidate + keep * (state[0] - candidate),)


def _remembering(gates: Tensor, hidden: Tensor, state: State, _: str) -> State:
    take, forget, new, show = (gates + hidden).chunk(4, -1)
    memory = forget.sigmoid() * state[1] + take.sigmoid() * new.tanh()
    return show.sigmoid() * memory.tanh(), memory


class _Cell(Module):
    """One step: gates from the input and from the state."""

    gates = 1
    states = 1
    step: Any = staticmethod(_plain)

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh") -> None:
        _check_nonlinearity(type(self).__name__, nonlinearity)
        self.input_size, self.hidden_size, self.nonlinearity = input_size, hidden_size, nonlinearity
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0.0
        rows = self.gates * hidden_size
        self.weight_ih = Tensor.uniform(rows, input_size, low=-bound, high=bound)
        self.weight_hh = Tensor.uniform(rows, hidden_size, low=-bound, high=bound)
        self.bias_ih = Tensor.uniform(rows, low=-bound, high=bound) if bias else None
        self.bias_hh = Tensor.uniform(rows, low=-bound, high=bound) if bias else None

    def forward(self, x: Tensor, state: Any = None) -> Any:
        batch = x if x.ndim == 2 else x.unsqueeze(0)
        given = () if state is None else tuple(state) if isinstance(state, tuple | list) else (state,)
        zeros = Tensor.zeros(batch.shape[0], self.hidden_size, dtype=x.dtype, device=x.device)
        before = tuple([each if each.ndim == 2 else each.unsqueeze(0) for each in given]) or (zeros,) * self.states
        gates = F.linear(batch, self.weight_ih, self.bias_ih)
        after = self.step(gates, F.linear(before[0], self.weight_hh, self.bias_hh), before, self.nonlinearity)
        after = after if x.ndim == 2 else tuple([each.squeeze(0) for each in after])
        return after if self.states > 1 else after[0]


def _check_nonlinearity(name: str, nonlinearity: str) -> None:
    if nonlinearity not in ("tanh", "relu"):
        raise ArgumentError(name, f"nonlinearity is 'tanh' or 'relu', not {nonlinearity!r}")


class RNNCell(_Cell):
    """One step of `RNN`: tanh (or relu) of the input and the state, each through weights.

    >>> RNNCell(3, 4)(Tensor.ones(2, 3)).shape
    (2, 4)
    """


class GRUCell(_Cell):
    """One step of `GRU`.

    >>> GRUCell(3, 4)(Tensor.ones(2, 3)).shape
    (2, 4)
    """

    gates = 3
    step = staticmethod(_gated)


class LSTMCell(_Cell):
    """One step of `LSTM`: (h, c).

    >>> [part.shape for part in LSTMCell(3, 4)(Tensor.ones(2, 3))]
    [(2, 4), (2, 4)]
    """

    gates = 4
    states = 2
    step = staticmethod(_remembering)


class _Layers(Module):
    """Layers of cells over a sequence, in one or both directions."""

    cell: type[_Cell] = RNNCell

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, nonlinearity: str = "tanh",
    ) -> None:  # fmt: skip
        _check_nonlinearity(type(self).__name__, nonlinearity)
        self.hidden_size, self.num_layers, self.batch_first = hidden_size, num_layers, batch_first
        self.dropout, self.bidirectional, self.nonlinearity = dropout, bidirectional, nonlinearity
        bound = 1 / math.sqrt(hidden_size) if hidden_size else 0.0
        rows, ways = self.cell.gates * hidden_size, 2 if bidirectional else 1
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * ways
            for end in ("", "_reverse")[:ways]:
                parts: dict[str, tuple[int, ...]] = {"weight_ih": (rows, width), "weight_hh": (rows, hidden_size)}
                parts |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
                for name, shape in parts.items():
                    setattr(self, f"{name}_l{layer}{end}", Tensor.uniform(*shape, low=-bound, high=bound))

    def forward(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """(outputs of all steps, last states): as (layers * directions, batch, size)."""
        if x.ndim not in (2, 3):
            raise ShapeError(type(self).__name__, f"a sequence has two or three axes, got {x.shape}", about={"x": x})
        single = x.ndim == 2
        rows = x.unsqueeze(1) if single else x.transpose(0, 1) if self.batch_first else x
        states = self._begin(rows, state, single)
        last: list[State] = []
        for layer in range(self.num_layers):
            sides = [self._run(rows, f"l{layer}{end}", states[len(last) + n], bool(end))
                     for n, end in enumerate(("", "_reverse")[: 2 if self.bidirectional else 1])]  # fmt: skip
            rows = sides[0][0] if len(sides) == 1 else sides[0][0].cat(sides[1][0], dim=-1)
            last += [side[1] for side in sides]
            if layer < self.num_layers - 1:
                rows = rows.dropout(self.dropout) if self.dropout else rows
        ends = [parts[0].stack(*parts[1:]) for parts in zip(*last, strict=True)]
        ends = [end.squeeze(1) for end in ends] if single else ends
        out = rows.squeeze(1) if single else rows.transpose(0, 1) if self.batch_first else rows
        return out, tuple(ends) if self.cell.states > 1 else ends[0]

    def _begin(self, rows: Tensor, state: Any, single: bool) -> list[State]:
        """The state that each layer and direction begins with."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        if state is None:
            zeros = Tensor.zeros(rows.shape[1], self.hidden_size, dtype=rows.dtype, device=rows.device)
            return [(zeros,) * self.cell.states] * count
        given = tuple(state) if isinstance(state, tuple | list) else (state,)
        given = tuple([each.unsqueeze(1) for each in given]) if single else given
        return [tuple([each[n] for each in given]) for n in range(count)]

    def _run(self, rows: Tensor, end: str, state: State, backwards: bool) -> tuple[Tensor, State]:
        """One layer in one direction."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weight_ih, weight_hh, bias_ih, bias_hh = [vars(self).get(f"{name}_{end}") for name in names]
        if weight_ih is None or weight_hh is None:
            raise ArgumentError(type(self).__name__, f"the weights of {end} are missing")
        gates = F.linear(rows, weight_ih, bias_ih)
        outputs: list[Tensor] = []
        steps = range(rows.shape[0])
        for step in reversed(steps) if backwards else steps:
            hidden = F.linear(state[0], weight_hh, bias_hh)
            state = self.cell.step(gates[step], hidden, state, self.nonlinearity)
            outputs.append(state[0])
        if not outputs:
            return rows[..., :0].pad(((0, 0), (0, 0), (0, self.hidden_size))), state
        ordered = outputs[::-1] if backwards else outputs
        return ordered[0].stack(*ordered[1:]), state


class RNN(_Layers):
    """h' = tanh(x @ W_ih.T + b_ih + h @ W_hh.T + b_hh), or relu with `nonlinearity="relu"`.

    >>> out, last = RNN(3, 4, num_layers=2)(Tensor.ones(5, 2, 3)); out.shape, last.shape
    ((5, 2, 4), (2, 2, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, nonlinearity)


class GRU(_Layers):
    """Gated recurrent units.

    >>> out, last = GRU(3, 4, bidirectional=True, batch_first=True)(Tensor.ones(2, 5, 3)); out.shape, last.shape
    ((2, 5, 8), (2, 2, 4))
    """

    cell = GRUCell


class LSTM(_Layers):
    """Long short-term memory: (outputs, (h, c)).

    >>> out, (h, c) = LSTM(3, 4)(Tensor.ones(5, 2, 3)); out.shape, h.shape, c.shape
    ((5, 2, 4), (1, 2, 4), (1, 2, 4))
    """

    cell = LSTMCell
