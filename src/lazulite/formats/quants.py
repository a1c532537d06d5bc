"""The quantised types of GGUF files: what their blocks mean, as tensor expressions.

A quantised tensor is rows of blocks, each some bytes that stand for 32 to 256 elements: scales, and small
integers packed into bits.  `Quant.dequantize` is the definition of a type as an expression over the
bytes, in the order of rounding that the format's reference implementation has, so that the results are
equal bit by bit.  It is lazy: a product with a quantised matrix reads the bytes and unpacks them where
they are used.  The layouts are those of ggml (https://github.com/ggml-org/ggml, `ggml-common.h`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod

from lazulite.base.errors import ArgumentError
from lazulite.ir.dtype import DType, dtypes
from lazulite.tensor.tensor import Tensor


@dataclass(frozen=True)
class Scale:
    """A float for each group of a block: one of the block, times a small integer of the group where there is one."""

    coarse: Tensor
    """(rows, blocks, 1 or groups)."""
    fine: Tensor | None = None
    """(rows, blocks, groups)."""

    def floats(self) -> Tensor:
        """(rows, blocks, 1 or groups) in float32."""
        return self.coarse.float() if self.fine is None else self.coarse.float() * self.fine.float()


@dataclass(frozen=True)
class Parts:
    """What the elements of blocks are made of: scale * (integer - zero), and an offset that is added or taken off."""

    integers: Tensor
    """uint8, for each block (rows, blocks, ..) its elements in order."""
    bits: int
    """How many bits the integers have: 2, 4 or 8."""
    scale: Scale
    zero: int = 0
    offset: Scale | None = None
    sign: int = 1
    """-1 where the offset is taken off."""

    def floats(self) -> Tensor:
        """(rows, blocks, groups, size) in float32."""
        scale = self.scale.floats().unsqueeze(-1)
        integers = self.integers.cast(dtypes.int16) - self.zero if self.zero else self.integers
        values = scale * _in_groups(integers, scale.shape[2]).float()
        if self.offset is None:
            return values
        offset = self.offset.floats().unsqueeze(-1)
        return values + offset if self.sign > 0 else values - offset


@dataclass(frozen=True)
class Quant:
    """One type: its number in files, its name, and the elements and bytes of a block."""

    number: int
    name: str
    elements: int
    nbytes: int
    unpack: Callable[[Tensor], Tensor]
    """From bytes of shape (rows, blocks, nbytes) to float32 of rows * blocks * elements elements, in any shape."""
    parts: Callable[[Tensor], Parts] | None = None
    """From the same bytes to what the elements are made of, where that is a scale and an integer."""

    def dequantize(self, data: Tensor, shape: tuple[int, ...]) -> Tensor:
        """The float32 elements that rows of blocks of bytes stand for."""
        blocks = data.reshape(prod(data.shape[:-1]), data.shape[-1] // self.nbytes, self.nbytes)
        return self.unpack(blocks).reshape(shape)


QUANTS: dict[int, Quant] = {}
"""Every quantised type by its number."""


def _quant(number: int, elements: int, nbytes: int) -> Callable[[Callable[[Tensor], Tensor]], Callable[..., Tensor]]:
    """Enter a type, named as its function, in the table."""

    def enter(unpack: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        QUANTS[number] = Quant(number, unpack.__name__.upper(), elements, nbytes, unpack)
        return unpack

    return enter


def _scaled(number: int, elements: int, nbytes: int) -> Callable[[Callable[[Tensor], Parts]], Callable[..., Parts]]:
    """Enter a type whose elements are integers with scales."""

    def enter(parts: Callable[[Tensor], Parts]) -> Callable[[Tensor], Parts]:
        name = parts.__name__.upper()
        QUANTS[number] = Quant(number, name, elements, nbytes, lambda blocks: parts(blocks).floats(), parts)
        return parts

    return enter


# --- what the layouts are made of ----------------------------------------------------------------


def _fields(packed: Tensor, width: int, count: int) -> Tensor:
    """`count` fields of so many bits of each integer, the lowest first, along a new axis before the last.

    >>> _fields(Tensor([0x21, 0x43], dtype="uint8"), 4, 2).tolist()
    [[1, 3], [2, 4]]
    """
    shifts = (Tensor.arange(count, dtype=packed.dtype, device=packed.device) * width).unsqueeze(-1)
    return (packed.unsqueeze(-2) >> shifts) & ((1 << width) - 1)


def _each(packed: Tensor, width: int, count: int) -> Tensor:
    """`count` fields of so many bits of each integer, the lowest first, along a new last axis."""
    shifts = Tensor.arange(count, dtype=packed.dtype, device=packed.device) * width
    return (packed.unsqueeze(-1) >> shifts) & ((1 << width) - 1)


def half(blocks: Tensor, begin: int) -> Tensor:
    """The float16 at a byte of each block, with an axis of one element; made of its bytes where it is used."""
    low, high = (blocks[..., at : at + 1].cast(dtypes.uint16) for at in (begin, begin + 1))
    return (low | (high << 8)).bitcast(dtypes.float16)


def _halves(blocks: Tensor, begin: int) -> Tensor:
    """The same as float32."""
    return half(blocks, begin).float()


def _nibbles(data: Tensor) -> Tensor:
    """The low halves of some bytes, then the high ones."""
    return _fields(data, 4, 2).flatten(-2)


def _fifth_bits(blocks: Tensor, begin: int) -> Tensor:
    """32 bits from a byte on, as the fifth bit of 32 elements."""
    return (_each(blocks[..., begin : begin + 4].bitcast(dtypes.uint32), 1, 32).flatten(-2) << 4).cast(dtypes.uint8)


def _less(quants: Tensor, offset: int) -> Tensor:
    """Small integers less an offset."""
    return quants.cast(dtypes.int8) - offset


def _table(values: tuple[int, ...], indices: Tensor) -> Tensor:
    """Small integers looked up, and moved up by 128 to be without sign."""
    table = Tensor([value + 128 for value in values], dtype=dtypes.uint8, device=indices.device)
    return table[indices.cast(dtypes.int32)]


def _in_groups(quants: Tensor, count: int) -> Tensor:
    """The elements of each block in so many equal groups: (rows, blocks, count, size)."""
    return quants.reshape(*quants.shape[:2], count, prod(quants.shape[2:]) // count)


# --- blocks of 32 ----------------------------------------------------------------------------------


@_scaled(2, 32, 18)
def q4_0(blocks: Tensor) -> Parts:
    """d * (q - 8): d in float16, 32 numbers q of 4 bits."""
    return Parts(_nibbles(blocks[..., 2:]), 4, Scale(half(blocks, 0)), zero=8)


@_scaled(3, 32, 20)
def q4_1(blocks: Tensor) -> Parts:
    """d * q + m: d and m in float16, 32 numbers q of 4 bits."""
    return Parts(_nibbles(blocks[..., 4:]), 4, Scale(half(blocks, 0)), offset=Scale(half(blocks, 2)))


@_scaled(6, 32, 22)
def q5_0(blocks: Tensor) -> Parts:
    """d * (q - 16): the fifth bits of all q stand before the others."""
    return Parts(_nibbles(blocks[..., 6:]) | _fifth_bits(blocks, 2), 8, Scale(half(blocks, 0)), zero=16)


@_scaled(7, 32, 24)
def q5_1(blocks: Tensor) -> Parts:
    """d * q + m: the fifth bits of all q stand before the others."""
    quants = _nibbles(blocks[..., 8:]) | _fifth_bits(blocks, 4)
    return Parts(quants, 8, Scale(half(blocks, 0)), offset=Scale(half(blocks, 2)))


@_scaled(8, 32, 34)
def q8_0(blocks: Tensor) -> Parts:
    """d * q: 32 signed bytes q."""
    return Parts(blocks[..., 2:] ^ 128, 8, Scale(half(blocks, 0)), zero=128)


_STEPS = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
"""The 16 numbers that the 4 bits of IQ4_NL and IQ4_XS stand for."""
_E2M1 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
"""Twice the values of the 4-bit floats of OCP's microscaling formats."""


