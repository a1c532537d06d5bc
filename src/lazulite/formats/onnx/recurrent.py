"""Recurrent layers: RNN, GRU and LSTM, in one or both directions.

Shapes are (steps, batch, ..); with `layout` 1 the batch stands first.  The product with the input is one for
all steps; what depends on the step before follows one after another: in one graph where there are few steps, else
as one step that is compiled once and then replayed, so that a long sequence compiles as fast as a short one.  A
sequence shorter than the others keeps its last state, gives zeros behind it, and is reversed within its own length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from lazulite.base.errors import FormatError
from lazulite.formats.onnx.registry import onnx_op
from lazulite.formats.onnx.shapes import reverse_sequence
from lazulite.ir.size import Variable
from lazulite.tensor.jit import jit
from lazulite.tensor.tensor import Tensor

Activation = Callable[[Tensor], Tensor]
_UNROLLED = 16
"""The most steps that become one graph."""

_PLAIN: dict[str, Activation] = {
    "relu": Tensor.relu, "tanh": Tensor.tanh, "sigmoid": Tensor.sigmoid, "softsign": Tensor.softsign,
    "softplus": Tensor.softplus,
}  # fmt: skip
_WITH_NUMBERS: dict[str, tuple[float, float, Callable[[Tensor, float, float], Tensor]]] = {
    "affine": (1.0, 0.0, lambda x, a, b: x * a + b),
    "leakyrelu": (0.01, 0.0, lambda x, a, b: (x < 0).where(x * a, x)),
    "thresholdedrelu": (1.0, 0.0, lambda x, a, b: (x > a).where(x, 0)),
    "scaledtanh": (1.0, 1.0, lambda x, a, b: (x * b).tanh() * a),
    "hardsigmoid": (0.2, 0.5, lambda x, a, b: (x * a + b).clip(0, 1)),
    "elu": (1.0, 0.0, lambda x, a, b: x.elu(a)),
}
"""Activations with their default alpha and beta."""


class _Layer(NamedTuple):
    """The weights of one direction."""

    w: Tensor
    r: Tensor
    wb: Tensor | None
    rb: Tensor | None
    p: Tensor | None
    functions: list[Activation]

    def part(self, t: Tensor, gate: int, count: int = 1) -> Tensor:
        """The rows of some gates."""
        hidden = self.r.shape[1]
        return t[gate * hidden : (gate + count) * hidden]


State = tuple[Tensor, ...]
Cell = Callable[[_Layer, Tensor, State], State]


def _functions(
    names: Sequence[str], alphas: Sequence[float] | None, betas: Sequence[float] | None, clip: float | None
) -> list[Activation]:
    """The activations in order; the numbers are given to those that take them, in their order."""
    first, second = iter(alphas or ()), iter(betas or ())

    def made(name: str) -> Activation:
        key = name.lower()
        if key in _PLAIN:
            function = _PLAIN[key]
        elif key in _WITH_NUMBERS:
            alpha, beta, body = _WITH_NUMBERS[key]
            a, b = next(first, alpha), next(second, beta)
            function = lambda x: body(x, a, b)
        else:
            raise FormatError("OnnxRunner", f"the activation {name!r} is not known")
        return function if clip is None else lambda x: function(x.clip(-clip, clip))

    return [made(name) for name in names]


class _Recurrence(NamedTuple):
    """What the three operators have in common."""

    gates: int
    cell: Cell
    activations: tuple[str, ...]
    states: int
    """How many values a step hands to the next."""

    def run(
        self, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lengths: Tensor | None,
        states: Sequence[Tensor | None], p: Tensor | None, direction: str, names: Sequence[str] | None,
        alphas: Sequence[float] | None, betas: Sequence[float] | None, clip: float | None, layout: int,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        count = 2 if direction == "bidirectional" else 1
        steps = x.transpose(0, 1) if layout else x
        functions = _functions(names or self.activations * count, alphas, betas, clip)
        each = len(functions) // count
        hidden = r.shape[2]
        outputs, ends = [], []
        for n in range(count):
            backward = n == 1 or direction == "reverse"
            half = self.gates * hidden
            layer = _Layer(
                w[n], r[n], None if b is None else b[n, :half], None if b is None else b[n, half:],
                None if p is None else p[n], functions[n * each : (n + 1) * each],
            )  # fmt: skip
            nothing = Tensor.zeros(steps.shape[1], hidden, dtype=x.dtype, device=x.device)
            given = [nothing if s is None else (s.transpose(0, 1) if layout else s)[n] for s in states]
            ordered = _reversed(steps, lengths) if backward else steps
            made, last = self._direction(layer, ordered, tuple(given), lengths)
            outputs.append(_reversed(made, lengths) if backward else made)
            ends.append(last)
        y = outputs[0].stack(*outputs[1:], dim=1)
        finals = [ends[0][k].stack(*[end[k] for end in ends[1:]], dim=0) for k in range(self.states)]
        if layout:
            return y.permute((2, 0, 1, 3)), *[final.transpose(0, 1) for final in finals]
        return y, *finals

    def _direction(self, layer: _Layer, x: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
        projected = x @ layer.w.transpose(0, 1)
        projected = projected if layer.wb is None else projected + layer.wb
        learns = any(t is not None and t.requires_grad for t in (x, *state, *layer[:5]))
        if x.shape[0] > _UNROLLED and not learns:
            return self._replayed(layer, projected, state, lengths)
        made = []
        for step in range(x.shape[0]):
            out, state = self._step(layer, projected[step], state, None if lengths is None else lengths > step)
            made.append(out)
        return made[0].stack(*made[1:], dim=0), state

    def _replayed(self, layer: _Layer, projected: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
        """All steps, computed at once by replays of one."""
        count, place = projected.shape[0], Variable("step", 0, projected.shape[0] - 1)
        made = Tensor.zeros(count, *state[0].shape, dtype=projected.dtype, device=projected.device).contiguous()
        made.realize(projected, *state, *[t for t in layer[:5] if t is not None])

        @jit
        def advanced(state: State, step: int) -> State:
            alive = None if lengths is None else lengths > step
            made[step], state = self._step(layer, projected[step], state, alive)
            made.realize(*state)  # also where the step is a part of something that is captured
            return state

        for step in range(count):
            state = advanced(state, place.bind(step))
        return made, state

    def _step(self, layer: _Layer, x: Tensor, state: State, alive: Tensor | None) -> tuple[Tensor, State]:
        """What one step gives, and the state behind it; sequences that are not alive keep theirs."""
        fresh = self.cell(layer, x, state)
        if alive is None:
            return fresh[0], fresh
        kept = alive.unsqueeze(1)
        return kept.where(fresh[0], 0), tuple([kept.where(new, old) for new, old in zip(fresh, state, strict=True)])


def _reversed(x: Tensor, lengths: Tensor | None) -> Tensor:
    return x.flip(0) if lengths is None else reverse_sequence(x, lengths)


def _recurrent(layer: _Layer, h: Tensor, gate: int, count: int = 1) -> Tensor:
    """The product of the state with the weights of some gates."""
    product = h @ layer.part(layer.r, gate, count).transpose(0, 1)
    return product if layer.rb is None else product + layer.part(layer.rb, gate, count)


def _split(x: Tensor, count: int) -> tuple[Tensor, ...]:
    return tuple(x.chunk(count, dim=-1))


def _rnn_cell(layer: _Layer, x: Tensor, state: State) -> State:
    return (layer.functions[0](x + _recurrent(layer, state[0], 0)),)


def _gru_cell(reset_after: bool) -> Cell:
    """With `reset_after` the reset gate applies to the product, otherwise to the state before it."""

    def cell(layer: _Layer, x: Tensor, state: State) -> State:
        (h,), (f, g) = state, layer.functions
        xz, xr, xh = _split(x, 3)
        rz, rr = _split(_recurrent(layer, h, 0, 2), 2)
        update, reset = f(xz + rz), f(xr + rr)
        if reset_after:
            candidate = g(xh + reset * _recurrent(layer, h, 2))
        else:
            candidate = g(xh + _recurrent(layer, reset * h, 2))
        return ((1 - update) * candidate + update * h,)

    return cell


def _lstm_cell(input_forget: bool) -> Cell:
    """With `input_forget` what comes in is what is forgotten."""

    def cell(layer: _Layer, x: Tensor, state: State) -> State:
        (h, c), (f, g, final) = state, layer.functions
        i, o, keep, candidate = _split(x + _recurrent(layer, h, 0, 4), 4)
        if layer.p is not None:
            i, keep = i + layer.part(layer.p, 0) * c, keep + layer.part(layer.p, 2) * c
        enter = f(i)
        forget = 1 - enter if input_forget else f(keep)
        cell_state = forget * c + enter * g(candidate)
        o = o if layer.p is None else o + layer.part(layer.p, 1) * cell_state
        return f(o) * final(cell_state), cell_state

    return cell


@onnx_op("RNN")
def rnn(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None, *, activations: list[str] | None = None,
    activation_alpha: list[float] | None = None, activation_beta: list[float] | None = None,
    clip: float | None = None, direction: str = "forward", hidden_size: int = 0, layout: int = 0,
    output_sequence: int = 0,
) -> Any:  # fmt: skip
    kind = _Recurrence(1, _rnn_cell, ("Tanh",), 1)
    return kind.run(
        x, w, r, b, sequence_lens, [initial_h], None, direction, activations, activation_alpha, activation_beta, clip,
        layout,
    )  # fmt: skip


@onnx_op("GRU")
def gru(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None, *, activations: list[str] | None = None,
    activation_alpha: list[float] | None = None, activation_beta: list[float] | None = None,
    clip: float | None = None, direction: str = "forward", hidden_size: int = 0, layout: int = 0,
    linear_before_reset: int = 0, output_sequence: int = 0,
) -> Any:  # fmt: skip
    kind = _Recurrence(3, _gru_cell(bool(linear_before_reset)), ("Sigmoid", "Tanh"), 1)
    return kind.run(
        x, w, r, b, sequence_lens, [initial_h], None, direction, activations, activation_alpha, activation_beta, clip,
        layout,
    )  # fmt: skip


@onnx_op("LSTM")
def lstm(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, sequence_lens: Tensor | None = None,
    initial_h: Tensor | None = None, initial_c: Tensor | None = None, p: Tensor | None = None, *,
    activations: list[str] | None = None, activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None, clip: float | None = None, direction: str = "forward",
    hidden_size: int = 0, input_forget: int = 0, layout: int = 0, output_sequence: int = 0,
) -> Any:  # fmt: skip
    kind = _Recurrence(4, _lstm_cell(bool(input_forget)), ("Sigmoid", "Tanh", "Tanh"), 2)
    return kind.run(
        x, w, r, b, sequence_lens, [initial_h, initial_c], p, direction, activations, activation_alpha,
        activation_beta, clip, layout,
    )  # fmt: skip
