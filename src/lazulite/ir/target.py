"""What the compiler knows about the machine it writes code for: `Target`, a plain value.

A target is part of every cache key.  `host()` describes this machine (`ir/host.py`); `CPU_FEATURES` (such as
``-avx512f,-avx2``) switches features off, so the same machine can stand for smaller ones.  The features decide
everything else: the vector width, the register count, which (operation, type) pairs have an instruction, and
what matrix units multiply.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property

from lazulite.base.errors import SettingError, nearest
from lazulite.ir import ops
from lazulite.ir.dtype import BOOL, FLOATS, INDEX, INTS, DType, dtypes
from lazulite.ir.host import caches, flags, tile_permission
from lazulite.ir.ops import Op

# Features that change the code we write or that LLVM may use freely, in the kernel's spelling and LLVM's.
_FEATURES = {
    "sse3": "sse3", "pni": "sse3", "ssse3": "ssse3", "sse4_1": "sse4.1", "sse4_2": "sse4.2", "popcnt": "popcnt",
    "avx": "avx", "f16c": "f16c", "fma": "fma", "avx2": "avx2", "bmi1": "bmi", "bmi2": "bmi2", "abm": "lzcnt",
    "avx512f": "avx512f", "avx512bw": "avx512bw", "avx512dq": "avx512dq", "avx512vl": "avx512vl",
    "avx512cd": "avx512cd", "avx512_fp16": "avx512fp16", "avx512_bf16": "avx512bf16", "avx512_vnni": "avx512vnni",
    "avx_vnni": "avxvnni",
    "amx": "amx-tile", "amx_tile": "amx-tile", "amx_bf16": "amx-bf16", "amx_int8": "amx-int8", "amx_fp16": "amx-fp16",
}  # fmt: skip
# What goes when a feature is switched off: everything that builds on it.
_NEEDS = {
    "sse3": "", "ssse3": "sse3", "sse4.1": "ssse3", "sse4.2": "sse4.1", "avx": "sse4.2", "f16c": "avx", "fma": "avx",
    "avx2": "avx", "avx512f": "avx2 fma f16c", "avx512bw": "avx512f", "avx512dq": "avx512f", "avx512vl": "avx512f",
    "avx512cd": "avx512f", "avx512fp16": "avx512bw avx512vl avx512dq", "avx512bf16": "avx512bw avx512vl",
    "avx512vnni": "avx512f", "avxvnni": "avx2", "amx-bf16": "amx-tile", "amx-int8": "amx-tile", "amx-fp16": "amx-tile",
}  # fmt: skip

_TILES = "amx-tile"

_EVERYWHERE = (ops.LT, ops.LE, ops.EQ, ops.NE, ops.WHERE, ops.CAST, ops.BITCAST)
_ARITHMETIC = (ops.ADD, ops.SUB, ops.MUL, ops.MAX, ops.MIN, ops.NEG)
_BITWISE = (ops.AND, ops.OR, ops.XOR, ops.NOT)
_INTEGER = (ops.SHL, ops.SHR, ops.CDIV, ops.CMOD)
_WIDE_FLOATS = (dtypes.float32, dtypes.float64)


@dataclass(frozen=True, slots=True)
class MatrixInstruction:
    """What one instruction of a matrix unit does: result += left @ right, where the result is (rows, columns).

    The left operand, (rows, depth), is read row by row.  The right one is packed: its outermost axis counts groups
    of `group` neighbours along the depth, the next one columns, the innermost one the members of a group.
    """

    left: DType
    right: DType
    result: DType
    rows: int
    columns: int
    depth: int
    group: int

    def __str__(self) -> str:
        return f"{self.left.name} x {self.right.name} to {self.result.name}, {self.rows}x{self.columns}x{self.depth}"

    @property
    def types(self) -> tuple[DType, DType, DType]:
        return self.left, self.right, self.result


def _tile_instruction(left: DType, right: DType, result: DType) -> MatrixInstruction:
    """One of AMX, whose tile registers have 16 rows of 64 bytes, in groups of 4."""
    return MatrixInstruction(left, right, result, 16, 16, 64 // left.itemsize, 4 // left.itemsize)


_MATRIX_UNITS = {
    "amx-bf16": ((dtypes.bfloat16, dtypes.bfloat16, dtypes.float32),),
    "amx-fp16": ((dtypes.float16, dtypes.float16, dtypes.float32),),
    "amx-int8": (
        (dtypes.int8, dtypes.int8, dtypes.int32), (dtypes.int8, dtypes.uint8, dtypes.int32),
        (dtypes.uint8, dtypes.int8, dtypes.int32), (dtypes.uint8, dtypes.uint8, dtypes.uint32),
    ),
}  # fmt: skip

# Vectors of how many bytes need which feature (none where every processor can do it) for sums of so many products.
_DOT_PRODUCTS = (
    (64, "avx512vnni", (dtypes.uint8, dtypes.int8, dtypes.int32), 4),
    (32, "avxvnni", (dtypes.uint8, dtypes.int8, dtypes.int32), 4),
    (0, "", (dtypes.int16, dtypes.int16, dtypes.int32), 2),
)


@dataclass(frozen=True)
class Target:
    """One kind of machine and the code generator for it."""

    name: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    """Features in LLVM's spelling, sorted."""
    vector_bytes: int
    registers: int
    """How many vector registers there are."""
    l1: int
    l2: int
    l3: int
    threads: int
    native: frozenset[tuple[Op, DType]]
    """The elementwise operations with an instruction, by the type of the first value operand."""
    matrix: tuple[MatrixInstruction, ...] = ()
    """What its matrix units do."""

    @cached_property
    def key(self) -> str:
        """A short text that differs whenever generated code may differ."""
        facts = (self.name, self.triple, self.cpu, self.features, self.vector_bytes, self.registers, self.l1, self.l2,
                 self.threads, self.matrix)  # fmt: skip
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

    @property
    def machine(self) -> str:
        """What a machine has to be to run the code."""
        return f"{self.name} {self.triple} {self.cpu} {' '.join(self.features)}"

    @cached_property
    def with_vectors_only(self) -> Target:
        """The same machine, its matrix units left alone."""
        return replace(self, matrix=())

    @cached_property
    def dot_products(self) -> tuple[MatrixInstruction, ...]:
        """What vector instructions add to each lane, the sums of the most products first: matrix units of one row."""
        lanes = self.lanes(dtypes.int32)
        return tuple([MatrixInstruction(*types, rows=1, columns=lanes, depth=group, group=group)
                      for width, feature, types, group in _DOT_PRODUCTS
                      if not feature or (feature in self.features and width == self.vector_bytes)])  # fmt: skip

    def lanes(self, dtype: DType) -> int:
        """How many elements of a type fill one vector."""
        return max(1, self.vector_bytes // dtype.itemsize)

    def has(self, op: Op, dtype: DType) -> bool:
        """Whether the operation on this type needs no decomposition."""
        return (op, dtype) in self.native


def _native(features: frozenset[str]) -> frozenset[tuple[Op, DType]]:
    """Which operations have instructions, given the features of an x86-64 processor."""
    pairs = {(op, dtype) for op in _EVERYWHERE for dtype in INTS | BOOL | INDEX | set(_WIDE_FLOATS)}
    pairs |= {(op, dtype) for op in _ARITHMETIC for dtype in INTS | INDEX | set(_WIDE_FLOATS)}
    pairs |= {(op, dtype) for op in _BITWISE for dtype in INTS | BOOL}
    pairs |= {(op, dtype) for op in _INTEGER for dtype in INTS | INDEX}
    pairs |= {(op, dtypes.bool) for op in (ops.MAX, ops.MIN)}
    pairs -= {(ops.NEG, dtypes.index)}
    pairs |= {(op, dtypes.index) for op in (ops.FLOORDIV, ops.MOD)}
    pairs |= {(op, dtype) for op in (ops.DIV, ops.SQRT) for dtype in _WIDE_FLOATS}
    pairs |= {(ops.DOT2, dtypes.int32)}
    if "fma" in features:
        pairs |= {(ops.FMA, dtype) for dtype in _WIDE_FLOATS}
    if "sse4.1" in features:
        pairs |= {(op, dtype) for op in (ops.FLOOR, ops.TRUNC, ops.ROUND) for dtype in _WIDE_FLOATS}
    if "avx512vl" in features:
        pairs |= {(ops.SCALEB, dtype) for dtype in _WIDE_FLOATS}
    if "avx512dq" in features and "avx512vl" in features:
        pairs |= {(op, dtype) for op in (ops.MAXNUM, ops.MINNUM) for dtype in _WIDE_FLOATS}
    if "f16c" in features:
        pairs |= {(ops.CAST, dtypes.float16)}
    pairs |= {(ops.BITCAST, dtype) for dtype in FLOATS}
    return frozenset(pairs)


def _matrix(features: frozenset[str]) -> tuple[MatrixInstruction, ...]:
    return tuple([_tile_instruction(*each) for unit, types in _MATRIX_UNITS.items() if unit in features
                  for each in types])  # fmt: skip


@cache
def target(
    name: str, features: tuple[str, ...], l1: int = 32 << 10, l2: int = 1 << 20, l3: int = 16 << 20, threads: int = 1
) -> Target:
    """A target for x86-64 Linux with these features."""
    known = frozenset(features)
    wide = "avx512f" in known and "avx512vl" in known and "avx512bw" in known and "avx512dq" in known
    width = 64 if wide else 32 if "avx2" in known else 16
    return Target(name, "x86_64-unknown-linux-gnu", "x86-64", tuple(sorted(known)), width, 32 if wide else 16,
                  l1, l2, l3, threads, _native(known), _matrix(known))  # fmt: skip


def without(features: Iterable[str], removed: Iterable[str]) -> tuple[str, ...]:
    """The features left when some are switched off, with everything that builds on those.

    >>> without(("avx", "avx2", "fma", "sse3", "ssse3"), ("avx",))
    ('sse3', 'ssse3')
    """
    gone = set(removed)
    left = set(features)
    while True:
        lost = {f for f in left if f in gone or gone & set(_NEEDS.get(f, "").split())}
        if not lost:
            return tuple(sorted(left))
        gone |= lost
        left -= lost


@cache
def host(switches: str = "", threads: int = 0) -> Target:
    """This machine; `switches` removes features, written ``-avx512f,-avx2``."""
    found = {_FEATURES[flag] for flag in flags() if flag in _FEATURES}
    features = without(found, [_feature(part.removeprefix("-")) for part in switches.split(",") if part])
    if _TILES in features and not tile_permission():
        features = without(features, (_TILES,))
    l1, l2, l3 = caches()
    return target("CPU:LLVM", features, l1, l2, l3, threads or len(os.sched_getaffinity(0)))


def _feature(name: str) -> str:
    """A feature in LLVM's spelling, named in either."""
    if name in _FEATURES.values():
        return name
    if name not in _FEATURES:
        known = sorted({*_FEATURES, *_FEATURES.values()})
        raise SettingError(
            "CPU_FEATURES", f"there is no processor feature {name}",
            rule=f"The features are {', '.join(known)}.", hint=nearest(name, known),
        )  # fmt: skip
    return _FEATURES[name]
