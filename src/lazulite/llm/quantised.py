"""Weights that stay in a quantised type: a model computes with them without a copy in floats.

`quantised` makes one from the bytes of a file: `Packed` where it is a matrix of a type that can be packed, else
`Blocks`.  What a step needs of it is built within the step, as an expression over what it holds, so that a capture
holds this and not floats that somebody made of it once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from lazulite.formats.quants import Quant
from lazulite.llm.packed import MOST_ROWS, PackedMatrix, can_pack, pack
from lazulite.tensor.tensor import Tensor


@dataclass(frozen=True)
class Quantised(ABC):
    """A weight of two axes (out, in), or several of them one after another."""

    shape: tuple[int, ...]

    @abstractmethod
    def __getitem__(self, numbers: Tensor) -> Tensor:
        """The rows, or the matrices, of these numbers as floats."""

    @abstractmethod
    def times(self, x: Tensor) -> Tensor:
        """The products (.., out) of a matrix with rows of floats (.., in)."""


@dataclass(frozen=True)
class Blocks(Quantised):
    """A weight as rows of blocks of bytes, as files hold it."""

    kind: Quant
    data: Tensor

    def __getitem__(self, numbers: Tensor) -> Tensor:
        return self.kind.dequantize(self.data[numbers], (*numbers.shape, *self.shape[1:]))

    def times(self, x: Tensor) -> Tensor:
        return x.linear(self.kind.dequantize(self.data, self.shape).transpose())


@dataclass(frozen=True)
class Packed(Quantised):
    """A matrix packed for products with few rows; no bytes are kept beside it."""

    matrix: PackedMatrix

    def __getitem__(self, numbers: Tensor) -> Tensor:
        return self.matrix.rows(numbers)

    def times(self, x: Tensor) -> Tensor:
        few = all(type(size) is int for size in x.shape[:-1]) and prod(x.shape[:-1]) <= MOST_ROWS
        if not few:
            return x.linear(self.matrix.floats())
        return self.matrix.times(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1)


def quantised(
    kind: Quant, data: Tensor, shape: tuple[int, ...], packing: Callable[[Quant, Tensor], PackedMatrix] | None = pack
) -> Quantised:
    """A weight from rows of blocks of bytes; with `packing` a matrix is packed, where its type can be."""
    if packing is None or len(shape) != 2 or not can_pack(kind):
        return Blocks(shape, kind, data)
    return Packed(shape, packing(kind, data))
