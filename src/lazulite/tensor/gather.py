"""Elements picked and placed by index tensors along one axis, and by masks.

Negative positions count from the end.  Positions outside the axis read 0 and place nothing.  Reading
costs one load an element, placing one store (`autograd.scatter`).
"""

from __future__ import annotations

from typing import Any, Self

from lazulite.autograd.scatter import scattered
from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir import ops
from lazulite.ir.dtype import Scalar, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.ir.widest import widest
from lazulite.tensor.arrange import ArrangeMethods
from lazulite.tensor.base import broadcast_shape, constant, counted, expanded, one_axis, plain_scalar
from lazulite.tensor.create import shape_of
from lazulite.tensor.host import HostMethods
from lazulite.tensor.logic import LogicMethods
from lazulite.tensor.picking import host_positions, position_node
from lazulite.tensor.scan import ScanMethods

_COMBINATIONS: dict[str | None, Op | None] = {None: None, "add": ops.ADD, "multiply": ops.MUL}
REDUCTIONS: dict[str, Op] = {"sum": ops.ADD, "mean": ops.ADD, "prod": ops.MUL, "amax": ops.MAX, "amin": ops.MIN}


class GatherMethods(LogicMethods, ArrangeMethods, ScanMethods, HostMethods):
    """Picking and placing by index tensors."""

    __slots__ = ()

    # --- picking ------------------------------------------------------------------------------------

    def gather(self, dim: int, index: Any) -> Self:
        """result[.., i, ..] = self[.., index[.., i, ..], ..]: for each element of `index` one of the axis.

        `index` has the rank of this tensor and is no larger on the other axes; the result has its shape.

        >>> Tensor([[1, 2], [3, 4]]).gather(1, Tensor([[1], [0]])).tolist()
        [[2], [3]]
        """
        axis, places = self._one_index("gather", dim, index)
        return self._derived(UOp(ops.GATHER, self.dtype, (self.uop, *_along(self.shape, axis, places))))

    def take(self, index: Any) -> Self:
        """The elements of the flattened tensor at positions, in the shape of `index`.

        >>> Tensor([[1, 2], [3, 4]]).take(Tensor([3, -4])).tolist()
        [4, 1]
        """
        flat = self.flatten()
        places = position_node("take", self._tensor("take", index), self.numel())
        return self._derived(UOp(ops.GATHER, self.dtype, (flat.uop, places)))

    def index_select(self, dim: int, index: Any) -> Self:
        """The parts of an axis at the positions in the vector `index`.

        >>> Tensor([[1, 2, 3]]).index_select(1, Tensor([2, 0])).tolist()
        [[3, 1]]
        """
        axis, positions = one_axis("index_select", dim, len(self.shape)), self._tensor("index_select", index)
        if len(positions.shape) > 1:
            raise ShapeError(
                "index_select", f"needs a vector of positions, got {positions.shape}",
                about={"tensor": self, "index": positions},
            )  # fmt: skip
        positions = positions.reshape(-1)
        if not self.shape:
            return self.reshape(1).index_select(0, positions).reshape(())
        rank = len(self.shape)
        order = (axis, *[other for other in range(rank) if other != axis])
        front = self.permute(order)
        places = position_node("index_select", positions, self.shape[axis])
        picked = self._derived(UOp(ops.GATHER, self.dtype, (front.uop, places)))
        return picked.permute(sorted(range(rank), key=order.__getitem__))

    def _one_index(self, function: str, dim: int, index: Any) -> tuple[int, UOp]:
        """The axis, and positions on it for each element of `index`."""
        axis, positions = one_axis(function, dim, len(self.shape)), self._tensor(function, index)
        fits = len(positions.shape) == len(self.shape) and all(
            own >= size or each == axis
            for each, (own, size) in enumerate(zip(self.shape, positions.shape, strict=True))
        )
        if not fits or not self.shape:
            raise ShapeError(
                function, f"an index of shape {positions.shape} does not fit {self.shape}",
                about={"tensor": self, "index": positions},
                rule="Both have the same rank, at least 1, and the index is no larger on the other axes.",
            )  # fmt: skip
        return axis, position_node(function, positions, self.shape[axis])

    # --- placing ------------------------------------------------------------------------------------

    def scatter(self, dim: int, index: Any, src: Any, reduce: str | None = None) -> Self:
        """This tensor with result[.., index[.., i, ..], ..] = src[.., i, ..]; of several the last counts.

        `src` is a number or at least as large as `index`.  `reduce` "add" or "multiply" combines instead.

        >>> Tensor([0, 0, 0]).scatter(0, Tensor([2, 0]), Tensor([5, 6])).tolist()
        [6, 0, 5]
        """
        axis, places = self._one_index("scatter", dim, index)
        values = self._sources("scatter", src, places.shape)
        along = _along(self.shape, axis, places)
        if reduce not in _COMBINATIONS:
            raise ArgumentError("scatter", f"reduce is 'add', 'multiply' or None, not {reduce!r}")
        return self._derived(scattered(_COMBINATIONS[reduce], self.uop, along, values))

    def scatter_reduce(self, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True) -> Self:
        """The values of `src` combined at the places that `index` names: "sum", "prod", "mean", "amax" or "amin".

        Without `include_self` what stood there does not count.

        >>> Tensor([1, 1]).scatter_reduce(0, Tensor([0, 0]), Tensor([2, 3]), "sum").tolist()
        [6, 1]
        """
        op = REDUCTIONS.get(reduce)
        if op is None:
            names = ", ".join(repr(name) for name in REDUCTIONS)
            raise ArgumentError("scatter_reduce", f"reduce is one of {names}, not {reduce!r}")
        axis, places = self._one_index("scatter_reduce", dim, index)
        along = _along(self.shape, axis, places)
        values, into = self._sources("scatter_reduce", src, places.shape), self.uop
        if not include_self:
            nothing = constant(self.dtype, op.identity(self.dtype) if op.identity else 0)
            into = scattered(None, into, along, expanded(nothing, places.shape))
        combined = scattered(op, into, along, values)
        if reduce == "mean":
            ones = expanded(UOp.const(dtypes.int32, 1), places.shape)
            count = scattered(ops.ADD, expanded(UOp.const(dtypes.int32, int(include_self)), self.shape), along, ones)
            number = UOp.apply(ops.MAX, count, UOp.const(dtypes.int32, 1)).cast(self.dtype)
            combined = combined / number if self.dtype.is_float else combined // number
        return self._derived(combined)

    def _sources(self, function: str, src: Any, shape: tuple[int, ...]) -> UOp:
        """The values to place, in the shape of the index and the type of this tensor."""
        scalar = plain_scalar(src)
        if scalar is not None:
            return expanded(constant(self.dtype, scalar), shape)
        values = self._tensor(function, src)
        fits = len(values.shape) == len(shape) and all(h >= w for h, w in zip(values.shape, shape, strict=True))
        if not fits:
            raise ShapeError(
                function, f"src of shape {values.shape} is smaller than the index of shape {shape}",
                about={"tensor": self, "src": values},
            )  # fmt: skip
        return values.shrink([(0, size) for size in shape]).uop.cast(self.dtype)

    # --- masks --------------------------------------------------------------------------------------

    def masked_fill(self, mask: Any, value: Any) -> Self:
        """The value where the mask is true, this tensor elsewhere; all three broadcast.

        >>> Tensor([1, 2, 3]).masked_fill(Tensor([True, False, True]), 0).tolist()
        [0, 2, 0]
        """
        return self._tensor("masked_fill", mask).where(value, self)

    def masked_select(self, mask: Any, size: int | None = None, fill_value: Scalar = 0) -> Self:
        """The elements where the mask is true, as a vector.

        Without `size` the mask is looked at now.  With it the vector has that many elements, cut or filled up
        with `fill_value`, and nothing is computed yet.  The result and what it is made from take at most 4.5 times the
        memory of float32 elements.

        >>> Tensor([1, 2, 3]).masked_select(Tensor([True, False, True])).tolist()
        [1, 3]
        >>> Tensor([1, 2, 3]).masked_select(Tensor([True, False, True]), size=3, fill_value=9).tolist()
        [1, 3, 9]
        """
        gate = self._tensor("masked_select", mask)
        shape = broadcast_shape("masked_select", [self, gate])
        flat = self.expand(shape).flatten()
        places = self._derived(expanded(gate.uop.cast(dtypes.bool), shape)).flatten()._true_places(size)
        return self._derived(_filled(flat.uop, places.uop, fill_value))

    def nonzero(self, size: int | None = None, fill_value: int = 0, *, as_tuple: bool = False) -> Any:
        """The int32 positions of the elements that are not zero, one row each, in row-major order.

        With `as_tuple` one vector for each axis (one axis at least), as in NumPy.

        Without `size` the values are looked at now.  With it there are that many rows, cut or filled up with
        `fill_value`, and nothing is computed yet.

        >>> Tensor([[0, 1], [2, 0]]).nonzero().tolist()
        [[0, 1], [1, 0]]
        """
        if as_tuple:
            rows = (self if self.shape else self.reshape(1)).nonzero(size, fill_value)
            return tuple([rows[:, axis] for axis in range(rows.shape[1])])
        places = self._derived(self.uop.cast(dtypes.bool)).flatten()._true_places(size)
        columns: list[Any] = []
        for axis in range(len(self.shape)):
            below = 1
            for later in self.shape[axis + 1 :]:
                below *= later
            column = (places.uop // below) % self.shape[axis] if below * self.shape[axis] else places.uop
            column = (places.uop < 0).where(UOp.const(dtypes.int32, fill_value), column)
            columns.append(self._derived(column).unsqueeze(1))
        empty = self._derived(expanded(UOp.const(dtypes.int32, 0), (places.shape[0], 0)))
        return columns[0].cat(*columns[1:], dim=1) if columns else empty

    def _true_places(self, size: int | None) -> Self:
        """Where this vector of bools is true; with a size filled up with -1."""
        if size is None:
            return host_positions(self)[0]  # type: ignore[no-any-return]
        (size,) = shape_of("nonzero", (size,))
        from lazulite.tensor.compaction import positions_of

        flags = widest(self.uop)
        if not flags.shape[0]:
            return self._derived(expanded(UOp.const(dtypes.int32, -1), (size,)))
        numbers = self._derived(flags.cast(dtypes.int32)).cumsum(0)
        return self._derived(positions_of(flags, numbers.uop, size))


def _along(shape: tuple[int, ...], axis: int, places: UOp) -> list[UOp]:
    """Positions on all axes: the own place of each element, and the given one on one axis."""
    return [places if each == axis else counted(places.shape, each) for each in range(len(shape))]


def _filled(flat: UOp, places: UOp, fill_value: Scalar) -> UOp:
    """The elements at the places, a constant where there is none."""
    picked = UOp(ops.GATHER, flat.dtype, (flat, places))
    return (places < 0).where(constant(flat.dtype, fill_value), picked)