@_scaled(20, 32, 18)
def iq4_nl(blocks: Tensor) -> Parts:
    """d * steps[q]."""
    return Parts(_table(_STEPS, _nibbles(blocks[..., 2:])), 8, Scale(half(blocks, 0)), zero=128)


@_scaled(39, 32, 17)
def mxfp4(blocks: Tensor) -> Parts:
    """2^(e - 128) * e2m1[q]: a byte e, 32 numbers q of 4 bits."""
    exponent = blocks[..., :1].cast(dtypes.uint32)
    bits = (exponent < 2).where(exponent * 0x200000 + 0x200000, (exponent - 1) << 23)
    return Parts(_table(_E2M1, _nibbles(blocks[..., 1:])), 8, Scale(bits.bitcast(dtypes.float32)), zero=128)


@_scaled(40, 64, 36)
def nvfp4(blocks: Tensor) -> Parts:
    """Four groups of 16: a scale in unsigned e4m3 for each, then 4 bits for each element, by groups."""
    scale = blocks[..., :4]
    exponent, mantissa = (scale >> 3).cast(dtypes.int32) & 15, (scale & 7).float()
    normal = (mantissa * 0.125 + 1.0) * _power_of_two(exponent - 7)
    value = (exponent == 0).where(mantissa * 2.0**-9, normal) * 0.5
    value = ((scale == 0) | (scale == 0x7F)).where(0.0, value)
    return Parts(_table(_E2M1, _nibbles(_in_groups(blocks[..., 4:], 4))), 8, Scale(value), zero=128)


