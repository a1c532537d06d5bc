"""Tensors put together and taken apart: concatenation, repetition, parts, and sliding windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from lazulite.base.errors import DTypeError, ShapeError
from lazulite.ir import dtype as types
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import Axes, expanded, one_axis, sizes_argument
from lazulite.tensor.movement import MovementMethods


class ArrangeMethods(MovementMethods):
    """Whole from parts and parts from a whole."""

    __slots__ = ()

    # --- together -----------------------------------------------------------------------------------

    def cat(self, *args: Self, dim: int = 0) -> Self:
        """This and the others one behind the other along an axis, in their common type.

        >>> Tensor([1, 2]).cat(Tensor([3])).tolist()
        [1, 2, 3]
        """
        parts: list[Self] = _parts(self, args)
        head = parts[0]
        axis = one_axis("cat", dim, len(head.shape))
        others = {part.shape[:axis] + part.shape[axis + 1 :] for part in parts}
        if len(others) > 1 or not head.shape or len({len(part.shape) for part in parts}) > 1:
            raise ShapeError(
                "cat",
                "shapes differ beside the axis: " + " and ".join(str(part.shape) for part in parts),
                about={f"part {number}": part for number, part in enumerate(parts, 1)},
                rule="All sizes but that of the axis must be equal, and there must be an axis.",
            )
        dtype = types.promote(*[part.dtype for part in parts])
        return head._derived(_joined([head._tensor("cat", part).uop.cast(dtype) for part in parts], axis))

    def stack(self, *args: Self, dim: int = 0) -> Self:
        """This and the others along a new axis.

        >>> Tensor([1, 2]).stack(Tensor([3, 4]), dim=1).tolist()
        [[1, 3], [2, 4]]
        """
        parts: list[Self] = _parts(self, args)
        if len({part.shape for part in parts}) > 1:
            raise ShapeError(
                "stack",
                "shapes differ: " + " and ".join(str(part.shape) for part in parts),
                about={f"part {number}": part for number, part in enumerate(parts, 1)},
            )
        at = one_axis("stack", dim, len(parts[0].shape) + 1)
        first, *rest = [part.unsqueeze(at) for part in parts]
        return first.cat(*rest, dim=at)

    def repeat(self, repeats: Any, *args: Any) -> Self:
        """The whole tensor repeated along each axis; more counts than axes add axes in front.

        >>> Tensor([1, 2]).repeat(2, 2).tolist()
        [[1, 2, 1, 2], [1, 2, 1, 2]]
        """
        counts = sizes_argument("repeat", repeats, args)
        if len(counts) < len(self.shape) or min(counts, default=0) < 0:
            raise ShapeError(
                "repeat", f"{counts} does not say how often to repeat {self.shape}", about={"tensor": self}
            )
        shape = (1,) * (len(counts) - len(self.shape)) + self.shape
        split = tuple([size for axis in shape for size in (1, axis)])
        grown = tuple([size for pair in zip(counts, shape, strict=True) for size in pair])
        final = tuple([count * size for count, size in zip(counts, shape, strict=True)])
        return self.reshape(split).expand(grown).reshape(final)

    def repeat_interleave(self, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Self:
        """Each element repeated in place, along one axis or in the flattened tensor.

        Several `repeats` are for the places of the axis one by one, and are looked at now; `output_size` is what they
        sum to.

        >>> Tensor([1, 2]).repeat_interleave(2).tolist()
        [1, 1, 2, 2]
        """
        x = self.flatten() if dim is None else self
        at = one_axis("repeat_interleave", 0 if dim is None else dim, len(x.shape))
        if not isinstance(repeats, int):
            counts = repeats.flatten().tolist() if hasattr(repeats, "flatten") else list(repeats)
            if not all(isinstance(count, int) for count in counts):
                raise DTypeError("repeat_interleave", f"repeats are integers, got {repeats!r:.60}")
            if len(counts) == 1:
                return x.repeat_interleave(counts[0], at)
            if len(counts) != x.shape[at] or min(counts, default=0) < 0:
                raise ShapeError(
                    "repeat_interleave", f"{len(counts)} counts for an axis of {x.shape[at]}", about={"tensor": self}
                )
            places = [place for place, count in enumerate(counts) for _ in range(count)]
            if not places:
                return x._part(at, 0, 0)
            return x._derived(_picked(x.uop, at, type(x)(places, device=x.device).uop))
        grown = (*x.shape[: at + 1], repeats, *x.shape[at + 1 :])
        return x.unsqueeze(at + 1).expand(grown).flatten(at, at + 1)

    def roll(self, shifts: int | Sequence[int], dims: Axes = None) -> Self:
        """The elements moved along axes, those pushed out coming back at the other end.

        Without `dims` the flattened elements move.

        >>> Tensor([1, 2, 3]).roll(1).tolist()
        [3, 1, 2]
        """
        if dims is None:
            total = shifts if isinstance(shifts, int) else sum(shifts)
            return self.flatten().roll(total, 0).reshape(self.shape)
        x = self
        for shift, dim in zip(_sequence(shifts), _sequence(dims), strict=True):
            axis = one_axis("roll", dim, len(x.shape))
            size = x.shape[axis]
            turn = shift % size if size else 0
            if turn:
                front, back = x.split([size - turn, turn], axis)
                x = back.cat(front, dim=axis)
        return x

    # --- apart --------------------------------------------------------------------------------------

    def split(self, sizes: int | Sequence[int], dim: int = 0) -> tuple[Self, ...]:
        """Parts along an axis: of one size (the last may be smaller), or of these sizes.

        >>> [part.tolist() for part in Tensor([1, 2, 3]).split(2)]
        [[1, 2], [3]]
        """
        axis = one_axis("split", dim, len(self.shape))
        size = self.shape[axis]
        if isinstance(sizes, int):
            if sizes <= 0:
                raise ShapeError("split", f"parts of size {sizes} do not make up {size}", about={"tensor": self})
            sizes = [min(sizes, size - begin) for begin in range(0, size, sizes)] or [0]
        if sum(sizes) != size:
            raise ShapeError("split", f"sizes {tuple(sizes)} do not sum to {size}", about={"tensor": self})
        begins = [sum(sizes[:number]) for number in range(len(sizes))]
        return tuple([self._part(axis, begin, begin + length) for begin, length in zip(begins, sizes, strict=True)])

    def chunk(self, chunks: int, dim: int = 0) -> list[Self]:
        """Up to this many parts of equal size along an axis, the last maybe smaller; of an empty axis so many.

        >>> [part.tolist() for part in Tensor([1, 2, 3]).chunk(2)]
        [[1, 2], [3]]
        """
        if chunks <= 0:
            raise ShapeError("chunk", f"cannot make {chunks} parts", about={"tensor": self})
        size = self.shape[one_axis("chunk", dim, len(self.shape))]
        return list(self.split(-(-size // chunks) if size else [0] * chunks, dim))

    def _part(self, axis: int, begin: int, end: int) -> Self:
        box = [(begin, end) if each == axis else None for each in range(len(self.shape))]
        return self.shrink(box)

    def unfold(self, dim: int, size: int, step: int) -> Self:
        """All windows of a size along an axis; they lie along a new last axis.

        >>> Tensor([1, 2, 3, 4]).unfold(0, 2, 1).tolist()
        [[1, 2], [2, 3], [3, 4]]
        """
        axis = one_axis("unfold", dim, len(self.shape))
        if not self.shape and 0 <= size <= 1 and step > 0:
            return self.reshape(1).shrink_to(size)
        if not self.shape or not 0 < size <= self.shape[axis] or step <= 0:
            raise ShapeError(
                "unfold", f"no windows of size {size} every {step} in {self.shape}", about={"tensor": self}
            )
        cut = windows(self.uop, axis, size, step, 1)
        order = [each for each in range(len(cut.shape)) if each != axis] + [axis]
        return self._derived(UOp(ops.PERMUTE, cut.dtype, (cut,), tuple(order)))

    # --- triangles ----------------------------------------------------------------------------------

    def tril(self, diagonal: int = 0) -> Self:
        """Zeros above a diagonal of the last two axes.

        >>> Tensor.ones(2, 2).tril().tolist()
        [[1.0, 0.0], [1.0, 1.0]]
        """
        return self._derived(self._above("tril", diagonal + 1).where(UOp.const(self.dtype, 0), self.uop))

    def triu(self, diagonal: int = 0) -> Self:
        """Zeros below a diagonal of the last two axes.

        >>> Tensor.ones(2, 2).triu().tolist()
        [[1.0, 1.0], [0.0, 1.0]]
        """
        return self._derived(self._above("triu", diagonal).where(self.uop, 0))

    def _above(self, function: str, diagonal: int) -> UOp:
        """Where the column is at least the row plus `diagonal`."""
        if len(self.shape) < 2:
            raise ShapeError(function, f"a matrix has two axes, got {self.shape}", about={"tensor": self})
        rows, columns = [UOp(ops.IOTA, dtypes.int32, (), size) for size in self.shape[-2:]]
        row = UOp(ops.RESHAPE, rows.dtype, (rows,), (self.shape[-2], 1))
        row, column = expanded(row, self.shape[-2:]), expanded(columns, self.shape[-2:])
        return expanded(row + diagonal <= column, self.shape)


def _parts(first: Any, rest: tuple[Any, ...]) -> list[Any]:
    """The parts, given one by one or as a list: `Tensor.cat(*parts)`, `a.cat(b)`, `Tensor.stack([a, b])`."""
    return [*first, *rest] if isinstance(first, (list, tuple)) else [first, *rest]


def _picked(node: UOp, axis: int, places: UOp) -> UOp:
    """The parts of an axis at positions."""
    order = (axis, *[other for other in range(len(node.shape)) if other != axis])
    front = UOp(ops.PERMUTE, node.dtype, (node,), order)
    found = UOp(ops.GATHER, node.dtype, (front, places))
    return UOp(ops.PERMUTE, node.dtype, (found,), tuple(sorted(range(len(order)), key=order.__getitem__)))


def _sequence(value: int | Sequence[int]) -> Sequence[int]:
    return [value] if isinstance(value, int) else value


def _joined(nodes: Sequence[UOp], axis: int) -> UOp:
    """The nodes one behind the other: each padded to the whole, and chosen where it lies."""
    total = sum(node.shape[axis] for node in nodes)
    begin = total - nodes[-1].shape[axis]
    result = _along(nodes[-1], axis, ops.PAD, (begin, 0))
    for node in reversed(nodes[:-1]):
        margin = (begin - node.shape[axis], total - begin)
        begin -= node.shape[axis]
        if node.shape[axis]:
            inside = _along(expanded(UOp.const(dtypes.bool, True), node.shape), axis, ops.PAD, margin)
            result = inside.where(_along(node, axis, ops.PAD, margin), result)
    return result


# --- windows -----------------------------------------------------------------------------------


def windows(node: UOp, axis: int, size: int, stride: int, dilation: int) -> UOp:
    """One axis as two: the offset in the window (size `size`), then the windows.

    Element (k, o) is element o * stride + k * dilation of the axis.  Windows that lie side by side are a
    reshape.  Others come from copies of the row laid end to end and cut again `dilation` wider, so that
    each copy starts `dilation` later; all of it is movement, whose index maps are plain sums.
    """
    before, length, after = node.shape[:axis], node.shape[axis], node.shape[axis + 1 :]
    count = window_count(length, size, stride, dilation)
    if stride == size and dilation == 1:
        cut = _along(node, axis, ops.SHRINK, (0, count * stride))
        cut = UOp(ops.RESHAPE, node.dtype, (cut,), (*before, count, size, *after))
        order = (*range(axis), axis + 1, axis, *range(axis + 2, len(cut.shape)))
        return UOp(ops.PERMUTE, node.dtype, (cut,), order)
    rows = UOp(ops.RESHAPE, node.dtype, (node,), (*before, 1, length, *after))
    if size > 1:
        rows = _skewed(UOp(ops.EXPAND, node.dtype, (rows,), (*before, size, length, *after)), axis, dilation)
    begin = (size - 1) * dilation
    rows = _along(rows, axis + 1, ops.SHRINK, (begin, begin + (count - 1) * stride + 1))
    return _every(rows, axis + 1, stride, count)


def _skewed(rows: UOp, axis: int, shift: int) -> UOp:
    """Row k of the axes (k, column) moved left by k * shift, behind a margin of (rows - 1) * shift columns."""
    before, (count, length), after = rows.shape[:axis], rows.shape[axis : axis + 2], rows.shape[axis + 2 :]
    margin = (count - 1) * shift
    width = margin + length
    flat = _along(rows, axis + 1, ops.PAD, (margin, 0))
    flat = UOp(ops.RESHAPE, rows.dtype, (flat,), (*before, count * width, *after))
    flat = _along(flat, axis, ops.PAD, (0, count * shift))
    return UOp(ops.RESHAPE, rows.dtype, (flat,), (*before, count, width + shift, *after))


def _every(node: UOp, axis: int, stride: int, count: int) -> UOp:
    """Each `stride`-th element of an axis of size (count - 1) * stride + 1."""
    if stride == 1:
        return node
    before, after = node.shape[:axis], node.shape[axis + 1 :]
    padded = _along(node, axis, ops.PAD, (0, stride - 1))
    groups = UOp(ops.RESHAPE, node.dtype, (padded,), (*before, count, stride, *after))
    first = _along(groups, axis + 1, ops.SHRINK, (0, 1))
    return UOp(ops.RESHAPE, node.dtype, (first,), (*before, count, *after))


def _along(node: UOp, axis: int, op: ops.Op, pair: tuple[int, int]) -> UOp:
    """A PAD or SHRINK of one axis."""
    other = [(0, size if op is ops.SHRINK else 0) for size in node.shape]
    other[axis] = pair
    return UOp(op, node.dtype, (node,), tuple(other))


def window_count(length: int, size: int, stride: int, dilation: int) -> int:
    """How many windows an axis has; not positive where none fits."""
    return (length - dilation * (size - 1) - 1) // stride + 1
