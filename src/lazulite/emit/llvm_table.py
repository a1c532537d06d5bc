"""The instruction of each operation, by kind of type: what stands here needs no decomposition.

A text that begins with ``@`` names an intrinsic; one with ``{a}`` is a whole right side; any other is
an instruction with the operands after it.  Casts are `llvm_types.conversion`'s; INDEX quotients that may be
negative are spelled out by the emitter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from lazulite.emit.llvm_types import conversion, literal, signature, type_name, vector_literal
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.ops import Op

# op: (float, signed, unsigned, bool, INDEX); "" where the operation does not exist for the kind
_ROWS: dict[Op, tuple[str, str, str, str, str]] = {
    ops.ADD: ("fadd", "add", "add", "", "add"),
    ops.SUB: ("fsub", "sub", "sub", "", "sub"),
    ops.MUL: ("fmul", "mul", "mul", "", "mul"),
    ops.DIV: ("fdiv", "", "", "", ""),
    ops.MAX: ("@llvm.maximum", "@llvm.smax", "@llvm.umax", "or", "@llvm.smax"),
    ops.MIN: ("@llvm.minimum", "@llvm.smin", "@llvm.umin", "and", "@llvm.smin"),
    ops.MAXNUM: ("@llvm.maximumnum", "", "", "", ""),
    ops.MINNUM: ("@llvm.minimumnum", "", "", "", ""),
    ops.NEG: ("fneg", "sub {t} zeroinitializer, {a}", "sub {t} zeroinitializer, {a}", "", ""),
    ops.FMA: ("@llvm.fma", "", "", "", ""),
    ops.LT: ("fcmp olt", "icmp slt", "icmp ult", "icmp ult", "icmp slt"),
    ops.LE: ("fcmp ole", "icmp sle", "icmp ule", "icmp ule", "icmp sle"),
    ops.EQ: ("fcmp oeq", "icmp eq", "icmp eq", "icmp eq", "icmp eq"),
    ops.NE: ("fcmp une", "icmp ne", "icmp ne", "icmp ne", "icmp ne"),
    ops.AND: ("", "and", "and", "and", ""),
    ops.OR: ("", "or", "or", "or", ""),
    ops.XOR: ("", "xor", "xor", "xor", ""),
    ops.NOT: ("", "xor {t} {a}, {ones}", "xor {t} {a}, {ones}", "xor {t} {a}, {ones}", ""),
    ops.SHL: ("", "shl", "shl", "", "shl"),
    ops.SHR: ("", "ashr", "lshr", "", "ashr"),
    ops.CDIV: ("", "sdiv", "udiv", "", "udiv"),
    ops.CMOD: ("", "srem", "urem", "", "urem"),
    ops.SQRT: ("@llvm.sqrt", "", "", "", ""),
    ops.FLOOR: ("@llvm.floor", "", "", "", ""),
    ops.TRUNC: ("@llvm.trunc", "", "", "", ""),
    ops.ROUND: ("@llvm.roundeven", "", "", "", ""),
}
_KINDS = ("float", "int", "uint", "bool", "index")

# For INDEX, where the dividend and the divisor are known not to be negative.
UNSIGNED_INDEX = {ops.FLOORDIV: "udiv", ops.MOD: "urem"}

# The instructions of AVX-512 that only intrinsics of its own reach work on registers of these sizes.
REGISTER_BYTES = (16, 32, 64)
# The instruction that multiplies signed 16-bit integers and adds neighbours, by lanes of 32 bits.
ADD_PAIRS = {4: "@llvm.x86.sse2.pmadd.wd", 8: "@llvm.x86.avx2.pmadd.wd", 16: "@llvm.x86.avx512.pmaddw.d.512"}
# What `vrange` is to do: choose the smaller or larger, with its own sign.
RANGE_CONTROL = {ops.MINNUM: 4, ops.MAXNUM: 5}

NATIVE: dict[tuple[Op, str], str] = {
    (op, kind): text for op, row in _ROWS.items() for kind, text in zip(_KINDS, row, strict=True) if text
}


class Instruction(NamedTuple):
    """A right side, with braces for the operands, and the intrinsic that it calls with its declaration."""

    text: str
    declared: Mapping[str, str]


@cache
def instruction(op: Op, dtype: DType, source: DType, first: int, lanes: int, bits: int) -> Instruction | None:
    """The instruction of an operation on vectors (`lanes` 0: on numbers), INDEX `bits` wide; None where there is none.

    The first operand, of type `source`, has lanes of its own where it is the gate of a choice.

    >>> instruction(ops.ADD, dtypes.int32, dtypes.int32, 8, 8, 32).text
    'add <8 x i32> {}, {}'
    """
    kind, result = type_name(source, lanes, bits), type_name(dtype, lanes, bits)
    if op is ops.WHERE:
        return Instruction(f"select {type_name(source, first)} {{}}, {result} {{}}, {result} {{}}", {})
    if op is ops.BITCAST:
        return Instruction(f"bitcast {kind} {{}} to {result}", {})
    if op is ops.CAST:
        return _conversion(source, dtype, lanes, bits)
    form = NATIVE.get((op, source.kind))
    if form is None or op in RANGE_CONTROL:
        return None
    places = ["{}"] * (op.operands or 0)
    if form.startswith("@"):
        return _call(form, kind, [kind] * len(places), [kind])
    if "{a}" in form:
        one = "true" if dtype is dtypes.bool else "-1"
        return Instruction(form.format(t=kind, a="{}", ones=f"splat ({type_name(dtype)} {one})" if lanes else one), {})
    return Instruction(f"{form} {kind} {', '.join(places)}", {})


def _conversion(source: DType, dtype: DType, lanes: int, bits: int) -> Instruction | None:
    """That of a CAST; None where the value stays as it is, and for half, which takes more."""
    old, new = (dtypes.int32 if each is dtypes.index and bits == 32 else each for each in (source, dtype))
    kind, result, form = type_name(source, lanes, bits), type_name(dtype, lanes, bits), conversion(old, new)
    if dtypes.float16 in (source, dtype) or not form:
        return None
    if source is dtypes.bool and dtype.is_float and lanes:
        one = vector_literal(type_name(dtype), [literal(dtype, 1.0)])
        return Instruction(f"select {kind} {{}}, {result} {one}, {result} zeroinitializer", {})
    if form == "nonzero":
        return Instruction(f"{'fcmp une' if source.is_float else 'icmp ne'} {kind} {{}}, zeroinitializer", {})
    if form.startswith("@"):
        return _call(form, result, [kind], [result, kind])
    return Instruction(f"{form} {kind} {{}} to {result}", {})


def _call(name: str, result: str, kinds: Sequence[str], overloads: Sequence[str]) -> Instruction:
    full, declaration = signature(name, result, tuple(kinds), tuple(overloads))
    return Instruction(f"call {result} {full}({', '.join([f'{kind} {{}}' for kind in kinds])})", {full: declaration})
