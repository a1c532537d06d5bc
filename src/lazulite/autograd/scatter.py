"""The way back from positions: values combined at the places that positions name.

Takes and gives `TENSOR` nodes.  `scattered` is the adjoint of GATHER (with ADD), and what scattering
methods and item assignment are made of.  There is no scattering kernel: each place looks at every value
that could belong to it, which costs (places x values).  An axis whose positions are 0, 1, 2, .. along an
axis of their own needs no search, so picking along one axis costs only what that axis holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.infer import Shape
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp


def scattered(op: Op, values: UOp, shape: Shape, positions: Sequence[UOp]) -> UOp:
    """result[p(i).., j..] = values[i.., j..], combined by `op` where several values go to one place.

    `shape` holds the sizes of the axes that the int32 positions are for.  Where nothing goes stands the
    identity of `op`; what goes outside is dropped.
    """
    rank = len(positions[0].shape)
    aligned = _aligned(positions)
    searched = [axis for axis in range(len(positions)) if axis not in aligned]
    kept = list(aligned.values())
    order = kept + [axis for axis in range(rank) if axis not in kept]
    lead, rest = tuple([values.shape[axis] for axis in kept]), values.shape[rank:]
    count = math.prod(values.shape[axis] for axis in order[len(kept) :])
    sizes = tuple([shape[axis] for axis in searched])
    full = (*lead, count, *sizes, *rest)

    nothing = UOp.const(values.dtype, op.identity(values.dtype) if op.identity else 0)
    moved = _move(ops.PERMUTE, values, (*order, *range(rank, len(values.shape))))
    chosen = _spread(moved, (*lead, count, *(1,) * len(sizes), *rest), full)
    for number, axis in enumerate(searched):
        position = _move(ops.PERMUTE, positions[axis], tuple(order))
        position = _spread(position, (*lead, count) + (1,) * (len(full) - len(lead) - 1), full)
        chosen = position.eq(_places(shape[axis], len(lead) + 1 + number, full)).where(chosen, nothing)
    combined = UOp(ops.REDUCE, chosen.dtype, (chosen,), (op, (len(lead),)))
    result = _move(ops.RESHAPE, combined, (*lead, *sizes, *rest))
    sources = [*aligned, *searched]
    back = (*sorted(range(len(sources)), key=sources.__getitem__), *range(len(sources), len(result.shape)))
    return _resized(_move(ops.PERMUTE, result, back), (*shape, *rest), nothing)


def _aligned(positions: Sequence[UOp]) -> dict[int, int]:
    """For each axis whose positions count along an axis of their own: that axis."""
    found: dict[int, int] = {}
    for axis, position in enumerate(positions):
        along = _counted_axis(position)
        if along is not None and along not in found.values():
            found[axis] = along
    return found


def _counted_axis(position: UOp) -> int | None:
    """The axis along which positions are 0, 1, 2, .., if they are built to be."""
    inner = position.src[0] if position.op is ops.EXPAND else position
    base = inner.src[0] if inner.op is ops.RESHAPE else inner
    axes = [axis for axis, size in enumerate(inner.shape) if size != 1]
    if base.op is not ops.IOTA or len(axes) != 1:
        return None
    return axes[0] + len(position.shape) - len(inner.shape)


def _move(op: Op, node: UOp, arg: tuple[int, ...]) -> UOp:
    return UOp(op, node.dtype, (node,), arg)


def _spread(node: UOp, shape: Shape, full: Shape) -> UOp:
    return _move(ops.EXPAND, _move(ops.RESHAPE, node, shape), full)


def _places(size: int, axis: int, full: Shape) -> UOp:
    """0, 1, 2, .. along an axis."""
    count = UOp(ops.IOTA, dtypes.int32, (), size)
    return _spread(count, (1,) * axis + (size,) + (1,) * (len(full) - axis - 1), full)


def _resized(node: UOp, shape: Shape, nothing: UOp) -> UOp:
    """Cut or filled up at the end of each axis."""
    if node.shape == shape:
        return node
    box = tuple([(0, min(have, want)) for have, want in zip(node.shape, shape, strict=True)])
    cut = UOp(ops.SHRINK, node.dtype, (node,), box)
    around = tuple([(0, want - have) for have, want in zip(cut.shape, shape, strict=True)])
    inside = UOp(ops.EXPAND, dtypes.bool, (UOp.const(dtypes.bool, True),), cut.shape)
    if not any(after for _, after in around):
        return cut
    within, filled = [UOp(ops.PAD, part.dtype, (part,), around) for part in (inside, cut)]
    return filled if nothing.is_const(0) else within.where(filled, nothing)
