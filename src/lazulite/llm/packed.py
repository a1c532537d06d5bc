"""Quantised matrices packed for products with few rows, as when a text is continued token by token.

Such a product reads each weight once, so what counts is how few instructions a weight takes.  `PackedMatrix` holds the
small integers of 32-element blocks as words of 32 bits, those of neighbouring rows side by side.  The
row that is multiplied is rounded to 16 bits for each block (an error of 2^-16 of its largest element, an eighth of a
per cent of what 8 bits would lose), so that `dot2` adds two products at once, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import gcd

from lazulite.formats.quants import Quant
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor

BLOCK = 32
_TILE = 32
"""How many rows of a matrix lie side by side, at most."""
MOST_ROWS = 8
"""With more rows, a matrix of floats that is made block by block pays."""
_LARGEST = 32767.0


@dataclass(frozen=True)
class _Layout:
    """Where the parts of a block are: its integers without signs, what to take off each, and its floats."""

    bits: int
    integers: Callable[[Tensor], Tensor]
    """From bytes (.., nbytes) to uint8 (.., 32)."""
    zero: int = 0
    offset: int | None = None
    """The byte at which a float16 stands that is added to every element."""


def _nibbles(data: Tensor) -> Tensor:
    return (data & 15).cat(data >> 4, dim=-1)


_LAYOUTS: Mapping[str, _Layout] = {
    "Q4_0": _Layout(4, lambda blocks: _nibbles(blocks[..., 2:]), zero=8),
    "Q4_1": _Layout(4, lambda blocks: _nibbles(blocks[..., 4:]), offset=2),
    "Q8_0": _Layout(8, lambda blocks: blocks[..., 2:] ^ 128, zero=128),
}
"""By name of the type; the other types are multiplied as floats."""


class PackedMatrix:
    """A matrix (out, in) of one of the types in `_LAYOUTS`."""

    def __init__(self, kind: Quant, data: Tensor) -> None:
        layout = _LAYOUTS[kind.name]
        tile = gcd(data.shape[0], _TILE)
        blocks = data.reshape(data.shape[0] // tile, tile, -1, kind.nbytes)
        self.bits, self.zero = layout.bits, layout.zero
        self.words = _words(layout.integers(blocks), layout.bits).permute(0, 2, 3, 1).contiguous()
        self.scales = _floats(blocks, 0)
        self.offsets = None if layout.offset is None else _floats(blocks, layout.offset)
        self.words.realize(self.scales, *([] if self.offsets is None else [self.offsets]))

    def times(self, x: Tensor) -> Tensor:
        """The products (rows, out) with rows of floats (rows, in)."""
        rows, (tiles, blocks, _, tile) = x.shape[0], self.words.shape
        parts = x.reshape(rows, 1, blocks, BLOCK)
        scales = parts.abs().max(-1, keepdim=True) * (1.0 / _LARGEST)
        rounded = (scales > 0).where(parts / scales, 0.0).round().cast(dtypes.int16)
        pairs = rounded.bitcast(dtypes.int32).reshape(rows, 1, blocks, -1, 16 // self.bits, 1)
        mask = 0x000F000F if self.bits == 4 else 0x00FF00FF
        total = (self.words & mask).dot2(pairs[..., 0, :])
        for place in range(1, 16 // self.bits):
            total = total + ((self.words >> (self.bits * place)) & mask).dot2(pairs[..., place, :])
        sums = total.sum(3)  # (rows, tiles, blocks, tile)
        if self.zero:
            sums = sums - rounded.cast(dtypes.int32).sum(-1, keepdim=True) * self.zero
        products = sums.float() * (scales * self.scales.float())
        if self.offsets is not None:
            products = parts.sum(-1, keepdim=True) * self.offsets.float() + products
        return products.sum(2).reshape(rows, tiles * tile)

    def floats(self) -> Tensor:
        """The elements (in, out), each made where it is used; bit by bit those of the type's definition."""
        tiles, blocks, _, tile = self.words.shape
        places = Tensor.arange(32 // self.bits, device=self.words.device)
        shifts = ((places >> 1) * self.bits + (places & 1) * 16).unsqueeze(1)
        integers = ((self.words.unsqueeze(3) >> shifts) & ((1 << self.bits) - 1)).reshape(tiles, blocks, BLOCK, tile)
        floats = (integers - self.zero).float() * self.scales.float().unsqueeze(2)
        if self.offsets is not None:
            floats = floats + self.offsets.float().unsqueeze(2)
        return floats.permute(1, 2, 0, 3).reshape(blocks * BLOCK, tiles * tile)


def can_pack(kind: Quant) -> bool:
    """Whether matrices of the type have this form."""
    return kind.name in _LAYOUTS


def _floats(blocks: Tensor, begin: int) -> Tensor:
    """The float16 at a byte of each block, (tiles, blocks, tile)."""
    found = blocks[..., begin : begin + 2].bitcast(dtypes.float16)
    return found.reshape(blocks.shape[:-1]).permute(0, 2, 1).contiguous()


def _words(integers: Tensor, bits: int) -> Tensor:
    """Integers (.., 32) in words (.., count): those at even places in low halves, their neighbours in the high ones."""
    half = 16 // bits
    groups = integers.cast(dtypes.uint32).reshape(*integers.shape[:-1], -1, half, 2)
    words = groups[..., 0, 0] | (groups[..., 0, 1] << 16)
    for place in range(1, half):
        words = words | (groups[..., place, 0] << (bits * place)) | (groups[..., place, 1] << (bits * place + 16))
    return words.bitcast(dtypes.int32)
