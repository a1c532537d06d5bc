"""How types, constants and conversions are spelled in LLVM's assembly language.

Half and bfloat16 values are their bits, `i16`, floats of 8 bits `i8`: what is not arithmetic needs no more, and
LLVM would call a library to move some of them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache, lru_cache

from lazulite.ir.dtype import DType, Scalar, dtypes

_NAMES = {
    dtypes.bool: "i1", dtypes.float16: "i16", dtypes.bfloat16: "i16", dtypes.float32: "float",
    dtypes.float64: "double", dtypes.index: "i64",
}  # fmt: skip
_SUFFIX = {"float": "f32", "double": "f64"}


@cache
def type_name(dtype: DType, lanes: int = 0, bits: int = 64) -> str:
    """The type of a value; `lanes` makes it a vector, `bits` is the width of an INDEX.

    >>> type_name(dtypes.float32, 16), type_name(dtypes.index, 4, 32)
    ('<16 x float>', '<4 x i32>')
    """
    name = f"i{bits}" if dtype is dtypes.index else _NAMES.get(dtype) or f"i{dtype.bits}"
    return f"<{lanes} x {name}>" if lanes else name


@cache
def suffix(type_text: str) -> str:
    """How an intrinsic's name spells a type.

    >>> suffix("<16 x float>"), suffix("i32"), suffix("ptr")
    ('v16f32', 'i32', 'p0')
    """
    if type_text.startswith("<"):
        count, _, element = type_text[1:-1].split()
        return f"v{count}{suffix(element)}"
    return "p0" if type_text == "ptr" else _SUFFIX.get(type_text, type_text)


def literal(dtype: DType, value: Scalar) -> str:
    """A scalar constant.

    >>> literal(dtypes.float32, 1.0), literal(dtypes.bool, True), literal(dtypes.float16, 1.0)
    ('0x3FF0000000000000', 'true', '15360')
    """
    if dtype is dtypes.bool:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(int(value))
    return float_literal(dtype, dtype.to_bits(value))


@lru_cache(1 << 12)
def constant(dtype: DType, value: int, lanes: int, bits: int) -> str:
    """What a `CONST` holds, in every lane of a vector where there are lanes; an INDEX is `bits` wide.

    >>> constant(dtypes.int32, 3, 0, 64), constant(dtypes.index, 3, 8, 32)
    ('3', 'splat (i32 3)')
    """
    text = float_literal(dtype, value) if dtype.is_float else literal(dtype, value)
    return f"splat ({type_name(dtype, 0, bits)} {text})" if lanes else text


def float_literal(dtype: DType, bits: int) -> str:
    """A float constant from its bits; a float32 is written as the double with the same value."""
    if dtype.bits <= 16:
        return str(bits)
    if dtype is dtypes.float32:
        if bits & 0x7F800000 == 0x7F800000:  # infinities and NaNs: a conversion would quieten the latter
            bits = (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
        else:
            value = struct.unpack("<f", bits.to_bytes(4, "little"))[0]
            bits = int.from_bytes(struct.pack("<d", value), "little")
    return f"0x{bits:016X}"


def vector_literal(element: str, values: Sequence[str]) -> str:
    """A vector constant.

    >>> vector_literal("i32", ["1", "2"]), vector_literal("i32", ["3", "3"])
    ('<i32 1, i32 2>', 'splat (i32 3)')
    """
    if len(set(values)) == 1:
        return f"splat ({element} {values[0]})"
    return "<" + ", ".join([f"{element} {value}" for value in values]) + ">"


@lru_cache(1 << 12)
def lane_numbers(chosen: Sequence[int]) -> str:
    """The mask of a shuffle.

    >>> lane_numbers((0, 2))
    '<2 x i32> <i32 0, i32 2>'
    """
    return f"<{len(chosen)} x i32> <{', '.join([f'i32 {lane}' for lane in chosen])}>"


@cache
def signature(intrinsic: str, result: str, operands: tuple[str, ...], overloads: tuple[str, ...]) -> tuple[str, str]:
    """The name of an intrinsic that is overloaded in these types, and its declaration.

    >>> signature("@llvm.fma", "float", ("float", "float", "float"), ("float",))
    ('@llvm.fma.f32', 'declare float @llvm.fma.f32(float, float, float)')
    """
    name = ".".join([intrinsic, *map(suffix, overloads)])
    return name, f"declare {result} {name}({', '.join(operands)})"


def conversion(source: DType, result: DType) -> str:
    """The instruction of a CAST between stored types or from INDEX; "" where the value stays as it is.

    A name that begins with ``@`` is an intrinsic; ``nonzero`` compares with zero.
    """
    if result is dtypes.bool:
        return "nonzero"
    if source.is_float and result.is_float:
        return "fpext" if result.bits > source.bits else "fptrunc" if result.bits < source.bits else ""
    if source.is_float:
        return "@llvm.fptosi.sat" if result.kind in ("int", "index") else "@llvm.fptoui.sat"
    if result.is_float:
        return "sitofp" if source.kind in ("int", "index") else "uitofp"
    if result.bits < source.bits:
        return "trunc"
    if result.bits == source.bits:
        return ""
    return "sext" if source.kind in ("int", "index") else "zext"
