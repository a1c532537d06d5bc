"""Regions: the chains of movements by which a `WRITE` names a place in a value.

Takes and gives chains ((name, arg), ..): as nodes (`apply_region`), and turned round (`invert`).
"""

from __future__ import annotations

from typing import Any

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.infer import Shape
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp

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
