"""The instruction of each operation, by kind of type: what stands here needs no decomposition.

A text that begins with ``@`` names an intrinsic; one with ``{a}`` is a whole right side; any other is
an instruction with the operands after it.  Casts are `llvm_types.conversion`'s; INDEX quotients that may be
negative are spelled out by the emitter.
"""

from __future__ import annotations

from lazulite.ir import ops
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
