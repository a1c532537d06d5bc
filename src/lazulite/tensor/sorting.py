"""Order: sorting, the largest elements, medians and quantiles, distinct values.

NaN counts as larger than everything, -0.0 as equal to 0.0; equal elements keep their order.  Sorting takes
time that grows with the number of elements (`tensor/radix.py`); the gradient goes back to where each
element came from.
"""

from __future__ import annotations

from typing import Any, Self

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import counted, one_axis
from lazulite.tensor.gather import GatherMethods
from lazulite.tensor.radix import order_of

_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
_SIGNED = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


class SortMethods(GatherMethods):
    """Methods that put elements in order."""

    __slots__ = ()

    def sort(self, dim: int = -1, descending: bool = False) -> tuple[Self, Self]:
        """The elements along an axis in order, and the int32 positions that they come from.

        Equal elements keep their order, in descending order too; NaN is larger than all others, as in PyTorch.

        >>> [part.tolist() for part in Tensor([3, 1, 2]).sort()]
        [[1, 2, 3], [1, 2, 0]]
        """
        order = self._order("sort", dim, descending)
        return (self.gather(dim, order) if self.shape else self), order

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """The int32 positions that put the elements along an axis in order.

        >>> Tensor([3, 1, 2]).argsort(descending=True).tolist()
        [0, 2, 1]
        """
        return self._order("argsort", dim, descending)

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> tuple[Self, Self]:
        """The `k` largest (or smallest) elements along an axis, in order, and their int32 positions.

        They come in order whatever `sorted_` says.

        >>> [part.tolist() for part in Tensor([3, 1, 2]).topk(2)]
        [[3, 2], [0, 2]]
        """
        size = self.shape[one_axis("topk", dim, len(self.shape))] if self.shape else 1
        if not 0 <= k <= size:
            raise ArgumentError("topk", f"k is from 0 to the {size} elements of the axis, got {k}")
        order = self._order("topk", dim, largest)._first_along(dim, k)
        return (self.gather(dim, order) if self.shape else self), order

    def kthvalue(self, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Self, Self]:
        """The `k`-th smallest element along an axis, counted from 1, and its int32 position.

        >>> [part.item() for part in Tensor([3, 1, 2]).kthvalue(2)]
        [2, 2]
        """
        size = self.shape[one_axis("kthvalue", dim, len(self.shape))] if self.shape else 1
        if not 1 <= k <= size:
            raise ArgumentError("kthvalue", f"k is from 1 to the {size} elements of the axis, got {k}")
        parts = self.topk(k, dim, largest=False)
        last = [part.flip(dim)._first_along(dim, 1) if part.shape else part for part in parts]
        return tuple([part if keepdim or not part.shape else part.squeeze(dim) for part in last])  # type: ignore[return-value]

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
        low, place = self.kthvalue((size + 1) // 2, dim, keepdim)
        if not self.dtype.is_float or not self.shape:
            return low, place
        high, is_nan = self.max(dim, keepdim), self._derived(self.uop.ne(self.uop).cast(dtypes.int32))
        return high.ne(high).where(high, low), high.ne(high).where(is_nan.argmax(dim, keepdim), place)

    def unique(self, return_counts: bool = False) -> Any:
        """The distinct elements of all axes in ascending order; with `return_counts` how often each stands there, too.

        How many there are is looked up now.  Each NaN is one of its own.

        >>> [part.tolist() for part in Tensor([3, 1, 3]).unique(return_counts=True)]
        [[1, 3], [1, 2]]
        """
        flat: Any = self.flatten()
        if not flat.shape[0]:
            return (flat, flat.cast(dtypes.int32)) if return_counts else flat
        ordered = flat.sort()[0].realize()
        first = flat.full_like(True, dtype=dtypes.bool)[:1].cat(ordered[1:].ne(ordered[:-1]))
        places = first.nonzero().flatten()
        found = ordered.take(places)
        if not return_counts:
            return found
        ends = places[1:].cat(places[:1].full_like(flat.shape[0]))
        return found, ends - places

    # --- the order ----------------------------------------------------------------------------------

    def _order(self, function: str, dim: int, descending: bool) -> Self:
        """The positions that sort an axis."""
        if not self.shape:
            one_axis(function, dim, 1)
            return self._derived(UOp.const(dtypes.int32, 0))
        axis = one_axis(function, dim, len(self.shape))
        moved = self.transpose(axis, -1)
        if 0 in self.shape:
            return self._derived(counted(self.shape, axis))
        keys = moved._keys(descending).reshape((-1, self.shape[axis]))
        order = self._derived(order_of(keys.uop, lambda node: self._derived(node).cumsum(-1).uop))
        return order.reshape(moved.shape).transpose(axis, -1)

    def _keys(self, descending: bool) -> Self:
        """Unsigned integers in the order of the elements."""
        node, dtype = self.uop.cast(dtypes.uint8) if self.dtype is dtypes.bool else self.uop, self.dtype
        size = dtype.itemsize
        if dtype.is_float:
            node = _float_keys(node + 0.0, dtype)
        elif dtype.is_int and dtype.min < 0:
            node = UOp(ops.BITCAST, _UNSIGNED[size], (node,)) ^ (1 << (8 * size - 1))
        return self._derived(~node if descending else node)

    def _first_along(self, dim: int, count: int) -> Self:
        """The first elements of an axis."""
        if not self.shape:
            return self
        axis = one_axis("topk", dim, len(self.shape))
        return self.shrink([(0, count if each == axis else size) for each, size in enumerate(self.shape)])


def _float_keys(x: UOp, dtype: DType) -> UOp:
    """The bits, all inverted below zero and the sign otherwise; those of NaN become the greatest."""
    size = dtype.itemsize
    bits = UOp(ops.BITCAST, _SIGNED[size], (x,))
    sign = bits >> (8 * size - 1)
    unsigned = UOp(ops.BITCAST, _UNSIGNED[size], (bits ^ (sign | (-1 << (8 * size - 1))),))
    return x.ne(x).where(UOp.const(_UNSIGNED[size], (1 << 8 * size) - 1), unsigned)
