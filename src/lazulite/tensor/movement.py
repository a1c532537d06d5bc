"""Other shapes for the same elements.

A movement of a tensor is a view: an expression like any other, but as the target of `assign`, of an
in-place operator or of an item assignment it stands for its place in the base.  What adds elements
(`pad`, `cat`, `repeat`) or names one element several times (`expand`) is read only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from lazulite.base.errors import AxisError, ShapeError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.size import Size, least, max_shape, most, room
from lazulite.ir.uop import UOp
from lazulite.tensor.base import (
    Axes,
    Base,
    Shape,
    constant,
    expanded,
    is_inside,
    one_axis,
    sizes_argument,
    some_axes,
    weak_dtype,
)


class MovementMethods(Base):
    """Views, and tensors put together from others."""

    __slots__ = ()

    # --- sizes --------------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """The number of axes.

        >>> Tensor.ones(2, 3).ndim
        2
        """
        return len(self.shape)

    def numel(self) -> int:
        """The number of elements.

        >>> Tensor.ones(2, 3).numel()
        6
        """
        return math.prod(self.shape)

    @property
    def max_shape(self) -> Shape:
        """The shape with the largest value of each size that varies.

        >>> from lazulite import Variable
        >>> Tensor.ones(2, 9)[:, : Variable("n", 1, 8).bind(3)].max_shape
        (2, 8)
        """
        return max_shape(self.shape)

    def max_numel(self) -> int:
        """The number of elements of `max_shape`.

        >>> Tensor.ones(2, 3).max_numel()
        6
        """
        return room(self.shape)

    def element_size(self) -> int:
        """The bytes of one element.

        >>> Tensor.ones(2).element_size()
        4
        """
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """The bytes of all elements.

        >>> Tensor.ones(2, 3).nbytes()
        24
        """
        return self.numel() * self.dtype.itemsize

    def size(self, dim: int | None = None) -> int | Shape:
        """The shape, or the size of one axis.

        >>> Tensor.ones(2, 3).size(-1)
        3
        """
        return self.shape if dim is None else self.shape[one_axis("size", dim, len(self.shape))]

    # --- the six movements ------------------------------------------------------------------------

    def reshape(self, shape: Any, *args: Any) -> Self:
        """The same elements in row-major order; -1 stands for what is left, None keeps the size of that axis.

        >>> Tensor([1, 2, 3, 4]).reshape(2, -1).tolist()
        [[1, 2], [3, 4]]
        """
        return self._moved(ops.RESHAPE, self._new_shape("reshape", sizes_argument("reshape", shape, args)))

    def view(self, shape: Any, *args: Any) -> Self:
        """`reshape` by its other name.

        >>> Tensor([1, 2, 3, 4]).view(2, 2).shape
        (2, 2)
        """
        return self.reshape(shape, *args)

    def _new_shape(self, function: str, given: tuple[Any, ...]) -> Shape:
        old = dict(enumerate(self.shape))
        sizes = [old.get(axis, -2) if size is None else size for axis, size in enumerate(given)]
        known = math.prod([size for size in sizes if size != -1])
        if sizes.count(-1) == 1 and known > 0 and self.numel() % known == 0:
            sizes[sizes.index(-1)] = self.numel() // known
        if min(map(least, sizes), default=0) < 0 or math.prod(sizes) != self.numel():
            raise ShapeError(
                function,
                f"{self.numel()} elements of {self.shape} do not fill {given}",
                about={"tensor": self},
                rule="At most one size is -1, and then the others must divide the number of elements.",
            )
        return tuple(sizes)

    def expand(self, shape: Any, *args: Any) -> Self:
        """Axes of size 1 repeated, and new axes in front; -1 or None keeps a size.

        >>> Tensor([[1], [2]]).expand(2, 3).tolist()
        [[1, 1, 1], [2, 2, 2]]
        """
        given = sizes_argument("expand", shape, args)
        old = (1,) * (len(given) - len(self.shape)) + self.shape
        new = tuple([size if wish in (-1, None) else wish for size, wish in zip(old, given, strict=False)])
        fits = len(old) == len(given) and all(size in (1, wish) for size, wish in zip(old, new, strict=True))
        if not fits or min(map(least, new), default=0) < 0:
            raise ShapeError(
                "expand",
                f"{self.shape} does not expand to {given}",
                about={"tensor": self},
                rule="Aligned at the last axis, a size stays or grows from 1.",
            )
        return self if new == self.shape else self._moved(ops.EXPAND, new)

    def permute(self, order: Any, *args: Any) -> Self:
        """The axes in another order.

        >>> Tensor.ones(2, 3, 4).permute(2, 0, 1).shape
        (4, 2, 3)
        """
        rank = len(self.shape)
        given = tuple([one_axis("permute", axis, rank) for axis in sizes_argument("permute", order, args)])
        if sorted(given) != list(range(rank)):
            raise AxisError("permute", f"{given} does not name each of {rank} axes once", about={"tensor": self})
        return self._moved(ops.PERMUTE, given)

    def shrink(self, arg: Sequence[Any]) -> Self:
        """The box from begin to end of each axis; None keeps an axis.

        >>> Tensor([[1, 2], [3, 4]]).shrink((None, (1, 2))).tolist()
        [[2], [4]]
        """
        self._one_for_each_axis("shrink", arg)
        box = tuple(
            [
                (0, size) if part is None else (_whole(part[0]), _whole(part[1]))
                for part, size in zip(arg, self.shape, strict=True)
            ]
        )
        if not all(is_inside(*part, size) for part, size in zip(box, self.shape, strict=True)):
            raise ShapeError("shrink", f"{tuple(arg)} is no box inside {self.shape}", about={"tensor": self})
        return self._moved(ops.SHRINK, box)

    def pad(self, padding: Sequence[Any], mode: str = "constant", value: Any = 0) -> Self:
        """`value` around the tensor; negative sizes cut.

        `padding` gives (before, after) or None for each axis, or a flat sequence of pairs for the last axes, the
        last axis first, as in torch.  `mode` is "constant".

        >>> Tensor([1, 2]).pad(((1, 2),), value=7).tolist()
        [7, 1, 2, 7, 7]
        """
        pairs = self._padding_pairs(padding)
        if mode != "constant":
            from lazulite.tensor.padding import padded

            return padded(self, pairs, mode)
        grown = [(_grown(before), _grown(after)) for before, after in pairs]
        cut = [(more - width, less - after) for (more, less), (width, after) in zip(grown, pairs, strict=True)]
        inner = (
            self
            if all(width == 0 for pair in cut for width in pair)
            else self.shrink([(before, size - after) for (before, after), size in zip(cut, self.shape, strict=True)])
        )
        around = tuple(grown)
        nothing = all(width == 0 for pair in around for width in pair)
        return inner if nothing else inner._derived(inner._padded(around, value))

    def _padded(self, around: tuple[tuple[int, int], ...], value: Any) -> UOp:
        if value == 0:
            return UOp(ops.PAD, self.dtype, (self.uop,), around)
        if isinstance(value, float) and value.is_integer() and self.dtype.is_int:
            value = int(value)  # 1.0 around integers is an integer
        fill = constant(weak_dtype(value, self.dtype), value)
        x = self.uop.cast(dtypes.promote(self.dtype, fill.dtype))
        padded = UOp(ops.PAD, x.dtype, (x,), around)
        inside = UOp(ops.PAD, dtypes.bool, (expanded(UOp.const(dtypes.bool, True), self.shape),), around)
        return inside.where(padded, fill.cast(x.dtype))

    def _padding_pairs(self, padding: Sequence[Any]) -> list[tuple[int, int]]:
        if padding and all(isinstance(size, int) for size in padding):
            if len(padding) % 2:
                raise ShapeError("pad", f"flat padding consists of pairs, got {tuple(padding)}", about={"tensor": self})
            pairs = list(zip(padding[::2], padding[1::2], strict=True))[::-1]
            padding = [(0, 0)] * (len(self.shape) - len(pairs)) + pairs
        self._one_for_each_axis("pad", padding)
        return [(0, 0) if pair is None else (_whole(pair[0]), _whole(pair[1])) for pair in padding]

    def _one_for_each_axis(self, function: str, given: Sequence[Any]) -> None:
        if len(given) != len(self.shape):
            raise ShapeError(
                function, f"{len(given)} entries for the {len(self.shape)} axes of {self.shape}", about={"tensor": self}
            )

    def flip(self, axis: Any = (), *args: Any, dims: Any = None) -> Self:
        """The axes reversed.

        >>> Tensor([1, 2, 3]).flip(0).tolist()
        [3, 2, 1]
        """
        axes = [
            one_axis("flip", each, len(self.shape))
            for each in sizes_argument("flip", axis if dims is None else dims, args)
        ]
        return self._moved(ops.FLIP, tuple(sorted(set(axes)))) if axes and self.shape else self

    # --- axes ---------------------------------------------------------------------------------------

    def transpose(self, dim0: int = 1, dim1: int = 0) -> Self:
        """Two axes exchanged.

        >>> Tensor([[1, 2], [3, 4]]).transpose().tolist()
        [[1, 3], [2, 4]]
        """
        order = list(range(len(self.shape)))
        first, second = [one_axis("transpose", axis, len(order)) for axis in (dim0, dim1)]
        order[first], order[second] = order[second], order[first]
        return self.permute(order)

    @property
    def T(self) -> Self:
        """`transpose()`; a vector stays what it is.

        >>> Tensor([[1, 2]]).T.tolist()
        [[1], [2]]
        """
        return self if len(self.shape) < 2 else self.transpose()

    def squeeze(self, dim: Axes = None) -> Self:
        """Without the axes of size 1, or of these without those whose size is 1.

        >>> Tensor([[1, 2]]).squeeze(0).tolist()
        [1, 2]
        """
        rank = len(self.shape)
        axes = some_axes("squeeze", dim, rank)
        left = tuple([size for axis, size in enumerate(self.shape) if axis not in axes or size != 1])
        return self if left == self.shape else self._moved(ops.RESHAPE, left)

    def unsqueeze(self, dim: int) -> Self:
        """A new axis of size 1 before this one.

        >>> Tensor([1, 2]).unsqueeze(-1).tolist()
        [[1], [2]]
        """
        at = one_axis("unsqueeze", dim, len(self.shape) + 1)
        return self._moved(ops.RESHAPE, (*self.shape[:at], 1, *self.shape[at:]))

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """The axes from `start_dim` to `end_dim` as one.

        >>> Tensor.ones(2, 3, 4).flatten(1).shape
        (2, 12)
        """
        rank = len(self.shape)
        begin, end = one_axis("flatten", start_dim, rank), one_axis("flatten", end_dim, rank) + 1
        if end <= begin:
            raise AxisError("flatten", f"axis {end_dim} lies before axis {start_dim}", about={"tensor": self})
        return self.reshape((*self.shape[:begin], math.prod(self.shape[begin:end]), *self.shape[end:]))

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Self:
        """One axis as several; one of the sizes may be -1.

        >>> Tensor.ones(2, 12).unflatten(1, (3, -1)).shape
        (2, 3, 4)
        """
        at = one_axis("unflatten", dim, len(self.shape))
        known = math.prod(size for size in sizes if size != -1)
        filled = [self.shape[at] // max(known, 1) if size == -1 else size for size in sizes]
        return self.reshape((*self.shape[:at], *filled, *self.shape[at + 1 :]))

    def shrink_to(self, shape: Any, *args: Any) -> Self:
        """The first elements of each axis; None keeps an axis.

        >>> Tensor([1, 2, 3]).shrink_to(2).tolist()
        [1, 2]
        """
        given = sizes_argument("shrink_to", shape, args)
        return self.shrink([None if size is None else (0, size) for size in given])

    def pad_to(self, shape: Any, *args: Any, value: Any = 0) -> Self:
        """`value` behind each axis up to the given size; None keeps an axis (A10).

        >>> Tensor([1, 2]).pad_to(3).tolist()
        [1, 2, 0]
        """
        given = sizes_argument("pad_to", shape, args)
        self._one_for_each_axis("pad_to", given)
        grown = [0 if wish is None else wish - size for wish, size in zip(given, self.shape, strict=True)]
        if min(map(least, grown), default=0) < 0:
            raise ShapeError("pad_to", f"{self.shape} is larger than {given}", about={"tensor": self})
        return self.pad([(0, after) for after in grown], value=value)


def _whole(size: Any) -> int:
    """An integer of an argument; a size that varies stays one."""
    return size if isinstance(size, Size) else int(size)


def _grown(width: int) -> int:
    """How much a padding adds: nothing where it cuts."""
    if least(width) < 0 < most(width):
        raise ShapeError("pad", f"{width} may cut as well as add, as it is in [{least(width)}, {most(width)}]")
    return width if least(width) >= 0 else 0