def _power_of_two(exponent: Tensor) -> Tensor:
    """2 to an integer, made of its bits."""
    return ((exponent + 127) << 23).bitcast(dtypes.float32)


# --- blocks of 256, in groups of 16 or 32 ------------------------------------------------------------


@_scaled(10, 256, 84)
def q2_k(blocks: Tensor) -> Parts:
    """Groups of 16: d * s * q - m * t with s and t of 4 bits, q of 2."""
    scales = blocks[..., :16]
    quants = _fields(_in_groups(blocks[..., 16:80], 2), 2, 4)
    factor, offset = Scale(half(blocks, 80), scales & 15), Scale(half(blocks, 82), scales >> 4)
    return Parts(quants, 2, factor, offset=offset, sign=-1)


@_scaled(11, 256, 110)
def q3_k(blocks: Tensor) -> Parts:
    """Groups of 16: d * (s - 32) * (q - 4) with s of 6 bits; q has 2 bits, and a third one elsewhere."""
    low = _fields(blocks[..., 96:104], 4, 2).flatten(-2)
    high = _fields(blocks[..., 104:108], 2, 4).flatten(-2)
    quants = _in_groups(_fields(_in_groups(blocks[..., 32:96], 2), 2, 4), 16)
    third = _in_groups(_fields(blocks[..., :32], 1, 8), 16) << 2
    return Parts(quants | third, 4, Scale(half(blocks, 108), _less(low | (high << 4), 32)), zero=4)


def _scales_and_minima(packed: Tensor) -> tuple[Tensor, Tensor]:
    """Eight pairs of 6-bit numbers out of 12 bytes."""
    first, second, third = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = (first & 63).cat((third & 15) | ((first >> 6) << 4), dim=-1)
    minima = (second & 63).cat((third >> 4) | ((second >> 6) << 4), dim=-1)
    return scales, minima


@_scaled(12, 256, 144)
def q4_k(blocks: Tensor) -> Parts:
    """Groups of 32: d * s * q - m * t with s and t of 6 bits, q of 4."""
    scales, minima = _scales_and_minima(blocks[..., 4:16])
    quants = _fields(_in_groups(blocks[..., 16:], 4), 4, 2)
    return Parts(quants, 4, Scale(half(blocks, 0), scales), offset=Scale(half(blocks, 2), minima), sign=-1)


@_scaled(13, 256, 176)
def q5_k(blocks: Tensor) -> Parts:
    """As Q4_K, with the fifth bits of all q in 32 bytes before the others."""
    scales, minima = _scales_and_minima(blocks[..., 4:16])
    quants = _in_groups(_fields(_in_groups(blocks[..., 48:], 4), 4, 2), 8) | (_fields(blocks[..., 16:48], 1, 8) << 4)
    return Parts(quants, 8, Scale(half(blocks, 0), scales), offset=Scale(half(blocks, 2), minima), sign=-1)


@_scaled(14, 256, 210)
def q6_k(blocks: Tensor) -> Parts:
    """Groups of 16: d * s * (q - 32) with s a signed byte, q of 6 bits: 4 low ones and 2 high ones."""
    low = _in_groups(_fields(_in_groups(blocks[..., :128], 2), 4, 2), 16)
    high = _in_groups(_fields(_in_groups(blocks[..., 128:192], 2), 2, 4), 16)
    return Parts(low | (high << 4), 8, Scale(half(blocks, 208), blocks[..., 192:208].bitcast(dtypes.int8)), zero=32)


