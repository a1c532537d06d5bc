"""Order: sorting, the largest elements, medians and quantiles, distinct values.

NaN counts as larger than everything, -0.0 as equal to 0.0; equal elements keep their order.  Sorting takes
time and memory that grow with the number of elements (`tensor/radix.py`, `tensor/row_sort.py`), and little where only
the first elements are wanted (`tensor/selection.py`).  The gradient goes back to where each element came from.
"""

from __future__ import annotations

import math
from typing import Any, Self

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.size import most
from lazulite.ir.uop import UOp
from lazulite.ir.widest import widest
from lazulite.tensor.base import counted, one_axis, sizes_argument
from lazulite.tensor.gather import GatherMethods

_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
_SIGNED = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


class SortMethods(GatherMethods):
    """Methods that put elements in order."""

    __slots__ = ()

    def sort(self, dim: int = -1, descending: bool = False, stable: bool = True) -> tuple[Self, Self]:
        """The elements along an axis in order, and the int32 positions that they come from.

        Equal elements keep their order, in descending order too and whatever `stable` says; NaN is larger than all
        others, as in PyTorch.  Time and memory grow with the number of elements: with both results a million float32
        take at most 6.5 times their own memory.

        >>> [part.tolist() for part in Tensor([3, 1, 2]).sort()]
        [[1, 2, 3], [1, 2, 0]]
        """
        order = self._order("sort", dim, descending)
        return (self.gather(dim, order) if self.shape else self), order

    def argsort(self, dim: int = -1, descending: bool = False, stable: bool = True) -> Self:
        """The int32 positions that put the elements along an axis in order, equal ones in theirs.

        >>> Tensor([3, 1, 2]).argsort(descending=True).tolist()
        [0, 2, 1]
        """
        return self._order("argsort", dim, descending)

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> tuple[Self, Self]:
        """The `k` largest (or smallest) elements along an axis, in order, and their int32 positions.

        They come in order whatever `sorted_` says, equal elements in theirs.  For few of many it takes one pass over
        the elements and a tenth of their memory, for many no more than `sort`.

        >>> [part.tolist() for part in Tensor([3, 1, 2]).topk(2)]
        [[3, 2], [0, 2]]
        """
        size = self.shape[one_axis("topk", dim, len(self.shape))] if self.shape else 1
        (k,) = sizes_argument("topk", (k,))
        if not 0 <= k <= size:
            raise ArgumentError("topk", f"k is from 0 to the {size} elements of the axis, got {k}")
        order = self._order("topk", dim, largest, (0, k))
        return (self.gather(dim, order) if self.shape else self), order

    def kthvalue(self, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Self, Self]:
        """The `k`-th smallest element along an axis, counted from 1, and its int32 position.

        >>> [part.item() for part in Tensor([3, 1, 2]).kthvalue(2)]
        [2, 2]
        """
        size = self.shape[one_axis("kthvalue", dim, len(self.shape))] if self.shape else 1
        (k,) = sizes_argument("kthvalue", (k,))
        if not 1 <= k <= size:
            raise ArgumentError("kthvalue", f"k is from 1 to the {size} elements of the axis, got {k}")
        return self._of_rank("kthvalue", k, dim, keepdim)

    def _of_rank(self, function: str, k: int, dim: int, keepdim: bool) -> tuple[Self, Self]:
        """The `k`-th smallest element along an axis and its position."""
        order = self._order(function, dim, False, (k - 1, k))
        parts = (self.gather(dim, order) if self.shape else self), order
        return tuple([part if keepdim or not part.shape else part.squeeze(dim) for part in parts])  # type: ignore[return-value]

    def median(self, dim: int | None = None, keepdim: bool = False) -> Any:
        """The lower middle element: of all, or along an axis with its int32 position, as in PyTorch.

        NaN wherever there is one.

        >>> Tensor([4.0, 1.0, 3.0, 2.0]).median().item()
        2.0
        """
        if dim is None:
            return self.flatten().median(0, keepdim)[0]
        size = self.shape[one_axis("median", dim, len(self.shape))] if self.shape else 1
        if not size:
            raise ShapeError("median", f"an axis of no elements has no middle: {self.shape}", about={"tensor": self})
        low, place = self._of_rank("median", (size + 1) // 2, dim, keepdim)
        if not self.dtype.is_float or not self.shape:
            return low, place
        high, is_nan = self.max(dim, keepdim), self._derived(self.uop.ne(self.uop).cast(dtypes.int32))
        return high.ne(high).where(high, low), high.ne(high).where(is_nan.argmax(dim, keepdim), place)

    def unique(
        self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """The distinct elements of all axes in ascending order, or the distinct parts along one in lexicographic order.

        `return_inverse` adds, for each element, which one it is; `return_counts` how often each stands there; both
        int32.  How many there are is looked up now.  Each NaN is one of its own; they come in order whatever
        `sorted` says.

        >>> [part.tolist() for part in Tensor([3, 1, 3]).unique(return_counts=True)]
        [[1, 3], [1, 2]]
        """
        if dim is not None:
            from lazulite.tensor.unique import unique_parts

            return unique_parts(self, one_axis("unique", dim, len(self.shape)), return_inverse, return_counts)
        values, order = self.flatten().sort()
        return _runs(self, values, order, return_inverse, return_counts)

    def unique_consecutive(
        self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        """One element for each stretch of equal ones, of the flattened tensor or of the parts along an axis.

        `return_inverse` and `return_counts` as in `unique`; how many there are is looked up now.

        >>> Tensor([1, 1, 2, 1]).unique_consecutive().tolist()
        [1, 2, 1]
        """
        if dim is not None:
            from lazulite.tensor.unique import consecutive_parts

            return consecutive_parts(
                self, one_axis("unique_consecutive", dim, len(self.shape)), return_inverse, return_counts
            )
        return _runs(self, self.flatten(), None, return_inverse, return_counts)

    # --- the order ----------------------------------------------------------------------------------

    def _order(self, function: str, dim: int, descending: bool, part: tuple[int, int] | None = None) -> Self:
        """The positions that sort an axis, or those from one rank to another."""
        from lazulite.tensor.selection import first_of

        if not self.shape:
            one_axis(function, dim, 1)
            return self._derived(UOp.const(dtypes.int32, 0))
        axis = one_axis(function, dim, len(self.shape))
        moved = self.transpose(axis, -1)
        box = (*[(0, size) for size in moved.shape[:-1]], part or (0, self.shape[axis]))
        if 0 in self.shape:
            empty = tuple([end - begin for begin, end in box])
            return self._derived(counted(empty, len(empty) - 1)).transpose(axis, -1)
        wide = widest(moved.uop)
        rows = UOp(ops.RESHAPE, wide.dtype, (wide,), (math.prod(wide.shape[:-1]), wide.shape[-1]))
        count = most(box[-1][1])
        order = first_of(rows, lambda x: _keys(x, descending), self.shape[axis], count)
        order = UOp(ops.RESHAPE, order.dtype, (order,), (*wide.shape[:-1], count))
        return self._derived(UOp(ops.SHRINK, order.dtype, (order,), box)).transpose(axis, -1)


def _runs(tensor: Any, values: Any, order: Any, with_inverse: bool, with_counts: bool) -> Any:
    """The first of each run of equal values; `order` says where the values come from in the flattened tensor."""
    size = values.shape[0]
    values = values.realize()
    first = values.full_like(True, dtype=dtypes.bool)
    first = first[:1].cat(values[1:].ne(values[:-1])) if size else first
    places = first.nonzero().flatten()
    results = [values.take(places)]
    if with_inverse:
        number = first.cast(dtypes.int32).cumsum(0) - 1 if size else first.cast(dtypes.int32)
        inverse = number if order is None else number.zeros_like().scatter(0, order, number) if size else number
        results.append(inverse.reshape(tensor.shape))
    if with_counts:
        ends = places[1:].cat(places[:1].full_like(size)) if size else places
        results.append(ends - places)
    return results[0] if len(results) == 1 else tuple(results)


def _keys(x: UOp, descending: bool) -> UOp:
    """Unsigned integers in the order of the elements."""
    size = x.dtype.itemsize
    if x.dtype is dtypes.bool:
        x = x.cast(dtypes.uint8)
    elif x.dtype.is_float:
        x = _float_keys(x + 0.0, x.dtype)
    elif x.dtype.min < 0:
        x = UOp(ops.BITCAST, _UNSIGNED[size], (x,)) ^ (1 << (8 * size - 1))
    return ~x if descending else x


def _float_keys(x: UOp, dtype: DType) -> UOp:
    """The bits, all inverted below zero and the sign otherwise; those of NaN become the greatest."""
    size = dtype.itemsize
    bits = UOp(ops.BITCAST, _SIGNED[size], (x,))
    sign = bits >> (8 * size - 1)
    unsigned = UOp(ops.BITCAST, _UNSIGNED[size], (bits ^ (sign | (-1 << (8 * size - 1))),))
    return x.ne(x).where(UOp.const(_UNSIGNED[size], (1 << 8 * size) - 1), unsigned)
