"""Parts by position: `t[1]`, `t[:, 2:5]`, `t[..., ::-1]`, `t[None]`, and writing to them.

With arrays of positions or a mask among the parts see `tensor.picking`.  An index of integers, slices,
`None` and one `...` is a chain of movements, so its result is a view: it
reads what the tensor held when it was written, and stands for its place when written to.  Integers
outside the tensor raise `IndexRangeError`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, Self

from lazulite.base.errors import DTypeError, IndexRangeError, ShapeError
from lazulite.engine.handles import Handle
from lazulite.engine.views import was_written
from lazulite.ir import ops
from lazulite.ir.ops import Op
from lazulite.ir.size import Size, least, most, varies
from lazulite.ir.uop import UOp
from lazulite.tensor.arrange import ArrangeMethods
from lazulite.tensor.base import Base, constant, expanded, is_inside, plain_scalar
from lazulite.tensor.picking import is_picking, mask_write, plan


class IndexMethods(ArrangeMethods):
    """Indexing by integers and slices."""

    __slots__ = ()
    _handle: Handle

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Self]:
        if not self.shape:
            raise TypeError("iteration over a tensor without axes")
        return iter([self[number] for number in range(self.shape[0])])

    def __getitem__(self, index: Any) -> Self:
        """The part at an index; see the module.

        >>> Tensor([[1, 2, 3], [4, 5, 6]])[1, ::2].tolist()
        [4, 6]
        """
        if _has_arrays(index):
            return plan(self, index).read()  # type: ignore[no-any-return]
        parts = self._whole_index(index)
        axis_parts = [part for part in parts if part is not None]
        boxes = [_box(self, part, axis) for axis, part in enumerate(axis_parts)]
        x = self
        if any(box[:2] != (0, size) for box, size in zip(boxes, self.shape, strict=True)):
            x = x._moved(ops.SHRINK, tuple([(begin, end) for begin, end, _ in boxes]))
        backward = tuple([axis for axis, (_, _, step) in enumerate(boxes) if step < 0])
        x = x._moved(ops.FLIP, backward) if backward else x
        for axis, (_, _, step) in enumerate(boxes):
            x = x._every(axis, abs(step))
        shape = _indexed_shape(parts, x.shape)
        return x._moved(ops.RESHAPE, shape) if shape != x.shape or x is self else x

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write to the part at an index; the value broadcasts to it and is cast to the tensor's type.

        >>> t = Tensor([1, 2, 3]); t[1:] = 7; t.tolist()
        [1, 7, 7]
        """
        if _has_arrays(index):
            self._set_picked(index, value)
            return
        place = self[index]
        scalar = plain_scalar(value)
        if scalar is not None:
            node = constant(self.dtype, scalar)
        else:
            source = place._tensor("setitem", value)
            if was_written(place._handle, source.uop):  # t[i] += x has already written
                return
            node = place._fitting(source)
        if 0 not in place.shape:
            place.assign(place._derived(expanded(node, place.shape)))

    def _set_picked(self, index: Any, value: Any) -> None:
        """Write to places picked by arrays of positions or by a mask."""
        scalar = plain_scalar(value)
        source = None if scalar is not None else self._tensor("setitem", value)
        node = constant(self.dtype, scalar) if source is None else source.uop.cast(self.dtype)  # type: ignore[arg-type]
        if mask_write(self, index, node):
            return
        picking = plan(self, index)
        place = picking.read()
        picking.write(node if source is None else place._fitting(source), place.shape)

    def _place(self, number: Any, axis: int) -> int:
        """An integer of an index, counted from the front."""
        return _box(self, number, axis)[0]

    def _fitting(self, source: Self) -> UOp:
        """The value of an item assignment in the type and rank of its place."""
        lead = len(source.shape) - len(self.shape)
        shape = source.shape[max(lead, 0) :]
        fits = set(source.shape[: max(lead, 0)]) <= {1} and all(
            size in (1, wish) for size, wish in zip(shape[::-1], self.shape[::-1], strict=False)
        )
        if not fits:
            raise ShapeError(
                "setitem", f"{source.shape} does not broadcast to the place of shape {self.shape}",
                about={"place": self, "value": source},
            )  # fmt: skip
        node = source.uop if lead <= 0 else UOp(ops.RESHAPE, source.dtype, (source.uop,), shape)
        return node.cast(self.dtype)

    def _whole_index(self, index: Any) -> list[Any]:
        """One entry for each axis, with None for new axes; the ellipsis is spelled out."""
        parts = list(index) if isinstance(index, tuple) else [index]
        named = sum(part is not None and part is not Ellipsis for part in parts)
        dots = [number for number, part in enumerate(parts) if part is Ellipsis]
        if len(dots) > 1:
            raise IndexRangeError("getitem", "an index has at most one ellipsis")
        if named > len(self.shape):
            raise IndexRangeError(
                "getitem", f"{named} indices for the {len(self.shape)} axes of {self.shape}", about={"tensor": self}
            )
        at = dots[0] if dots else len(parts)
        return parts[:at] + [slice(None)] * (len(self.shape) - named) + parts[at + 1 :]

    def _every(self, axis: int, step: int) -> Self:
        """Each `step`-th element of an axis, beginning with the first; as a view."""
        size = self.shape[axis]
        if step == 1 or size == 0:
            return self
        count = -(-size // step)
        before, after = self.shape[:axis], self.shape[axis + 1 :]
        x = self._along(ops.PAD, axis, (0, count * step - size), 0) if count * step > size else self
        x = x._moved(ops.RESHAPE, (*before, count, step, *after))
        x = x._along(ops.SHRINK, axis + 1, (0, 1), None)
        return x._moved(ops.RESHAPE, (*before, count, *after))

    def _along(self, op: Op, axis: int, pair: tuple[int, int], other: int | None) -> Self:
        """A PAD or SHRINK of one axis, as a view."""
        pairs = [(0, size if other is None else other) for size in self.shape]
        pairs[axis] = pair
        return self._moved(op, tuple(pairs))


def _has_arrays(index: Any) -> bool:
    return any(map(is_picking, index)) if isinstance(index, tuple) else is_picking(index)


def _box(tensor: Base, part: Any, axis: int) -> tuple[int, int, int]:
    """The begin, end and step of one axis; an integer is a box of size 1."""
    size = tensor.shape[axis]
    if isinstance(part, Size) or (isinstance(size, Size) and hasattr(part, "__index__")):
        place = part if isinstance(part, Size) else operator.index(part)
        place = size + place if most(place) < 0 else place
        return *_varying_box(tensor, slice(place, place + 1), axis), 1
    if isinstance(part, slice) and varies((size, part.start, part.stop, part.step)):
        return *_varying_box(tensor, part, axis), -1 if part.step == -1 else 1
    if isinstance(part, slice):
        try:
            places = range(size)[part]
        except TypeError:
            raise DTypeError("getitem", f"the bounds of a slice are integers, got {part}") from None
        if not places:
            return 0, 0, 1
        low, high = sorted((places[0], places[-1]))
        return low, high + 1, places.step
    if isinstance(part, bool) or not hasattr(part, "__index__"):
        raise DTypeError(
            "getitem", f"an index is an integer, a slice, None, ... or an array of integers, got {type(part).__name__}",
            about={"tensor": tensor},
        )  # fmt: skip
    place = operator.index(part)
    if not -size <= place < size:
        raise IndexRangeError(
            "getitem", f"index {place} is outside axis {axis} of size {size}", about={"tensor": tensor}
        )
    return place % size, place % size + 1, 1


def _varying_box(tensor: Base, part: slice, axis: int) -> tuple[int, int]:
    """The begin and the end of a slice with ends that vary: for every value it lies inside of the axis."""
    size, whole = tensor.shape[axis], part.start is None and part.stop is None
    if part.step not in (None, 1) and not (part.step == -1 and whole):
        raise ShapeError("getitem", f"a slice with ends that vary has no step, got {part}", about={"tensor": tensor})
    begin, end = (
        given if isinstance(given, Size) else operator.index(given) for given in
        (0 if part.start is None else part.start, size if part.stop is None else part.stop)
    )  # fmt: skip
    begin, end = (size + place if most(place) < 0 else place for place in (begin, end))
    if not is_inside(begin, end, size):
        raise IndexRangeError(
            "getitem", f"the slice from {begin} to {end} may leave axis {axis} of size {size}",
            about={"tensor": tensor},
            rule="It has to lie inside for every value of its variables: "
            f"begin is in {_range_text(begin)}, end in {_range_text(end)}, the size in {_range_text(size)}.",
        )  # fmt: skip
    return begin, end


def _range_text(size: int) -> str:
    return f"[{least(size)}, {most(size)}]"


def _indexed_shape(parts: list[Any], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes without the axes of integers and with the new ones."""
    remaining = iter(sizes)
    shape: list[int] = []
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        size = next(remaining)
        if isinstance(part, slice):
            shape.append(size)
    return tuple(shape)