@_scaled(23, 256, 136)
def iq4_xs(blocks: Tensor) -> Parts:
    """Groups of 32: d * (s - 32) * steps[q] with s of 6 bits."""
    high = _each(blocks[..., 2:4].bitcast(dtypes.uint16), 2, 8).flatten(-2).cast(dtypes.uint8)
    low = _each(blocks[..., 4:8], 4, 2).flatten(-2)
    scale = Scale(half(blocks, 0), _less(low | (high << 4), 32))
    return Parts(_table(_STEPS, _nibbles(_in_groups(blocks[..., 8:], 8))), 8, scale, zero=128)


# --- ternary -----------------------------------------------------------------------------------------


@_scaled(34, 256, 54)
def tq1_0(blocks: Tensor) -> Parts:
    """d * (q - 1): five numbers 0 to 2 in a byte, as the first digits of a fraction in base 3."""

    def digits(packed: Tensor, count: int) -> Tensor:
        powers = Tensor([3**n for n in range(count)], dtype=dtypes.uint8, device=packed.device).unsqueeze(-1)
        return (packed.unsqueeze(-2) * powers).flatten(-2)

    fractions = digits(blocks[..., :32], 5).cat(digits(blocks[..., 32:48], 5), digits(blocks[..., 48:52], 4), dim=-1)
    return Parts(((fractions.cast(dtypes.uint16) * 3) >> 8).cast(dtypes.uint8), 2, Scale(half(blocks, 52)), zero=1)


@_scaled(35, 256, 66)
def tq2_0(blocks: Tensor) -> Parts:
    """d * (q - 1): q of 2 bits."""
    return Parts(_fields(_in_groups(blocks[..., :64], 2), 2, 4), 2, Scale(half(blocks, 64)), zero=1)


# --- lattices ----------------------------------------------------------------------------------------
# Groups of 8 or 4 elements are points of a table of points, with a sign for each element in some types.


@cache
def _points(name: str, dtype: DType, device: str) -> Tensor:
    """The table of points of a type, which the gguf package holds."""
    gguf = _reference()
    kind = getattr(gguf, name)
    kind.init_grid()
    points = kind.grid.reshape(kind.grid_shape)
    return Tensor(points.astype("int8"), device=device).cast(dtype).realize()


@cache
def _sign_masks(device: str) -> Tensor:
    """Seven bits and the eighth that makes the number of ones even."""
    masks = [n | ((n.bit_count() & 1) << 7) for n in range(128)]
    return Tensor(masks, dtype=dtypes.uint8, device=device).realize()


def _reference() -> object:
    try:
        import gguf.quants
    except ImportError:
        raise ArgumentError(
            "load", "the tables of the IQ types are in the package gguf, which is not installed",
            hint="pip install lazulite[gguf]",
        ) from None  # fmt: skip
    return gguf.quants


def _point(name: str, indices: Tensor) -> Tensor:
    return _points(name, dtypes.float32, indices.device)[indices.cast(dtypes.int32)]


def _signs(masks: Tensor) -> Tensor:
    """1 or -1 for each bit of some bytes, along a new last axis."""
    return 1.0 - 2.0 * _each(masks, 1, 8).float()


def _packed_signs(words: Tensor) -> Tensor:
    """The signs of four groups of eight from 28 bits of a word, each seven bits and their parity."""
    return _signs(_sign_masks(words.device)[_each(words & 0xFFFFFFF, 7, 4).cast(dtypes.int32)])


@_quant(16, 256, 66)
def iq2_xxs(blocks: Tensor) -> Tensor:
    """Groups of 32: four points of 8, then a word of four signs and a scale of 4 bits."""
    pairs = blocks[..., 2:].reshape(*blocks.shape[:2], 8, 8)
    words = pairs[..., 4:].bitcast(dtypes.uint32).squeeze(-1)
    factor = _halves(blocks, 0) * ((words >> 28).float() + 0.5) * 0.25
    return factor.reshape(*factor.shape, 1, 1) * _point("IQ2_XXS", pairs[..., :4]) * _packed_signs(words)


@_quant(17, 256, 74)
def iq2_xs(blocks: Tensor) -> Tensor:
    """Groups of 16 with scales of 4 bits; a point of 8 has 9 bits, its signs 7."""
    words = blocks[..., 2:66].bitcast(dtypes.uint16).reshape(*blocks.shape[:2], 16, 2)
    factor = _quarter_scales(blocks, 66)
    signs = _signs(_sign_masks(blocks.device)[(words >> 9).cast(dtypes.int32)])
    return factor * _point("IQ2_XS", words & 511) * signs


