"""Values placed, added and taken by index tensors, beyond `gather` and `scatter`; and searches in sorted values.

Negative positions count from the end; positions outside read 0 and place nothing.  Of several values at one place
the last one counts, sums count all.  All are one pass over the values (`autograd.scatter`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from lazulite.autograd.scatter import scattered
from lazulite.base.errors import ArgumentError, DTypeError, ShapeError
from lazulite.ir import dtype as types
from lazulite.ir import ops
from lazulite.ir.dtype import Scalar, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.tensor.base import (
    DeviceLike,
    as_dtype,
    broadcast_shape,
    constant,
    counted,
    expanded,
    one_axis,
    plain_scalar,
)
from lazulite.tensor.parts import PartMethods
from lazulite.tensor.picking import host_positions, position_node
from lazulite.tensor.sorting import SortMethods

_MOST_PLACES = 1 << 26


class PlaceMethods(PartMethods, SortMethods):
    """Placing by positions, and searching."""

    __slots__ = ()

    # --- along an axis ----------------------------------------------------------------------------------

    def scatter_add(self, dim: int, index: Any, src: Any) -> Self:
        """This tensor with src[.., i, ..] added at [.., index[.., i, ..], ..].

        Many values are summed up in blocks, whose number does not depend on that of the threads.  For as many
        float32 as places it takes at most 4.5 times their memory, the result included.

        >>> Tensor([0, 0]).scatter_add(0, Tensor([1, 1]), Tensor([2, 3])).tolist()
        [0, 5]
        """
        return self.scatter(dim, index, src, reduce="add")

    def index_add(self, dim: int, index: Any, source: Any, *, alpha: Scalar = 1) -> Self:
        """This with the parts of `source` along an axis, times `alpha`, added at these positions.

        >>> Tensor([0, 0, 0]).index_add(0, Tensor([2, 2]), Tensor([5, 6])).tolist()
        [0, 0, 11]
        """
        values: Any = self._tensor("index_add", source)
        return self._placed("index_add", ops.ADD, dim, index, values if alpha == 1 else values * alpha)

    def index_copy(self, dim: int, index: Any, source: Any) -> Self:
        """This with the parts of `source` along an axis at these positions.

        >>> Tensor([0, 0, 0]).index_copy(0, Tensor([2, 0]), Tensor([5, 6])).tolist()
        [6, 0, 5]
        """
        return self._placed("index_copy", None, dim, index, self._tensor("index_copy", source))

    def index_fill(self, dim: int, index: Any, value: Any) -> Self:
        """This with a number at these positions of an axis.

        >>> Tensor([[1, 2], [3, 4]]).index_fill(1, Tensor([0]), 7).tolist()
        [[7, 2], [7, 4]]
        """
        positions = self._tensor("index_fill", index)
        count = math.prod(positions.shape)
        axis = one_axis("index_fill", dim, len(self.shape))
        shape = tuple([count if at == axis else size for at, size in enumerate(self.shape)])
        scalar = plain_scalar(value)
        node = constant(self.dtype, scalar) if scalar is not None else self._tensor("index_fill", value).uop
        if node.shape:
            raise ShapeError("index_fill", f"the value is a number, got {node.shape}", about={"tensor": self})
        return self._placed("index_fill", None, dim, index, self._derived(expanded(node.cast(self.dtype), shape)))

    def index_reduce(self, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Self:
        """This with the parts of `source` combined at these positions: "prod", "mean", "amax" or "amin".

        >>> Tensor([1, 1]).index_reduce(0, Tensor([0, 0]), Tensor([2, 3]), "prod").tolist()
        [6, 1]
        """
        values, positions = self._tensor("index_reduce", source), self._tensor("index_reduce", index).flatten()
        axis = one_axis("index_reduce", dim, len(self.shape))
        self._check_parts("index_reduce", axis, positions, values)
        if not self.shape:
            return (
                self.reshape(1)
                .index_reduce(0, index, values.reshape(-1), reduce, include_self=include_self)
                .reshape(())
            )
        along = positions.reshape([-1 if at == axis else 1 for at in range(len(self.shape))]).expand(values.shape)
        return self.scatter_reduce(axis, along, values, reduce, include_self)

    def _check_parts(self, function: str, axis: int, positions: Any, values: Any) -> None:
        wanted = tuple([positions.numel() if at == axis else size for at, size in enumerate(self.shape)])
        if values.shape != wanted and self.shape:
            raise ShapeError(
                function, f"the source has shape {values.shape}, the place {wanted}",
                about={"tensor": self, "source": values},
            )  # fmt: skip

    def _placed(self, function: str, op: Op | None, dim: int, index: Any, values: Any) -> Self:
        """Parts of values along an axis placed at positions of it."""
        axis, positions = one_axis(function, dim, len(self.shape)), self._tensor(function, index).flatten()
        if not self.shape:
            return self.reshape(1)._placed(function, op, 0, index, values.reshape(-1)).reshape(())
        self._check_parts(function, axis, positions, values)
        places = position_node(function, positions, self.shape[axis])
        front, moved = self.movedim(axis, 0), values.movedim(axis, 0)
        result = scattered(op, front.uop, (places,), moved.uop.cast(self.dtype))
        return self._derived(result).movedim(0, axis)

    def take_along_dim(self, indices: Any, dim: int | None = None) -> Self:
        """`gather` where all other axes broadcast; without `dim`, from the flattened tensor.

        >>> Tensor([[3, 1, 2]]).take_along_dim(Tensor([[1, 2, 0]]), 1).tolist()
        [[1, 2, 3]]
        """
        positions: Any = self._tensor("take_along_dim", indices)
        if dim is None:
            return self.flatten().gather(0, positions.flatten())
        axis = one_axis("take_along_dim", dim, len(self.shape))
        if len(positions.shape) != len(self.shape):
            raise ShapeError(
                "take_along_dim", f"indices of shape {positions.shape} do not fit {self.shape}", about={"tensor": self}
            )
        lead = [x.narrow(axis, 0, 1) if x.shape[axis] else x.sum(axis, keepdim=True) for x in (self, positions)]
        shape = broadcast_shape("take_along_dim", lead)
        wide = self.expand((*shape[:axis], self.shape[axis], *shape[axis + 1 :]))
        return wide.gather(axis, positions.expand((*shape[:axis], positions.shape[axis], *shape[axis + 1 :])))

    # --- in the flattened tensor, and on several axes -------------------------------------------------------

    def put(self, index: Any, source: Any, accumulate: bool = False) -> Self:
        """This with the elements of `source` at positions of the flattened tensor, or added there.

        >>> Tensor([[1, 2], [3, 4]]).put(Tensor([0, 3]), Tensor([7, 8])).tolist()
        [[7, 2], [3, 8]]
        """
        places = position_node("put", self._tensor("put", index).flatten(), self.numel())
        values = self._tensor("put", source).flatten()
        if values.shape != places.shape:
            raise ShapeError("put", f"{places.shape[0]} positions for {values.shape[0]} values", about={"tensor": self})
        op = ops.ADD if accumulate else None
        placed = scattered(op, self.flatten().uop, (places,), values.uop.cast(self.dtype))
        return self._derived(placed).reshape(self.shape)

    def index_put(self, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Self:
        """This with self[indices] = values; with `accumulate`, added, values of one place too.

        >>> Tensor([0, 0]).index_put((Tensor([1, 1]),), Tensor([2, 3]), accumulate=True).tolist()
        [0, 5]
        """
        if not accumulate:
            copy = self._derived(UOp(ops.COPY, self.dtype, (self.uop,), self.device))
            copy[tuple(indices)] = values
            return copy
        places = [self._tensor("index_put", index) for index in indices]
        found: list[Any] = []
        for index in places:
            found += (
                [self._tensor("index_put", p) for p in host_positions(index)] if index.dtype is dtypes.bool else [index]
            )
        shape = broadcast_shape("index_put", found)
        nodes = [
            expanded(position_node("index_put", index, self.shape[axis]), shape) for axis, index in enumerate(found)
        ]
        target = (*shape, *self.shape[len(found) :])
        value = self._tensor("index_put", values).expand(target).uop.cast(self.dtype)
        return self._derived(scattered(ops.ADD, self.uop, nodes, value))

    def masked_scatter(self, mask: Any, source: Any) -> Self:
        """This with the elements of `source`, in their order, where the mask is true.

        >>> Tensor([1, 2, 3]).masked_scatter(Tensor([True, False, True]), Tensor([7, 8])).tolist()
        [7, 2, 8]
        """
        gate: Any = self._tensor("masked_scatter", mask)
        if gate.dtype is not dtypes.bool:
            raise DTypeError("masked_scatter", f"a mask is bool, got {gate.dtype.name}", about={"mask": gate})
        shape = broadcast_shape("masked_scatter", [self, gate])
        flags = gate.expand(shape).flatten()
        if not flags.shape[0]:
            return self.expand(shape)
        values: Any = self._tensor("masked_scatter", source)
        if not values.numel():
            return self.expand(shape)
        number = (flags.cumsum(0) - 1).maximum(0).minimum(values.numel() - 1)
        picked = values.take(number).cast(self.dtype).reshape(shape)
        return gate.where(picked, self)  # type: ignore[no-any-return]

    def fill_diagonal_(self, fill_value: Scalar, wrap: bool = False) -> Self:
        """Write a number to the diagonal of all axes, in place; `wrap` begins again below a tall matrix.

        >>> Tensor([[1, 2], [3, 4]]).fill_diagonal_(0).tolist()
        [[0, 2], [3, 0]]
        """
        rank = len(self.shape)
        if rank < 2 or (rank > 2 and len(set(self.shape)) > 1):
            raise ShapeError("fill_diagonal_", f"all sizes must be equal, got {self.shape}", about={"tensor": self})
        step = sum(math.prod(self.shape[axis + 1 :]) for axis in range(rank))
        count = self.numel() if wrap else min(self.numel(), step * min(self.shape))
        places = type(self).arange(0, count, step, device=self.device)
        if not wrap and rank == 2:
            places = places[: min(self.shape)]
        value = self._derived(expanded(constant(self.dtype, fill_value), places.shape))
        return self.assign(self.put(places, value))

    # --- positions --------------------------------------------------------------------------------------

    def argwhere(self) -> Self:
        """`nonzero` by its other name.

        >>> Tensor([0, 1, 2]).argwhere().tolist()
        [[1], [2]]
        """
        return self.nonzero()  # type: ignore[no-any-return]

    def nonzero_static(self, *, size: int, fill_value: int = -1) -> Self:
        """`nonzero` with a given number of rows, nothing looked at yet.

        >>> Tensor([0, 1, 2]).nonzero_static(size=3).tolist()
        [[1], [2], [-1]]
        """
        return self.nonzero(size, fill_value)  # type: ignore[no-any-return]

    @classmethod
    def tril_indices(cls, row: int, col: int, offset: int = 0, device: DeviceLike = None, dtype: Any = "int32") -> Self:
        """Row and column of each element on or below a diagonal of a matrix, in row-major order.

        >>> Tensor.tril_indices(2, 2).tolist()
        [[0, 1, 1], [0, 0, 1]]
        """
        _require_small("tril_indices", row, col)
        pairs = [(i, j) for i in range(row) for j in range(min(max(i + offset + 1, 0), col))]
        return cls._pairs(pairs, device, dtype)

    @classmethod
    def triu_indices(cls, row: int, col: int, offset: int = 0, device: DeviceLike = None, dtype: Any = "int32") -> Self:
        """Row and column of each element on or above a diagonal of a matrix, in row-major order.

        >>> Tensor.triu_indices(2, 2).tolist()
        [[0, 0, 1], [0, 1, 1]]
        """
        _require_small("triu_indices", row, col)
        pairs = [(i, j) for i in range(row) for j in range(min(max(i + offset, 0), col), col)]
        return cls._pairs(pairs, device, dtype)

    @classmethod
    def _pairs(cls, pairs: list[tuple[int, int]], device: DeviceLike, dtype: Any) -> Self:
        columns = [list(part) for part in zip(*pairs, strict=True)] or [[], []]
        return cls(columns, device=device, dtype=as_dtype("tril_indices", dtype))

    # --- searches ---------------------------------------------------------------------------------------

    def searchsorted(
        self, values: Any, *, out_int32: bool = True, right: bool = False, side: str | None = None
    ) -> Self:
        """Where each value goes into this ascending vector (or into each row) without breaking the order.

        Before equal elements, with `right` (or side="right") behind them.  NaN goes last.  int32, unless
        `out_int32` is False.  A binary search: log2 steps for all values together.

        >>> Tensor([1, 3, 5]).searchsorted(Tensor([3, 6])).tolist()
        [1, 3]
        """
        if side not in (None, "left", "right"):
            raise ArgumentError("searchsorted", f"side is 'left' or 'right', not {side!r}")
        wanted: Any = self._tensor("searchsorted", values)
        if not self.shape or (len(self.shape) > 1 and self.shape[:-1] != wanted.shape[:-1]):
            raise ShapeError(
                "searchsorted", f"values of shape {wanted.shape} do not go into {self.shape}",
                about={"sorted": self, "values": wanted},
                rule="All axes but the last are equal, or the sorted values are one vector.",
            )  # fmt: skip
        dtype = types.promote(self.dtype, wanted.dtype)
        found = _search(self.uop.cast(dtype), wanted.uop.cast(dtype), right or side == "right")
        return self._derived(found if out_int32 else found.cast(dtypes.int64))

    def bucketize(self, boundaries: Any, *, out_int32: bool = True, right: bool = False) -> Self:
        """For each element the number of ascending boundaries below it; with `right` the equal ones count, too.

        >>> Tensor([0, 3, 9]).bucketize(Tensor([1, 3])).tolist()
        [0, 1, 2]
        """
        edges: Any = self._tensor("bucketize", boundaries)
        if len(edges.shape) != 1:
            raise ShapeError("bucketize", f"boundaries are a vector, got {edges.shape}", about={"boundaries": edges})
        return edges.searchsorted(self, out_int32=out_int32, right=right)  # type: ignore[no-any-return]


def _require_small(function: str, row: int, col: int) -> None:
    """Raise for a matrix whose places nobody can list."""
    if row * col > _MOST_PLACES:
        raise ShapeError(function, f"a matrix of {row} rows and {col} columns has too many places to list")


def _search(ordered: UOp, values: UOp, right: bool) -> UOp:
    """A binary search of each value in the last axis of `ordered`, all at once."""
    size = ordered.shape[-1]
    low = expanded(UOp.const(dtypes.int32, 0), values.shape)
    if not size:
        return low
    high = expanded(UOp.const(dtypes.int32, size), values.shape)
    lead = [counted(values.shape, axis) for axis in range(len(values.shape) - 1)] if len(ordered.shape) > 1 else []
    for _ in range(size.bit_length()):
        middle = (low + high) >> 1
        at = UOp.apply(ops.MIN, middle, UOp.const(dtypes.int32, size - 1))
        here = UOp(ops.GATHER, ordered.dtype, (ordered, *lead, at))
        before = _at_most(here, values) if right else _less(here, values)
        before = before & (low < high)
        low, high = before.where(middle + 1, low), before.where(high, middle)
    return low


def _less(x: UOp, y: UOp) -> UOp:
    """x < y, where NaN is larger than all numbers."""
    return (x < y) | (x.eq(x) & y.ne(y)) if x.dtype.is_float else x < y


def _at_most(x: UOp, y: UOp) -> UOp:
    return ~_less(y, x)
