"""Running sums, products and extrema along an axis.

A scan is done in blocks: within a block of up to 16 elements, a vector, every prefix is reduced on its own, then the
totals of the blocks are scanned the same way and enter the blocks as offsets.  Work is 16 operations an
element and memory stays linear.  The shape never changes; a tensor without axes is its own scan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Self

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.size import most
from lazulite.ir.uop import UOp
from lazulite.tensor.base import DTypeLike, as_dtype, counted, detached, expanded, float_dtype, one_axis, wide_dtype
from lazulite.tensor.reduce import ReduceMethods, reduced, sum_dtype

_BLOCK = 16


class ScanMethods(ReduceMethods):
    """Scans."""

    __slots__ = ()

    def cumsum(self, axis: int = 0, *, dim: int | None = None, dtype: DTypeLike | None = None) -> Self:
        """The sum of all elements up to each one, in the type that `sum` has or in `dtype` (B073, B074, B104).

        >>> Tensor([1, 2, 3]).cumsum().tolist()
        [1, 3, 6]
        """
        return self._running_total("cumsum", ops.ADD, axis if dim is None else dim, dtype)

    def cumprod(self, axis: int = 0, *, dim: int | None = None, dtype: DTypeLike | None = None) -> Self:
        """The product of all elements up to each one, in the type that `prod` has or in `dtype`.

        >>> Tensor([1, 2, 3]).cumprod(0).tolist()
        [1, 2, 6]
        """
        return self._running_total("cumprod", ops.MUL, axis if dim is None else dim, dtype)

    def cummax(self, axis: int = 0, *, dim: int | None = None) -> tuple[Self, Self]:
        """The largest element up to each one, and the int32 position where it first stood; NaN stays (B058).

        >>> [part.tolist() for part in Tensor([1, 3, 3, 2]).cummax()]
        [[1, 3, 3, 3], [0, 1, 1, 1]]
        """
        return self._running_extremum("cummax", ops.MAX, axis if dim is None else dim)

    def cummin(self, axis: int = 0, *, dim: int | None = None) -> tuple[Self, Self]:
        """The smallest element up to each one, and the int32 position where it first stood; NaN stays.

        >>> [part.tolist() for part in Tensor([3, 1, 1, 2]).cummin()]
        [[3, 1, 1, 1], [0, 1, 1, 1]]
        """
        return self._running_extremum("cummin", ops.MIN, axis if dim is None else dim)

    def logcumsumexp(self, axis: int = 0, *, dim: int | None = None) -> Self:
        """log(exp(x).cumsum()), without overflow, and right where elements are infinite (B053).

        >>> Tensor([0.0, 100.0]).logcumsumexp().tolist()
        [0.0, 100.0]
        """
        x = self.uop.cast(wide_dtype(self.dtype))
        result = self._along_last("logcumsumexp", axis if dim is None else dim, x, _log_scan)
        return self._derived(result.cast(float_dtype(self.dtype)))

    def _running_total(self, function: str, op: Op, axis: int, dtype: DTypeLike | None) -> Self:
        result = sum_dtype(self.dtype) if dtype is None else as_dtype(function, dtype)
        wide: DType = wide_dtype(result) if result.is_float else result
        scanned = self._along_last(function, axis, self.uop.cast(wide), lambda x: _scan(op, x))
        return self._derived(scanned.cast(result))

    def _running_extremum(self, function: str, op: Op, axis: int) -> tuple[Self, Self]:
        values = self._along_last(function, axis, self.uop, lambda x: _scan(op, x))
        places = self._along_last(function, axis, self.uop, lambda x: _first_places(op, x))
        return self._derived(values), self._derived(places.cast(dtypes.int32))

    def _along_last(self, function: str, axis: int, x: UOp, scan: Callable[[UOp], UOp]) -> UOp:
        """A scan of the last axis applied to another one."""
        rank = len(x.shape)
        at = one_axis(function, axis, rank)
        if not rank:
            scanned = scan(UOp(ops.RESHAPE, x.dtype, (x,), (1,)))
            return UOp(ops.RESHAPE, scanned.dtype, (scanned,), ())
        order = (*[other for other in range(rank) if other != at], at)
        scanned = scan(UOp(ops.PERMUTE, x.dtype, (x,), order))
        return UOp(ops.PERMUTE, scanned.dtype, (scanned,), tuple(sorted(range(rank), key=order.__getitem__)))


# --- as nodes: scans of the last axis ----------------------------------------------------------------


def _scan(op: Op, x: UOp) -> UOp:
    """Each element combined with all before it."""
    nothing = UOp.const(x.dtype, op.identity(x.dtype) if op.identity else 0)

    def within(blocks: UOp) -> UOp:
        pairs, gate = _prefixes(blocks)
        return _last_dropped(reduced(op, gate.where(pairs, nothing), (len(pairs.shape) - 1,)))

    return _blocked(x, within, lambda before, own: UOp.apply(op, before, own), nothing)


def _log_scan(x: UOp) -> UOp:
    """log(sum(exp)) of each element and all before it."""
    return _blocked(x, _log_prefixes, _log_add, UOp.const(x.dtype, -math.inf))


def _blocked(x: UOp, within: Callable[[UOp], UOp], combine: Callable[[UOp, UOp], UOp], nothing: UOp) -> UOp:
    """A scan from its way within a block and the way in which what stands before a block enters it."""
    size = x.shape[-1]
    if most(size) <= _BLOCK:
        return within(x) if size not in (0, 1) else x
    count = -(-size // _BLOCK)
    lead = x.shape[:-1]
    filled = _last(ops.PAD, x, (0, count * _BLOCK - size))
    blocks = within(UOp(ops.RESHAPE, x.dtype, (filled,), (*lead, count, _BLOCK)))
    totals = UOp(ops.RESHAPE, x.dtype, (_last(ops.SHRINK, blocks, (_BLOCK - 1, _BLOCK)),), (*lead, count))
    before = _shifted(_blocked(totals, within, combine, nothing), nothing)
    before = expanded(UOp(ops.RESHAPE, x.dtype, (before,), (*lead, count, 1)), blocks.shape)
    whole = UOp(ops.RESHAPE, x.dtype, (combine(before, blocks),), (*lead, count * _BLOCK))
    return _last(ops.SHRINK, whole, (0, size))


def _first_places(op: Op, x: UOp) -> UOp:
    """The position of the element that the running extremum is, the first of equals."""
    if not x.shape[-1]:
        return x.cast(dtypes.int32)
    before = _shifted(_scan(op, x), UOp.const(x.dtype, 0))
    better = x > before if op is ops.MAX else x < before
    if x.dtype.is_float:
        better = better | (x.ne(x) & before.eq(before))
    return _scan(ops.MAX, better.where(counted(x.shape, len(x.shape) - 1), UOp.const(dtypes.int32, 0)))


def _prefixes(x: UOp) -> tuple[UOp, UOp]:
    """All elements for each element along a new last axis, and which of them do not come later."""
    size = x.shape[-1]
    full = (*x.shape, size)
    row = expanded(UOp(ops.RESHAPE, x.dtype, (x,), (*x.shape[:-1], 1, size)), full)
    return row, counted(full, len(full) - 1) <= counted(full, len(full) - 2)


def _log_prefixes(x: UOp) -> UOp:
    row, gate = _prefixes(x)
    nothing, axes = UOp.const(x.dtype, -math.inf), (len(row.shape) - 1,)
    row = gate.where(row, nothing)
    shift = _finite(detached(reduced(ops.MAX, row, axes)))
    total = reduced(ops.ADD, UOp.apply(ops.EXP, row - expanded(shift, row.shape)), axes)
    return _last_dropped(UOp.apply(ops.LOG, total) + shift)


def _log_add(x: UOp, y: UOp) -> UOp:
    shift = _finite(detached(UOp.apply(ops.MAX, x, y)))
    return UOp.apply(ops.LOG, UOp.apply(ops.EXP, x - shift) + UOp.apply(ops.EXP, y - shift)) + shift


def _finite(x: UOp) -> UOp:
    """0 where a shift is infinite or NaN."""
    return ((x < math.inf) & (x > -math.inf)).where(x, UOp.const(x.dtype, 0))


def _last_dropped(x: UOp) -> UOp:
    return UOp(ops.RESHAPE, x.dtype, (x,), x.shape[:-1])


def _last(op: Op, x: UOp, pair: tuple[int, int]) -> UOp:
    """A PAD or SHRINK of the last axis."""
    others = [(0, size if op is ops.SHRINK else 0) for size in x.shape[:-1]]
    return UOp(op, x.dtype, (x,), (*others, pair))


def _shifted(x: UOp, first: UOp) -> UOp:
    """Each element moved one place on, the first one given."""
    moved = _last(ops.PAD, _last(ops.SHRINK, x, (0, x.shape[-1] - 1)), (1, 0))
    if first.is_const(0):
        return moved
    return counted(x.shape, len(x.shape) - 1).eq(0).where(first, moved)
