"""Steps of a model as captured programs: a part of a prompt, one token, one token for each slot.

Each is compiled once for all lengths.  A `Stepper` holds the cache that they share.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from lazulite.ir.size import Variable
from lazulite.llm.cache import AllSlots, Cache, OneSlot
from lazulite.llm.model import Model
from lazulite.llm.sampling import Scores
from lazulite.tensor.jit import jit
from lazulite.tensor.tensor import Tensor

CHUNK = 128
"""The most tokens of a prompt in one step."""
_GRAIN = 16
"""Steps of a prompt have multiples of so many tokens; what is too much is written behind the end, and never read."""


class Stepper:
    """Runs a model on `slots` sequences of at most `positions` tokens."""

    def __init__(self, model: Model, slots: int, positions: int) -> None:
        self.model, self.slots, self.positions = model, slots, positions
        self.cache = self._new_cache(slots)
        self._slot = Variable("slot", 0, slots - 1) if slots > 1 else None
        self._start = Variable("start", 0, positions - 1)
        self._time = Variable("time", _GRAIN, CHUNK, multiple_of=_GRAIN)
        self._length = Variable("length", 1, positions)
        self._places = [Variable(f"position{slot}", 0, positions - 1) for slot in range(slots)]
        self._prompt, self._single, self._every = jit(self._prompt_step), jit(self._single_step), jit(self._every_step)
        self._sums = jit(self._sum_step)

    @cached_property
    def aside(self) -> Cache:
        """Keys and values of a text that is embedded."""
        return self._new_cache(1)

    def _new_cache(self, slots: int) -> Cache:
        config = self.model.config
        return Cache(config.blocks, slots, config.kv_heads, self.positions + CHUNK, config.head_width)

    # --- what a caller asks for -------------------------------------------------------------------

    def prompt(self, slot: int, start: int, tokens: Sequence[int]) -> Scores:
        """The scores after at most CHUNK tokens of a prompt, which begin at a position."""
        padded = -(-len(tokens) // _GRAIN) * _GRAIN
        given = Tensor([[*tokens, *[0] * (CHUNK - len(tokens))]], dtype="int32")
        last = Tensor([len(tokens) - 1], dtype="int32")
        scores = self._prompt(given, last, self._bound(slot), self._start.bind(start), self._time.bind(padded))
        return self._host(scores)

    def single(self, slot: int, position: int, token: int) -> Scores:
        """The scores after one token."""
        scores = self._single(Tensor([[token]], dtype="int32"), self._bound(slot), self._start.bind(position))
        return self._host(scores)

    def every(self, positions: Sequence[int], tokens: Sequence[int]) -> Any:
        """The scores (slots, vocabulary) after one token in each slot; of a slot at rest they mean nothing."""
        places = [variable.bind(position) for variable, position in zip(self._places, positions, strict=True)]
        table = Tensor(list(positions), dtype="int32")
        given = Tensor([[token] for token in tokens], dtype="int32")
        return self._every(given, table, places, self._length.bind(max(positions) + 1)).numpy()[:, 0]

    def embedding(self, tokens: Sequence[int]) -> list[float]:
        """The mean of the hidden states of a text, scaled to length 1."""
        total: Any = 0.0
        _ = self.aside  # made before anything is captured
        for start in range(0, len(tokens), CHUNK):
            part = tokens[start : start + CHUNK]
            padded = -(-len(part) // _GRAIN) * _GRAIN
            given = Tensor([[*part, *[0] * (CHUNK - len(part))]], dtype="int32")
            count = Tensor([len(part)], dtype="int32")
            total = total + self._sums(given, count, self._start.bind(start), self._time.bind(padded)).numpy()
        row = total / max(float((total * total).sum()) ** 0.5, 1e-30)
        return [float(value) for value in row]

    def _bound(self, slot: int) -> int:
        return slot if self._slot is None else self._slot.bind(slot)

    def _host(self, scores: Tensor) -> Scores:
        return scores.numpy().reshape(-1)

    # --- what is captured ---------------------------------------------------------------------------

    def _prompt_step(self, tokens: Tensor, last: Tensor, slot: int, start: int, time: int) -> Tensor:
        hidden = self.model.hidden(tokens[:, :time], OneSlot(slot, start, time), self.cache)
        return self.model.logits(hidden[0][last])

    def _sum_step(self, tokens: Tensor, count: Tensor, start: int, time: int) -> Tensor:
        hidden = self.model.hidden(tokens[:, :time], OneSlot(0, start, time), self.aside)[0]
        return (Tensor.arange(time).unsqueeze(1) < count).where(hidden, 0.0).sum(0)

    def _single_step(self, token: Tensor, slot: int, start: int) -> Tensor:
        return self.model.logits(self.model.hidden(token, OneSlot(slot, start, 1), self.cache))

    def _every_step(self, tokens: Tensor, table: Tensor, places: list[int], length: int) -> Tensor:
        return self.model.logits(self.model.hidden(tokens, AllSlots(places, table, length), self.cache))
