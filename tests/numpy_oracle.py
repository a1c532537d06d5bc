"""Evaluates elementwise graphs on whole NumPy arrays, for tests that sweep large parts of a type's range.

Takes the nodes and an array for each leaf; gives an array for each node.  Every operation rounds once to
its type, `FMA` included; values of bfloat16 and of floats of 8 bits are kept as float32 arrays.  Only operations
of processors are known here: the elementary functions must have been decomposed before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from lazulite.ir import ops
from lazulite.ir.dtype import EIGHT_BITS, NARROW, DType, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp, toposort

Array = Any
_KEPT_WIDE = EIGHT_BITS | {dtypes.bfloat16}


def leaf(dtype: DType, slot: int = 0, low: int | None = None, high: int | None = None) -> UOp:
    """A free variable."""
    return UOp(ops.SCALAR, dtype, (), (slot, low, high))


def numpy_type(dtype: DType) -> Any:
    names = {**dict.fromkeys(_KEPT_WIDE, "float32"), dtypes.index: "int64", dtypes.bool: "bool"}
    return np.dtype(names.get(dtype, dtype.name))


def evaluate(root: UOp, values: Mapping[UOp, Array]) -> Array:
    """The elements of `root`."""
    done: dict[UOp, Array] = {node: np.asarray(array, numpy_type(node.dtype)) for node, array in values.items()}
    uses: dict[UOp, int] = {}
    order = toposort(root, enter=lambda node: node not in done)
    for node in order:
        for source in node.src if node not in values else ():
            uses[source] = uses.get(source, 0) + 1
    with np.errstate(all="ignore"):
        for node in order:
            if node not in done:
                done[node] = _element(node, [done[source] for source in node.src])
            for source in node.src if node not in values else ():
                uses[source] -= 1
                if not uses[source]:
                    del done[source]
    return done[root]


def _element(node: UOp, operands: list[Array]) -> Array:
    kind = numpy_type(node.dtype)
    if node.op is ops.CONST:
        return np.asarray(node.value, kind)
    if node.op is ops.CAST:
        return _cast(operands[0], node.src[0].dtype, node.dtype)
    if node.op is ops.BITCAST:
        return _bitcast(operands[0], node.src[0].dtype, node.dtype)
    if node.op is ops.FMA and node.dtype.is_float:
        return _fma(node.dtype, *operands)
    if node.op in (ops.SHL, ops.SHR):
        count = operands[1]
        assert np.all((count >= 0) & (count < node.dtype.bits)), "a shift by the width or more"
    if node.dtype in NARROW and node.op not in (ops.WHERE, ops.NEG):
        raise AssertionError(f"{node!r} computes in a narrow type")
    return np.asarray(_FUNCTIONS[node.op](*operands), kind)


def _divide(x: Array, y: Array) -> Array:
    assert np.all(y != 0), "a division that traps"
    if np.issubdtype(np.asarray(x).dtype, np.signedinteger):
        assert not np.any((y == -1) & (x == np.iinfo(np.asarray(x).dtype).min)), "a division that traps"
    quotient = np.floor_divide(x, y)
    return np.where((quotient * y != x) & ((x < 0) != (y < 0)), quotient + 1, quotient)


def _maximum(x: Array, y: Array) -> Array:
    both = np.maximum(x, y)
    return np.where((x == y) & (x == 0) & ~np.signbit(x), x, both) if both.dtype.kind == "f" else both


def _minimum(x: Array, y: Array) -> Array:
    both = np.minimum(x, y)
    return np.where((x == y) & (x == 0) & np.signbit(x), x, both) if both.dtype.kind == "f" else both


_FUNCTIONS: dict[Op, Callable[..., Array]] = {
    ops.ADD: np.add, ops.SUB: np.subtract, ops.MUL: np.multiply, ops.DIV: np.divide, ops.NEG: np.negative,
    ops.SQRT: np.sqrt, ops.FLOOR: np.floor, ops.TRUNC: np.trunc, ops.ROUND: np.rint,
    ops.MAX: _maximum, ops.MIN: _minimum, ops.CDIV: _divide, ops.CMOD: lambda x, y: x - _divide(x, y) * y,
    ops.LT: np.less, ops.LE: np.less_equal, ops.EQ: np.equal, ops.NE: np.not_equal, ops.WHERE: np.where,
    ops.AND: np.bitwise_and, ops.OR: np.bitwise_or, ops.XOR: np.bitwise_xor, ops.NOT: np.invert,
    ops.MAXNUM: lambda x, y: np.where(np.isnan(x), y, np.where(np.isnan(y), x, _maximum(x, y))),
    ops.MINNUM: lambda x, y: np.where(np.isnan(x), y, np.where(np.isnan(y), x, _minimum(x, y))),
    ops.SCALEB: lambda x, n: np.where(np.isnan(n), n, np.ldexp(x, np.nan_to_num(n).astype(np.int32))),
    ops.SHL: np.left_shift, ops.SHR: np.right_shift,
}  # fmt: skip


def bfloat16_bits(x: Array) -> Array:
    """The bits of float32 values that are bfloat16 values."""
    return (np.asarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def bfloat16_values(bits: Array) -> Array:
    """bfloat16 values, as float32, from their bits."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


