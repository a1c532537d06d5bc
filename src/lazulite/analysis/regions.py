"""Regions: the chains of movements by which a `WRITE` names a place in a value.

Takes and gives chains ((name, arg), ..): as nodes (`apply_region`), turned round (`invert`), and as positions
(`place_in_region`); two regions that share no element are told apart (`may_share`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from lazulite.analysis.access import Footprint, footprint
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.infer import Shape
from lazulite.ir.ops import Op
from lazulite.ir.size import size_node
from lazulite.ir.uop import UOp, index

Region = tuple[tuple[str, Any], ...]


def apply_region(node: UOp, region: Region) -> UOp:
    """The view of the node to which the chain of movements leads."""
    for name, arg in region:
        node = UOp(ops.OPS[name], node.dtype, (node,), arg)
    return node


def invert(region: Region, shape: Shape) -> Region:
    """The chain that takes a value of the view's shape back into `shape`, zeros outside the region."""
    node = UOp(ops.PARAM, dtypes.float32, (), (0, shape, ""))
    inverse: list[tuple[str, Any]] = []
    for name, arg in region:
        inverse.append(_inverse(ops.OPS[name], arg, node.shape))
        node = apply_region(node, ((name, arg),))
    return tuple(reversed(inverse))


def _inverse(op: Op, arg: Any, shape: Shape) -> tuple[str, Any]:
    if op is ops.RESHAPE:
        return "reshape", shape
    if op is ops.PERMUTE:
        return "permute", tuple(sorted(range(len(arg)), key=arg.__getitem__))
    if op is ops.SHRINK:
        return "pad", tuple([(begin, size - end) for (begin, end), size in zip(arg, shape, strict=True)])
    if op is ops.PAD:
        return "shrink", tuple([(before, before + size) for (before, _), size in zip(arg, shape, strict=True)])
    if op is ops.FLIP:
        return "flip", arg
    raise ValueError(f"a region cannot be written through {op.name}: it repeats elements")


def place_in_region(
    shape: Sequence[int], region: Region, position: tuple[UOp, ...]
) -> tuple[tuple[UOp, ...], UOp | None]:
    """Where the element of a view lies in the memory that the region's movements start from."""
    # Here, because a process that schedules nothing needs none of the laws that come with it.
    from lazulite.analysis.index_map import both, through

    base = UOp(ops.PARAM, dtypes.bool, (), (0, tuple(shape), ""))
    node, gate = apply_region(base, region), None
    while node is not base:
        position, inner = through(node, position)
        gate = both(gate, inner)
        node = node.src[0]
    return position, gate


def may_share(shape: Shape, left: Region, right: Region) -> bool:
    """Whether two regions of a value may have an element in common.

    >>> may_share((4,), (("shrink", ((0, 2),)),), (("shrink", ((2, 4),)),))
    False
    """
    if not left or not right or left == right:
        return True
    return all(a.meets(b) for a, b in zip(_footprints(shape, left), _footprints(shape, right), strict=True))


@lru_cache(maxsize=1024)
def _footprints(shape: Shape, region: Region) -> tuple[Footprint, ...]:
    """Where the elements of a view lie on each axis of its value."""
    view = apply_region(UOp(ops.PARAM, dtypes.bool, (), (0, shape, "")), region)
    ranges = [
        index(0) if extent == 1 else UOp(ops.RANGE, dtypes.index, (size_node(extent),), ((axis,), "loop"))
        for axis, extent in enumerate(view.shape)
    ]
    return tuple([footprint(position) for position in place_in_region(shape, region, tuple(ranges))[0]])
