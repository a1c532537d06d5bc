"""Values that go from device to device: gathering, dealing out, and combining partial results.

Takes the parts of values and gives nodes over COPY.  An all-reduce has one of three ways:

- naive: every device gets all partial results, and combines them;
- all-to-all: every device combines a piece of all partial results, and then gets the other pieces;
- ring: a piece goes round the devices, each of which combines it with its own, and then round again.

The first two combine each element in the order of the devices, ``((p0 + p1) + p2) + ..``, and so agree in every bit;
that of a ring begins behind the device that has the piece in the end.  What is narrower than float32 travels as it
is, is added in float32, and is rounded once (in a ring at every device).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.ops import Op
from lazulite.ir.placement import Placement, split
from lazulite.ir.size import varies
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.groups import element_count


class Placed(NamedTuple):
    """A value as one node (on one device, or on any), or as a node for each of several devices."""

    parts: tuple[UOp, ...]
    where: Placement | None = None


class Collectives:
    """What moves values between devices, and remembers where they are."""

    def __init__(self, known: Callable[[UOp], UOp | None], all_reduce: str = "") -> None:
        """`known(node)` gives the BUFFER that already holds a value; below it nothing is visited.  `all_reduce` is one
        of the three ways, or empty for that which fits the size."""
        self._known, self._all_reduce = known, all_reduce
        self._homes: dict[UOp, str] = {}

    def home(self, node: UOp) -> str:
        """The device of a value; "" where only constants are below."""
        homes, known = self._homes, self._known
        for each in toposort(node, enter=lambda n: n not in homes and n.op is not ops.COPY and known(n) is None):
            if each in homes:
                continue
            held = each if each.op in _MEMORY else known(each)
            if held is not None:
                homes[each] = held.arg[-1]
            elif each.op is ops.COPY:
                homes[each] = each.arg
            else:
                homes[each] = next((homes[source] for source in each.src if homes[source]), "")
        return homes[node]

    def sent(self, node: UOp, device: str) -> UOp:
        """The value on a device; constants are on each."""
        return node if self.home(node) in ("", device) else UOp(ops.COPY, node.dtype, (node,), device)

    def settled(self, node: UOp, device: str) -> UOp:
        """The value in memory of its own on a device."""
        own = node.op is ops.COPY and node.arg == device
        return node if own else UOp(ops.COPY, node.dtype, (node,), device)

    def gathered(self, value: Placed, shape: tuple[int, ...], device: str) -> UOp:
        """All of a value on one device."""
        if value.where is None:
            return self.sent(value.parts[0], device)
        if value.where.axis is None:
            names = value.where.devices
            return self.sent(value.parts[names.index(device) if device in names else 0], device)
        return self._joined(value, value.parts, value.where.axis, value.where.spans, shape, device)

    def dealt(self, value: Placed, shape: tuple[int, ...], to: Placement) -> tuple[UOp, ...]:
        """The parts of a value laid out in another way; only what a device lacks goes there."""
        if to.axis is None:
            return tuple([self.gathered(value, shape, device) for device in to.devices])
        axis, found = to.axis, []
        for number, ((begin, end), device) in enumerate(zip(to.spans, to.devices, strict=True)):
            if value.where is None or value.where.axis is None:
                whole = value.parts[0 if value.where is None else number]
                found.append(self.sent(cut(whole, axis, begin, end), device))
                continue
            along, spans = value.where.axis, value.where.spans
            if along == axis:
                held = [(min(max(first, begin), end), max(min(last, end), begin)) for first, last in spans]
                own = [
                    cut(part, axis, a - first, max(b, a) - first)
                    for part, (a, b), (first, _) in zip(value.parts, held, spans, strict=True)
                ]
                spans = [(a - begin, max(b, a) - begin) for a, b in held]
            else:
                own = [cut(part, axis, begin, end) for part in value.parts]
            found.append(self._joined(value, own, along, spans, to.part_shape(shape, number), device))
        return tuple(found)

    def _joined(
        self, value: Placed, parts: Sequence[UOp], axis: int, spans: Sequence[tuple[int, int]],
        shape: tuple[int, ...], device: str,
    ) -> UOp:  # fmt: skip
        """Parts from several devices one behind the other on this one."""
        dtype = value.parts[0].dtype
        result = UOp(ops.EXPAND, dtype, (UOp.const(dtype, 0),), shape)
        for part, (begin, end) in zip(parts, spans, strict=True):
            if 0 in part.shape:
                continue
            if part.shape == shape:
                return self.sent(part, device)
            box = tuple([(begin, end) if i == axis else (0, size) for i, size in enumerate(shape)])
            result = UOp(ops.WRITE, dtype, (result, self.sent(part, device)), (("shrink", box),))
        return result

    def reduced(self, parts: Sequence[UOp], op: Op, devices: tuple[str, ...]) -> tuple[UOp, ...]:
        """The combination of equally shaped parts, in their order, on every device."""
        count = element_count(parts[0].shape)
        way = self._all_reduce or ("all-to-all" if count >= _MANY else "naive")
        if way == "naive" or varies(parts[0].shape):
            return tuple([combined([self.sent(part, device) for part in parts], op) for device in devices])
        rows = [UOp(ops.RESHAPE, part.dtype, (part,), (count,)) for part in parts]
        where, pieces = split(devices, 0, count), list[UOp]()
        for number, ((begin, end), device) in enumerate(zip(where.spans, devices, strict=True)):
            own = [cut(row, 0, begin, end) for row in rows]
            if way == "ring" and len(parts) == len(devices):
                pieces.append(self._passed_round(own, op, devices, number))
            else:
                pieces.append(combined([self.sent(piece, device) for piece in own], op))
        whole = self.dealt(Placed(tuple(pieces), where), (count,), Placement(devices))
        return tuple([UOp(ops.RESHAPE, each.dtype, (each,), parts[0].shape) for each in whole])

    def _passed_round(self, own: Sequence[UOp], op: Op, devices: tuple[str, ...], last: int) -> UOp:
        """What each device has of a piece combined on the way round to the last one."""
        order = [(last + step) % len(devices) for step in range(1, len(devices) + 1)]
        total = own[order[0]]
        for number in order[1:]:
            total = combined([self.sent(total, devices[number]), own[number]], op)
        return total


_MEMORY = frozenset({ops.BUFFER, ops.PARAM})
_MANY = 1 << 16
"""From so many elements on a device combines a piece only."""


def combined(parts: Sequence[UOp], op: Op) -> UOp:
    """Values combined from the first to the last."""
    dtype = parts[0].dtype
    if op is not ops.ADD or not dtype.is_float or dtype.itemsize >= dtypes.float32.itemsize or len(parts) == 1:
        return reduce(lambda left, right: UOp.apply(op, left, right), parts)
    return reduce(lambda left, right: left + right, [part.cast(dtypes.float32) for part in parts]).cast(dtype)


def cut(node: UOp, axis: int, begin: int, end: int) -> UOp:
    """A piece along an axis; of what repeats along it, fewer repetitions."""
    shape = node.shape
    if (begin, end) == (0, shape[axis]):
        return node
    if node.op is ops.EXPAND:
        source = node.src[0].shape
        inner = axis - (len(shape) - len(source))
        if inner < 0 or source[inner] == 1:
            return UOp(ops.EXPAND, node.dtype, node.src, (*shape[:axis], end - begin, *shape[axis + 1 :]))
    box = tuple([(begin, end) if i == axis else (0, size) for i, size in enumerate(shape)])
    return UOp(ops.SHRINK, node.dtype, (node,), box)
