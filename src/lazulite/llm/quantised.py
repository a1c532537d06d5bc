"""Weights that stay in a quantised type: a model computes with them without a copy in floats.

`Quantised` is made from the bytes of a file.  What a step needs of it is built within the step, as an expression over
the bytes or over a packed form, so that a capture holds these and not floats that somebody made of them once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from lazulite.formats.quants import Quant
from lazulite.llm.packed import MOST_ROWS, PackedMatrix, can_pack, pack
from lazulite.tensor.tensor import Tensor


@dataclass(frozen=True)
class Quantised:
    """A weight of two axes (out, in), or matrices one after another, in one form or the other."""

    shape: tuple[int, ...]
    kind: Quant
    data: Tensor | None
    """Rows of blocks of bytes."""
    packed: PackedMatrix | None

    def __getitem__(self, numbers: Tensor) -> Tensor:
        """The rows, or the matrices, of these numbers as floats."""
        if self.packed is not None:
            return self.packed.rows(numbers)
        assert self.data is not None
        return self.kind.dequantize(self.data[numbers], (*numbers.shape, *self.shape[1:]))

    def times(self, x: Tensor) -> Tensor:
        """The products (.., out) of a matrix with rows of floats (.., in)."""
        if self.packed is None:
            assert self.data is not None
            return x.linear(self.kind.dequantize(self.data, self.shape).transpose())
        few = all(type(size) is int for size in x.shape[:-1]) and prod(x.shape[:-1]) <= MOST_ROWS
        if not few:
            return x.linear(self.packed.floats())
        return self.packed.times(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1)


def quantised(
    kind: Quant, data: Tensor, shape: tuple[int, ...], packing: Callable[[Quant, Tensor], PackedMatrix] | None = pack
) -> Quantised:
    """A weight from rows of blocks of bytes; with `packing` a matrix is packed, where its type can be."""
    if packing is None or len(shape) != 2 or not can_pack(kind):
        return Quantised(shape, kind, data, None)
    return Quantised(shape, kind, None, packing(kind, data))
