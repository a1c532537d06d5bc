"""Where tokens stand, and the keys and values of those before them.

A `Cache` has a row of memory for each of several sequences, its slots.  `Places` says where the tokens
of a step stand: one slot with tokens one after another (a prompt, or a single token), or all slots with
one token each.  What lies in a slot behind the length of its sequence is never read, so a step may write
there whatever it likes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from lazulite.ir.dtype import DType, dtypes
from lazulite.tensor.tensor import Tensor


class Cache:
    """Keys and values of `slots` sequences of at most `positions` tokens, for each block."""

    def __init__(
        self, blocks: int, slots: int, heads: int, positions: int, width: int, dtype: DType = dtypes.float32
    ) -> None:
        shape = (slots, heads, positions, width)
        self.keys = [Tensor.zeros(*shape, dtype=dtype).contiguous() for _ in range(blocks)]
        self.values = [Tensor.zeros(*shape, dtype=dtype).contiguous() for _ in range(blocks)]
        self.keys[0].realize(*self.keys[1:], *self.values)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(part.numel() * part.dtype.itemsize for part in (*self.keys, *self.values))

    def extended(self, block: int, keys: Tensor, values: Tensor, places: Places) -> tuple[Tensor, Tensor]:
        """Keys and values with those of a step written behind them: (rows, heads, length, width) each."""
        held = self.keys[block], self.values[block]
        for memory, new in zip(held, (keys, values), strict=True):
            places.write(memory, new.cast(memory.dtype))
        past = [places.read(memory) for memory in held]
        return past[0].float(), past[1].float()


class Places(ABC):
    """Where the tokens of a step stand."""

    @abstractmethod
    def pick(self, table: Tensor) -> Tensor:
        """The rows of a table (positions, ..) for the tokens: (rows, time, ..)."""

    @abstractmethod
    def write(self, memory: Tensor, new: Tensor) -> None:
        """Put what belongs to the tokens (rows, heads, time, width) into the memory of a block."""

    @abstractmethod
    def read(self, memory: Tensor) -> Tensor:
        """What belongs to all tokens up to the last of the step: (rows, heads, length, width)."""

    @abstractmethod
    def seen(self, window: int) -> Tensor | None:
        """Which positions each token sees, to broadcast over (rows, heads, groups, time, length); None: all."""


class OneSlot(Places):
    """`time` tokens of the sequence in one slot, from position `start` on; all three may be Variables."""

    def __init__(self, slot: int, start: int, time: int) -> None:
        self.slot, self.start, self.time = slot, start, time

    def pick(self, table: Tensor) -> Tensor:
        return table[self.start : self.start + self.time].unsqueeze(0)

    def write(self, memory: Tensor, new: Tensor) -> None:
        memory[self.slot, :, self.start : self.start + self.time] = new[0]

    def read(self, memory: Tensor) -> Tensor:
        return memory[self.slot, :, : self.start + self.time].unsqueeze(0)

    def seen(self, window: int) -> Tensor | None:
        if isinstance(self.time, int) and self.time == 1 and not window:
            return None
        own = Tensor.arange(self.time).unsqueeze(1) + self.start
        others = Tensor.arange(self.start + self.time).unsqueeze(0)
        return _seen(own, others, window)


class AllSlots(Places):
    """One token of the sequence in each slot, at the given positions; `length` exceeds all of them."""

    def __init__(self, positions: Sequence[int], table: Tensor, length: int) -> None:
        self.positions, self.table, self.length = positions, table, length

    def pick(self, table: Tensor) -> Tensor:
        return table[self.table].unsqueeze(1)

    def write(self, memory: Tensor, new: Tensor) -> None:
        for slot, position in enumerate(self.positions):
            memory[slot, :, position : position + 1] = new[slot]

    def read(self, memory: Tensor) -> Tensor:
        return memory[:, :, : self.length]

    def seen(self, window: int) -> Tensor | None:
        own = self.table.reshape(-1, 1, 1, 1, 1)
        return _seen(own, Tensor.arange(self.length), window)


def _seen(own: Tensor, others: Tensor, window: int) -> Tensor:
    """Whether a position is not behind the own one, and within the window."""
    seen = others <= own
    return seen & (others + window > own) if window else seen
