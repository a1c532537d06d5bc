"""How a split axis goes through a movement: the laws by which parts stay where they are.

Takes a movement of a value that is split over devices, and gives the axis and the ends of the result with the
movement of each part; None where the parts of the result are not movements of the parts.  Pure arithmetic on
shapes: `schedule/place.py` rewrites values and the regions of writes by it alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lazulite.ir import ops
from lazulite.ir.ops import Op
from lazulite.ir.placement import Placement

Shape = tuple[int, ...]


class Moved(NamedTuple):
    """The movement of each part, and where the result is split."""

    where: Placement
    args: tuple[Any, ...]


def moved(op: Op, arg: Any, shape: Shape, where: Placement) -> Moved | None:
    """The movement of a value of this shape, which is split, as movements of its parts.

    >>> halves = Placement(("CPU", "CPU:1"), 0, (2, 4))
    >>> moved(ops.SHRINK, ((1, 3),), (4,), halves).args
    (((1, 2),), ((0, 1),))
    """
    if where.axis is None:
        return Moved(where, (arg,) * len(where.devices))
    return _LAWS[op](arg, shape, where.axis, where)


def _permuted(arg: Any, shape: Shape, axis: int, where: Placement) -> Moved | None:
    return Moved(where._replace(axis=arg.index(axis)), (arg,) * len(where.devices))


def _expanded(arg: Any, shape: Shape, axis: int, where: Placement) -> Moved | None:
    """An axis that is split cannot be repeated."""
    to = where._replace(axis=axis + len(arg) - len(shape))
    return _shaped(arg, to) if arg[to.axis] == shape[axis] else None


def _reshaped(arg: Any, shape: Shape, axis: int, where: Placement) -> Moved | None:
    """An axis of the result with as many elements before it takes the split, if it can be cut at these places."""
    sizes = (*shape, *arg)
    if not all(type(size) is int for size in sizes) or 0 in sizes:
        return None
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    for candidate in range(len(arg)):
        unit = math.prod(arg[candidate + 1 :])
        cuts = [end * inner for end in where.ends]
        if math.prod(arg[:candidate]) == outer and all(cut % unit == 0 for cut in cuts):
            return _shaped(arg, Placement(where.devices, candidate, tuple([cut // unit for cut in cuts])))
    return None


def _shrunk(arg: Any, shape: Shape, axis: int, where: Placement) -> Moved | None:
    """Each device keeps what it has of the box."""
    first, last = arg[axis]
    if type(first) is not int or type(last) is not int:
        return None
    boxes = [(max(first, begin) - begin, min(last, end) - begin) for begin, end in where.spans]
    own = [box if box[0] < box[1] else (0, 0) for box in boxes]
    ends = tuple([min(max(end, first), last) - first for end in where.ends])
    return Moved(where._replace(ends=ends), tuple([_with(arg, axis, box) for box in own]))


def _padded(arg: Any, shape: Shape, axis: int, where: Placement) -> Moved | None:
    """The first device has the zeros before the axis, the last those behind it."""
    before, after = arg[axis]
    if type(before) is not int or type(after) is not int:
        return None
    count = len(where.devices)
    own = [(before if number == 0 else 0, after if number == count - 1 else 0) for number in range(count)]
    ends = tuple([end + before + (after if number == count - 1 else 0) for number, end in enumerate(where.ends)])
    return Moved(where._replace(ends=ends), tuple([_with(arg, axis, margin) for margin in own]))


def _flipped(arg: Any, shape: Shape, axis: int, where: Placement) -> Moved | None:
    return None if axis in arg else Moved(where, (arg,) * len(where.devices))


_LAWS: Mapping[Op, Callable[[Any, Shape, int, Placement], Moved | None]] = {
    ops.PERMUTE: _permuted,
    ops.EXPAND: _expanded,
    ops.RESHAPE: _reshaped,
    ops.SHRINK: _shrunk,
    ops.PAD: _padded,
    ops.FLIP: _flipped,
}


def _shaped(shape: Shape, where: Placement) -> Moved:
    """A movement whose argument is the shape of its result."""
    return Moved(where, tuple([where.part_shape(tuple(shape), number) for number in range(len(where.devices))]))


def _with(arg: Any, axis: int, item: Any) -> tuple[Any, ...]:
    return (*arg[:axis], item, *arg[axis + 1 :])