@_quant(22, 256, 82)
def iq2_s(blocks: Tensor) -> Tensor:
    """Groups of 16 with scales of 4 bits; a point of 8 has 10 bits, each element its own sign."""
    high = _each(blocks[..., 66:74], 2, 4).flatten(-2).cast(dtypes.uint16) << 8
    indices = _in_groups(blocks[..., 2:34].cast(dtypes.uint16) | high, 16)
    return _quarter_scales(blocks, 74) * _point("IQ2_S", indices) * _signs(_in_groups(blocks[..., 34:66], 16))


def _quarter_scales(blocks: Tensor, begin: int) -> Tensor:
    """(s + 1/2) d / 4 of 16 groups, with two axes of one element behind."""
    scales = _each(blocks[..., begin : begin + 8], 4, 2).flatten(-2)
    factor = _halves(blocks, 0) * (scales.float() + 0.5) * 0.25
    return factor.reshape(*factor.shape, 1, 1)


@_quant(18, 256, 98)
def iq3_xxs(blocks: Tensor) -> Tensor:
    """Groups of 32: eight points of 4, and in a word behind all of them four signs of 8 and a scale of 4 bits."""
    words = blocks[..., 66:98].bitcast(dtypes.uint32)
    factor = _halves(blocks, 0) * ((words >> 28).float() + 0.5) * 0.5
    points = _point("IQ3_XXS", blocks[..., 2:66]).reshape(*blocks.shape[:2], 8, 4, 8)
    return factor.reshape(*factor.shape, 1, 1) * points * _packed_signs(words)


@_quant(21, 256, 110)
def iq3_s(blocks: Tensor) -> Tensor:
    """Groups of 32 with scales of 4 bits; a point of 4 has 9 bits, each element its own sign."""
    scales = _each(blocks[..., 106:110], 4, 2).flatten(-2)
    factor = _halves(blocks, 0) * (scales * 2 + 1).float()
    high = _each(blocks[..., 66:74], 1, 8).flatten(-2).cast(dtypes.uint16) << 8
    points = _point("IQ3_S", blocks[..., 2:66].cast(dtypes.uint16) | high).reshape(*blocks.shape[:2], 8, 4, 8)
    return factor.reshape(*factor.shape, 1, 1) * points * _signs(_in_groups(blocks[..., 74:106], 8))


_SHIFT = 0.125
"""How far the points of the IQ1 types lie beside the lattice."""


@_quant(19, 256, 50)
def iq1_s(blocks: Tensor) -> Tensor:
    """Groups of 32: (2 s + 1) d * (point of 8 +- 1/8), points of 11 bits."""
    words = blocks[..., 34:50].bitcast(dtypes.uint16)
    factor = _halves(blocks, 0) * (((words >> 12) & 7) * 2 + 1).float()
    shift = ((words & 0x8000) == 0).where(_SHIFT, -_SHIFT)
    indices = _in_groups(blocks[..., 2:34].cast(dtypes.uint16), 8) | (_each(words, 3, 4) << 8)
    axes = (*words.shape, 1, 1)
    return factor.reshape(axes) * (_point("IQ1_S", indices) + shift.reshape(axes))


@_quant(29, 256, 56)
def iq1_m(blocks: Tensor) -> Tensor:
    """As IQ1_S in groups of 16; d is spread over the highest 4 bits of the words of scales."""
    words = blocks[..., 48:56].bitcast(dtypes.uint16)
    parts = (words & 0xF000) >> Tensor([12, 8, 4, 0], dtype=dtypes.uint16, device=blocks.device)
    d = (parts[..., 0] | parts[..., 1] | parts[..., 2] | parts[..., 3]).bitcast(dtypes.float16).float()
    factor = d.unsqueeze(-1) * (_each(words, 3, 4).flatten(-2) * 2 + 1).float()
    nibbles = _each(blocks[..., 32:48], 4, 2).flatten(-2)
    indices = blocks[..., :32].cast(dtypes.uint16) | ((nibbles & 7).cast(dtypes.uint16) << 8)
    shift = ((nibbles & 8) == 0).where(_SHIFT, -_SHIFT)
    points = _point("IQ1_M", indices) + shift.unsqueeze(-1)
    return factor.reshape(*factor.shape, 1, 1) * _in_groups(points, 16).reshape(*blocks.shape[:2], 16, 2, 8)