def _bitcast(x: Array, source: DType, dtype: DType) -> Array:
    if source in EIGHT_BITS:
        x = np.array([source.to_bits(float(value)) for value in np.ravel(x)], np.uint8).reshape(np.shape(x))
    bits = bfloat16_bits(x) if source is dtypes.bfloat16 else x
    if dtype in EIGHT_BITS:
        return np.float32([dtype.from_bits(code) for code in range(256)])[np.asarray(bits).view(np.uint8)]
    return bfloat16_values(bits) if dtype is dtypes.bfloat16 else np.asarray(bits).view(numpy_type(dtype))


def _cast(x: Array, source: DType, dtype: DType) -> Array:
    assert not _KEPT_WIDE & {source, dtype}, "a conversion that no processor has"
    if source.is_float and dtype.is_int:
        low, high = int(dtype.min), int(dtype.max)
        inside = (x > low - 1.0) & (x < high + 1.0)
        whole = np.where(inside, x, 0).astype(np.uint64 if dtype is dtypes.uint64 else np.int64)
        return np.where(x >= high + 1.0, high, np.where(x <= low, low, whole)).astype(numpy_type(dtype))
    return np.asarray(x).astype(numpy_type(dtype))


def _fma(dtype: DType, x: Array, y: Array, z: Array) -> Array:
    """Exact product and sum, rounded once; for float64 within a range where no part underflows."""
    if dtype is dtypes.float64:
        return _fma_double(x, y, z)
    x, y, z = (np.asarray(value, np.float64) for value in (x, y, z))
    return _odd_sum(x * y, z).astype(numpy_type(dtype))


def _two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _odd_sum(x: Array, y: Array) -> Array:
    total, error = _two_sum(x, y)
    total, error = np.atleast_1d(total), np.atleast_1d(error)
    bits = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(error) & np.isfinite(total) & (bits & 1 == 0)
    step = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(inexact, (bits + step).view(np.float64), total).reshape(np.broadcast(x, y).shape)


def _fma_double(x: Array, y: Array, z: Array) -> Array:
    def split(value: Array) -> tuple[Array, Array]:
        scaled = value * 134217729.0
        high = scaled - (scaled - value)
        return high, value - high

    x, y, z = np.broadcast_arrays(*(np.asarray(value, np.float64) for value in (x, y, z)))
    product = x * y
    (xh, xl), (yh, yl) = split(x), split(y)
    error = ((xh * yh - product) + xh * yl + xl * yh) + xl * yl
    middle, low = _two_sum(z, error)
    leading, rest = _two_sum(product, middle)
    result = leading + _odd_sum(low, rest)
    return np.where(np.isfinite(product) & np.isfinite(z) & np.isfinite(result), result, product + z)
