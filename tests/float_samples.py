"""What tests of lowering share: sample values of a type, distances in units in the last place, a plain processor."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from lazulite.ir import ops
from lazulite.ir.dtype import NARROW, DType, Scalar, dtypes
from lazulite.ir.uop import UOp, toposort
from numpy_oracle import numpy_type

Array = Any
FUNCTIONS = (ops.EXP, ops.EXP2, ops.LOG, ops.LOG2, ops.SIN, ops.COS, ops.TAN, ops.TANH, ops.ERF, ops.POW)
_BASIC = frozenset({
    ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.SQRT, ops.CDIV, ops.CMOD, ops.AND, ops.OR, ops.XOR, ops.WHERE,
    ops.LT, ops.LE, ops.EQ, ops.NE, ops.BITCAST, ops.CAST,
})  # fmt: skip


def processor(node: UOp) -> bool:
    """The operations of the least machine: no multiply-add, rounding, maximum or narrow floats; plain shifts."""
    source = node.src[0].dtype
    if node.op in (ops.SHL, ops.SHR):
        return False
    if node.op in (ops.MAX, ops.MIN):
        return source.is_int
    if node.op is ops.CAST:
        return not (_hard_cast(source, node.dtype) or source in NARROW or node.dtype in NARROW)
    return node.op in _BASIC and (source not in NARROW or node.op is ops.BITCAST)


def _hard_cast(source: DType, dtype: DType) -> bool:
    if source.is_float:
        return dtype.is_integral
    return source is dtypes.bool or dtype is dtypes.bool or (source.bits == 64 and dtype.is_float)


def modern_processor(node: UOp) -> bool:
    """A machine with multiply-add and rounding instructions."""
    return node.op in (ops.FMA, ops.ROUND, ops.FLOOR, ops.TRUNC) or processor(node)


def wide_processor(node: UOp) -> bool:
    """One that also multiplies by powers of two."""
    return node.op is ops.SCALEB or modern_processor(node)


def cost(root: UOp) -> int:
    """How many instructions an expression takes, reinterpreted bits not counted."""
    return sum(1 for node in toposort(root) if node.src and node.op is not ops.BITCAST)


def samples(dtype: DType, count: int = 1000, seed: int = 0) -> list[Scalar]:
    """Values of a type: all edges, and random ones of every magnitude."""
    rng = random.Random(seed)
    if dtype is dtypes.bool:
        return [False, True]
    if dtype.is_int:
        low, high = int(dtype.min), int(dtype.max)
        powers = [sign * (1 << k) + d for k in range(dtype.bits) for sign in (1, -1) for d in (-1, 0, 1)]
        some = [rng.getrandbits(rng.randint(1, 64)) * rng.choice((1, -1)) for _ in range(count)]
        return [value for value in (low, high, 0, high // 2, *powers, *some) if low <= value <= high]
    bits = [dtype.from_bits(rng.getrandbits(dtype.bits)) for _ in range(count)]
    near = [dtype.round(s * 2.0**k + d) for s in (1, -1) for k in range(65) for d in (-1, -0.5, 0, 0.5, 1)]
    ordinary = [dtype.round(rng.uniform(-300, 300)) for _ in range(count)]
    edges = [0.0, -0.0, math.inf, -math.inf, math.nan, dtype.largest, -dtype.largest, dtype.from_bits(1)]
    return [dtype.round(edge) for edge in edges] + bits + near + ordinary


def array(dtype: DType, values: list[Scalar]) -> Array:
    return np.array(values, numpy_type(dtype))


def assert_same(expected: Array, found: Array, *operands: Array) -> None:
    """Equal values, NaN for NaN and the sign of zeros included."""
    found = np.broadcast_to(found, expected.shape)
    same = expected == found
    if expected.dtype.kind == "f":
        same = (same & (np.signbit(expected) == np.signbit(found))) | (np.isnan(expected) & np.isnan(found))
    wrong = np.flatnonzero(~same)
    shown = [(*(x[i] for x in operands), "expected", expected[i], "found", found[i]) for i in wrong[:3]]
    assert not len(wrong), f"{len(wrong)} wrong, such as {shown}"


def ulps(found: Array, exact: Array) -> Array:
    """How far float32 results are from float64 references; infinite where a special value is wrong."""
    nearest = exact.astype(np.float32)
    finite = np.isfinite(exact) & (exact != 0)
    exponent = np.floor(np.log2(np.abs(np.where(finite, exact, 1.0)))).clip(-126, 127)
    error = np.abs(found.astype(np.float64) - exact) / 2.0 ** (exponent - 23)
    largest = np.float32(dtypes.float32.largest)
    error = np.where(
        np.isinf(nearest), np.where(found == nearest, 0, np.where(np.abs(found) == largest, 1, np.inf)), error
    )
    error = np.where(
        np.isnan(nearest) | np.isnan(found), np.where(np.isnan(nearest) & np.isnan(found), 0, np.inf), error
    )
    return np.where((nearest == 0) & (found == 0) & (np.signbit(nearest) != np.signbit(found)), np.inf, error)


def every_float32(step: int) -> Array:
    """Every `step`-th float32 in the order of its bits, so every exponent and both signs."""
    return np.arange(0, 1 << 32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)


def around(*centres: float, count: int = 2000) -> Array:
    """The floats on both sides of some numbers, without a gap."""
    bits = np.array(centres, np.float32).view(np.int32)[:, None] + np.arange(-count, count, dtype=np.int32)
    return bits.ravel().view(np.float32)
