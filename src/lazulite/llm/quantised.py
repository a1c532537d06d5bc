"""Weights that stay in a quantised type: a model computes with them without a copy in floats.

`Quantised` is made from the bytes of a file.  What a step needs of it is built within the step, as an expression over
the bytes or over a packed form, so that a capture holds these and not floats that somebody made of them once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from lazulite.formats.quants import Quant
from lazulite.llm.packed import MOST_ROWS, PackedMatrix, can_pack
from lazulite.tensor.tensor import Tensor


class Quantised:
    """A weight of two axes (out, in), or matrices one after another; `data` has rows of blocks of bytes.

    With `pack` a matrix is packed for products, where its type has such a form.
    """

    def __init__(
        self, kind: Quant, data: Tensor, shape: tuple[int, ...],
        pack: Callable[[Quant, Tensor], PackedMatrix] | None = PackedMatrix,
    ) -> None:  # fmt: skip
        self.kind, self.data, self.shape = kind, data, shape
        self.packed = pack(kind, data) if pack is not None and len(shape) == 2 and can_pack(kind) else None

    def __getitem__(self, numbers: Tensor) -> Tensor:
        """The rows, or the matrices, of these numbers as floats."""
        return self.kind.dequantize(self.data[numbers], (*numbers.shape, *self.shape[1:]))

    def times(self, x: Tensor) -> Tensor:
        """The products (.., out) of a matrix with rows of floats (.., in)."""
        few = all(type(size) is int for size in x.shape[:-1]) and prod(x.shape[:-1]) <= MOST_ROWS
        if self.packed is None:
            return x.linear(self.kind.dequantize(self.data, self.shape).transpose())
        if not few:
            return x.linear(self.packed.floats())
        return self.packed.times(x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1)
