"""Quantised matrices packed for products with few rows, as when a text is continued token by token.

Such a product reads each weight once, so what counts is how few instructions a weight takes.  `PackedMatrix` holds the
small integers of groups of 16 or 32 elements as words of 32 bits, those of neighbouring rows side by side.  The
row that is multiplied is rounded to 16 bits for each group (an error of 2^-16 of its largest element, an eighth of a
per cent of what 8 bits would lose), so that `dot2` adds two products at once, exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import gcd

from lazulite.formats.quants import Quant, Scale
from lazulite.ir.dtype import dtypes
from lazulite.tensor.jit import jit
from lazulite.tensor.tensor import Tensor

BLOCK = 32
"""The most elements of a group."""
_TILE = 32
"""How many rows of a matrix lie side by side, at most."""
MOST_ROWS = 8
"""With more rows, a matrix of floats that is made block by block pays."""
_LARGEST = 32767.0


@dataclass(frozen=True)
class Scales:
    """A float for each group, made where it is used: one of a block, times a small integer where there is one."""

    coarse: Tensor
    fine: Tensor | None

    @property
    def memory(self) -> list[Tensor]:
        """What they are made of."""
        return [self.coarse] if self.fine is None else [self.coarse, self.fine]

    def floats(self, groups: int) -> Tensor:
        """(tiles, groups, tile)."""
        tiles, blocks, given, tile = self.coarse.shape
        coarse = self.coarse.float().expand(tiles, blocks, max(given, groups // blocks), tile)
        floats = coarse if self.fine is None else coarse * self.fine.float()
        return floats.reshape(tiles, groups, tile)

    def over(self, memory: Iterator[Tensor]) -> Scales:
        """The same with other contents."""
        return Scales(next(memory), None if self.fine is None else next(memory))


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix (out, in) of a type whose elements are integers with scales."""

    words: Tensor
    """(tiles, groups, words, tile)."""
    scales: Scales
    offsets: Scales | None
    bits: int
    zero: int
    sign: int
    """1 where offsets are added, -1 where they are taken away."""
    group: int
    """The elements of a group."""

    @property
    def memory(self) -> list[Tensor]:
        """What it holds."""
        return [self.words, *self.scales.memory, *([] if self.offsets is None else self.offsets.memory)]

    def over(self, memory: Iterable[Tensor]) -> PackedMatrix:
        """A matrix of the same type that holds this memory."""
        parts = iter(memory)
        words, scales = next(parts), self.scales.over(parts)
        return replace(
            self, words=words, scales=scales, offsets=None if self.offsets is None else self.offsets.over(parts)
        )

    def times(self, x: Tensor) -> Tensor:
        """The products (rows, out) with rows of floats (rows, in)."""
        rows, (tiles, groups, _, tile) = x.shape[0], self.words.shape
        parts = x.reshape(rows, 1, groups, self.group)
        scales = parts.abs().max(-1, keepdim=True) * (1.0 / _LARGEST)
        rounded = (scales > 0).where(parts / scales, 0.0).round().cast(dtypes.int16)
        pairs = rounded.bitcast(dtypes.int32).reshape(rows, 1, groups, -1, 16 // self.bits, 1)
        mask = ((1 << self.bits) - 1) * 0x00010001
        total = (self.words & mask).dot2(pairs[..., 0, :])
        for place in range(1, 16 // self.bits):
            total = total + ((self.words >> (self.bits * place)) & mask).dot2(pairs[..., place, :])
        sums = total.sum(3)  # (rows, tiles, groups, tile)
        if self.zero:
            sums = sums - rounded.cast(dtypes.int32).sum(-1, keepdim=True) * self.zero
        products = sums.float() * (scales * self.scales.floats(groups))
        if self.offsets is not None:
            totals = parts.sum(-1, keepdim=True) * self.sign
            products = totals * self.offsets.floats(groups) + products
        return products.sum(2).reshape(rows, tiles * tile)

    def rows(self, numbers: Tensor) -> Tensor:
        """The rows of these numbers as floats (.., in)."""
        tile, flat = self.words.shape[-1], numbers.reshape(-1)

        picked = self.over(part[flat // tile, ..., flat % tile].unsqueeze(-1) for part in self.memory)
        return picked.floats().transpose().reshape(*numbers.shape, -1)

    def floats(self) -> Tensor:
        """The elements (in, out), each made where it is used; bit by bit those of the type's definition."""
        tiles, groups, _, tile = self.words.shape
        places = Tensor.arange(32 // self.bits, device=self.words.device)
        shifts = ((places >> 1) * self.bits + (places & 1) * 16).unsqueeze(1)
        integers = (self.words.unsqueeze(3) >> shifts) & ((1 << self.bits) - 1)
        integers = integers.reshape(tiles, groups, self.group, tile)
        floats = (integers - self.zero).float() * self.scales.floats(groups).unsqueeze(2)
        if self.offsets is not None:
            offsets = self.offsets.floats(groups).unsqueeze(2)
            floats = floats + offsets if self.sign > 0 else floats - offsets
        return floats.permute(1, 2, 0, 3).reshape(groups * self.group, tiles * tile)


def pack(kind: Quant, data: Tensor) -> PackedMatrix:
    """A matrix of a type that can be packed, whose rows are given as bytes (out, nbytes), in memory."""
    assert kind.parts is not None
    parts = kind.parts(data.reshape(data.shape[0], -1, kind.nbytes))
    tile = gcd(data.shape[0], _TILE)
    fine = [scale.fine for scale in (parts.scale, parts.offset) if scale is not None and scale.fine is not None]
    group = min(BLOCK, kind.elements // max([parts.scale.coarse.shape[2], *[each.shape[2] for each in fine]]))
    words = _side_by_side(_words(parts.integers.reshape(data.shape[0], -1, group), parts.bits), tile)
    offsets = None if parts.offset is None else _scales(parts.offset, tile)
    found = PackedMatrix(words, _scales(parts.scale, tile), offsets, parts.bits, parts.zero, parts.sign, group)
    Tensor.realize(*found.memory)
    return found


class Packer:
    """Packs the matrices of a file: how one of a type and a shape is packed is found once, and replayed for others."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, tuple[int, ...]], tuple[PackedMatrix, jit[[Tensor], list[Tensor]]]] = {}

    def __call__(self, kind: Quant, data: Tensor) -> PackedMatrix:
        """The matrix in memory; the type has to be one that can be packed."""
        key = kind.number, data.shape
        if key not in self._known:
            self._known[key] = pack(kind, data), jit(lambda data: pack(kind, data).memory)
            return self._known[key][0]
        first, packed = self._known[key]
        return first.over(packed(data))


def can_pack(kind: Quant) -> bool:
    """Whether matrices of the type have this form."""
    return kind.parts is not None


def _scales(scale: Scale, tile: int) -> Scales:
    return Scales(_side_by_side(scale.coarse, tile), None if scale.fine is None else _side_by_side(scale.fine, tile))


def _side_by_side(x: Tensor, tile: int) -> Tensor:
    """What belongs to rows (out, .., n) with so many rows side by side: (out / tile, .., n, tile)."""
    tiles = x.reshape(x.shape[0] // tile, tile, *x.shape[1:])
    return tiles.permute(0, *range(2, tiles.ndim), 1).contiguous()


def _words(integers: Tensor, bits: int) -> Tensor:
    """Integers (.., size) in words (.., count): those at even places in low halves, their neighbours in high ones."""
    half = 16 // bits
    groups = integers.cast(dtypes.uint32).reshape(*integers.shape[:-1], -1, half, 2)
    words = groups[..., 0, 0] | (groups[..., 0, 1] << 16)
    for place in range(1, half):
        words = words | (groups[..., place, 0] << (bits * place)) | (groups[..., place, 1] << (bits * place + 16))
    return words.bitcast(dtypes.int32)
