"""Parts by arrays of positions: `t[[2, 0]]`, `t[:, rows]`, `t[rows, columns]`, `t[mask]`, read and written as in NumPy.

Positions are integer tensors, lists or NumPy arrays; they meet by broadcasting, and their axes stand where
the first of them stood, or in front when slices lie between them.  A mask of bools stands for the
positions of its true elements, which are looked up on the host when it is used.  Positions from the
host that lie outside raise; from a tensor they read 0 and write nothing.  Of several writes to one
place the last one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lazulite.autograd.scatter import scattered
from lazulite.base.errors import DTypeError, IndexRangeError, ShapeError
from lazulite.base.settings import SETTINGS
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import Base, broadcast_shape, expanded


def is_picking(part: Any) -> bool:
    """Whether a part of an index is an array of positions or a mask."""
    if isinstance(part, (list, tuple, Base)):
        return True
    return hasattr(part, "dtype") and getattr(part, "shape", ()) != ()


def refuse_outside(function: str, positions: Base, low: int, size: int, ignored: int | None = None) -> None:
    """With CHECK=bounds look at positions now, and raise for one that is not in `low` to below `size`."""
    if "bounds" not in SETTINGS.CHECK:
        return
    elements = positions.flatten().tolist()  # type: ignore[attr-defined]
    outside = [place for place in elements if not low <= place < size and place != ignored]
    if outside:
        raise IndexRangeError(
            function, f"position {outside[0]} is outside an axis of size {size}", about={"positions": positions}
        )


def position_node(function: str, positions: Base, size: int) -> UOp:
    """int32 positions on an axis of this size: negative ones count from the end, the others stay outside.

    With CHECK=bounds they are looked at now, and those outside raise.
    """
    node, dtype = positions.uop, positions.dtype
    if not dtype.is_int:
        raise DTypeError(function, f"positions are integers, got {dtype.name}", about={"positions": positions})
    refuse_outside(function, positions, -size, size)
    if dtype.max > dtypes.int32.max:
        inside = node < size if dtype.min == 0 else (node < size) & (node >= -size)
        node = inside.where(node, size)
    node = node.cast(dtypes.int32)
    return node if int(node.bounds[0]) >= 0 else (node < 0).where(node + size, node)


@dataclass(slots=True)
class Picking:
    """What an index with arrays picks: positions on the first axes of a view."""

    view: Any
    positions: list[UOp]
    at: int
    """How many of the other axes stand before those of the positions."""

    @property
    def _order(self) -> tuple[int, ...]:
        """The axes of what a gather gives, in the order of the result."""
        own = len(self.positions[0].shape)
        others = range(own, own + len(self.view.shape) - len(self.positions))
        return (*others[: self.at], *range(own), *others[self.at :])

    def read(self) -> Any:
        """The picked elements."""
        found = UOp(ops.GATHER, self.view.dtype, (self.view.uop, *self.positions))
        order = self._order
        if order != tuple(range(len(order))):
            found = UOp(ops.PERMUTE, found.dtype, (found,), order)
        return self.view._derived(found)

    def write(self, value: UOp, shape: tuple[int, ...]) -> None:
        """Write a value, of rank 0 or fitting the shape of what `read` gives, to the picked places."""
        order = self._order
        back = tuple(sorted(range(len(order)), key=order.__getitem__))
        value = UOp(ops.PERMUTE, value.dtype, (expanded(value, shape),), back)
        self.view.assign(self.view._derived(scattered(None, self.view.uop, self.positions, value)))


def plan(tensor: Any, index: Any) -> Picking:
    """The picking that an index with arrays means."""
    raw = _masks_as_positions(tensor, list(index) if isinstance(index, tuple) else [index])
    parts = tensor._whole_index(tuple(raw))
    plain, kinds, axis = _plain_parts(tensor, parts), [], 0
    view = tensor if all(part == slice(None) for part in plain) else tensor[tuple(plain)]
    tensors = []
    for part in parts:
        kinds.append("new" if part is None else _kind(part))
        if kinds[-1] == "array":
            tensors.append(_checked(tensor, part, axis))
        axis += part is not None
    order = [n for n, kind in enumerate(kinds) if kind == "array"]
    others = [n for n, kind in enumerate(kinds) if kind in ("new", "slice")]
    dropped = [n for n, kind in enumerate(kinds) if kind == "integer"]
    sizes = view.shape
    for op, arg, now in (
        (ops.PERMUTE, (*order, *others, *dropped), tuple(range(len(sizes)))),
        (ops.RESHAPE, tuple([sizes[n] for n in (*order, *others)]), sizes),
    ):
        if arg != now:
            view = view._moved(op, arg)
    shape = broadcast_shape("getitem", tensors)
    nodes = [position_node("getitem", t, size) for t, size in zip(tensors, view.shape, strict=False)]
    first = min([*order, *dropped])
    at = sum(n < first for n in others) if _adjacent(raw) else 0
    return Picking(view, [expanded(node, shape) for node in nodes], at)


def mask_write(tensor: Any, index: Any, value: UOp) -> bool:
    """Write through a mask that is the whole index without looking at it, if the value is the same for all rows."""
    mask = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if not is_picking(mask) or isinstance(mask, (list, tuple)) or str(getattr(mask.dtype, "name", "")) != "bool":
        return False
    rank = len(mask.shape)
    if mask.shape != tensor.shape[:rank] or len(value.shape) > len(tensor.shape) - rank:
        return False
    node = tensor._tensor("setitem", mask).uop
    node = UOp(ops.RESHAPE, node.dtype, (node,), (*mask.shape, *[1] * (len(tensor.shape) - rank)))
    value = value if value.shape == () else expanded(value, tensor.shape)
    tensor.assign(tensor._derived(expanded(node, tensor.shape).where(value, tensor.uop)))
    return True


@dataclass(slots=True)
class _FromHost:
    """Positions known on the host, those outside raise; `size` is that of the mask they come from."""

    positions: Any
    size: int | None = None


def _masks_as_positions(tensor: Any, raw: list[Any]) -> list[Any]:
    """The parts of an index with arrays as tensors and each mask as the positions of its true elements."""
    result: list[Any] = []
    for part in raw:
        if not is_picking(part):
            result.append(part)
            continue
        host = not isinstance(part, Base)
        found = tensor._tensor("getitem", list(part) if isinstance(part, tuple) else part)
        if not hasattr(part, "dtype") and not found.numel():
            found = found.cast(dtypes.int32)  # an empty list does not say what it holds
        if found.dtype is dtypes.bool:
            result += [_FromHost(p, size) for p, size in zip(host_positions(found), found.shape, strict=True)]
        else:
            result.append(_FromHost(found) if host else found)
    return result


def _checked(tensor: Any, part: Any, axis: int) -> Any:
    """The positions as a tensor; raises where they cannot be on the axis."""
    if not isinstance(part, _FromHost):
        return part
    size, found = tensor.shape[axis], part.positions
    if part.size not in (None, size):
        raise ShapeError(
            "getitem", f"a mask of {part.size} elements does not fit axis {axis} of size {size}",
            about={"tensor": tensor},
        )  # fmt: skip
    if part.size is None and found.dtype.is_int and found.numel():
        values = found.numpy()
        low, high = int(values.min()), int(values.max())
        if low < -size or high >= size:
            raise IndexRangeError(
                "getitem", f"index {low if low < -size else high} is outside axis {axis} of size {size}",
                about={"tensor": tensor},
            )  # fmt: skip
    return found


def _kind(part: Any) -> str:
    if isinstance(part, slice):
        return "slice"
    return "array" if isinstance(part, (Base, _FromHost)) else "integer"


def _plain_parts(tensor: Any, parts: Sequence[Any]) -> list[Any]:
    """The same index with whole axes for arrays and boxes of size 1 for integers."""
    plain: list[Any] = []
    axis = 0
    for part in parts:
        if part is None or isinstance(part, slice):
            plain.append(part)
        elif _kind(part) == "array":
            plain.append(slice(None))
        else:
            place = tensor._place(part, axis)
            plain.append(slice(place, place + 1))
        axis += part is not None
    return plain


def _adjacent(raw: Sequence[Any]) -> bool:
    """Whether nothing lies between the arrays and integers of an index."""
    places = [n for n, part in enumerate(raw) if part is not None and part is not Ellipsis and _kind(part) != "slice"]
    return places[-1] - places[0] == len(places) - 1


def host_positions(mask: Any) -> tuple[Any, ...]:
    """The positions of the true elements of a mask, one vector for each axis, looked up now."""
    return tuple([type(mask)(p.astype("int32"), device=mask.device) for p in mask.numpy().nonzero()])
