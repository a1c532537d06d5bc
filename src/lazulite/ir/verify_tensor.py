"""The rules of the `TENSOR` language: shapes fit, movements stay inside their source, regions lead home.

`tensor_faults` gives each node that breaks a rule, with a message, sources first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from lazulite.ir import ops
from lazulite.ir.calls import BODIES, bodies_below
from lazulite.ir.dtype import dtypes
from lazulite.ir.ops import Op
from lazulite.ir.size import Size
from lazulite.ir.uop import UOp, toposort

Faults = Iterator[tuple[UOp, str]]
Shape = tuple[int, ...]


def tensor_faults(root: UOp) -> Faults:
    bodies = bodies_below(root)
    for node in toposort(root, enter=lambda n: n not in bodies):
        rule = _RULES.get(node.op)
        if rule is not None:
            yield from rule(node)
        elif node.op in ops.MOVEMENT:
            message = movement_fault(node.op.name, node.arg, node.src[0].shape)
            if message:
                yield node, message
            if node.dtype is not node.src[0].dtype:
                yield node, f"{node.op.name} keeps the type of its source"
        elif node.op in ops.ELEMENTWISE:
            yield from _elementwise(node)


def _elementwise(node: UOp) -> Faults:
    shapes = {source.shape for source in node.src if source.shape}
    if len(shapes) > 1:
        found = " and ".join(str(source.shape) for source in node.src)
        yield node, f"operands have equal shapes or rank 0, got {found}"


def _bitcast(node: UOp) -> Faults:
    shape, old, new = node.src[0].shape, node.src[0].dtype.itemsize, node.dtype.itemsize
    if old != new and (not shape or shape[-1] * old % new):
        yield node, f"the last axis of {shape} does not hold whole elements of {node.dtype.name}"


# --- movement ----------------------------------------------------------------------------------


def movement_fault(name: str, arg: Any, shape: Shape) -> str | None:
    """What is wrong with a movement of a value of this shape, if anything."""
    if not isinstance(arg, tuple):
        return f"{name} needs a tuple, got {arg!r}"
    try:
        fits = _FITS[name](arg, shape)
    except (TypeError, ValueError):  # pairs or integers in the wrong place
        fits = False
    return None if fits else f"{name} by {arg} does not fit the shape {shape}"


def _fits_expand(arg: Shape, shape: Shape) -> bool:
    added = len(arg) - len(shape)
    return added >= 0 and all(old in (1, new) for old, new in zip(shape, arg[added:], strict=True))


def _distinct_axes(axes: Shape, shape: Shape) -> bool:
    return len(set(axes)) == len(axes) and all(0 <= axis < len(shape) for axis in axes)


_FITS: dict[str, Callable[[Any, Shape], bool]] = {
    "reshape": lambda arg, shape: min(arg, default=0) >= 0 and math.prod(arg) == math.prod(shape),
    "permute": lambda arg, shape: sorted(arg) == list(range(len(shape))),
    "expand": _fits_expand,
    "pad": lambda arg, shape: len(arg) == len(shape) and all(before >= 0 <= after for before, after in arg),
    "shrink": lambda arg, shape: (
        len(arg) == len(shape) and all(0 <= begin <= end <= size for (begin, end), size in zip(arg, shape, strict=True))
    ),
    "flip": _distinct_axes,
}


def moved_shape(name: str, arg: Any, shape: Shape) -> Shape:
    """The shape after a movement that fits."""
    if name in ("reshape", "expand"):
        return tuple(arg)
    if name == "permute":
        return tuple(shape[axis] for axis in arg)
    if name == "pad":
        return tuple(before + size + after for size, (before, after) in zip(shape, arg, strict=True))
    return tuple(end - begin for begin, end in arg) if name == "shrink" else shape


# --- whole values ------------------------------------------------------------------------------


def _reduce(node: UOp) -> Faults:
    op, axes = node.arg
    if len(node.src) != 1:
        yield node, "REDUCE over ranges belongs to KERNEL; in TENSOR it takes one operand"
    elif op not in ops.REDUCING:
        yield node, f"{op} cannot reduce"
    elif node.src[0].dtype not in op.accepts or node.dtype is not node.src[0].dtype:
        yield node, f"a reduction by {op.name} takes and gives one type that {op.name} accepts"
    elif not _distinct_axes(axes, node.src[0].shape):
        yield node, f"axes {axes} are not distinct axes of the shape {node.src[0].shape}"


def _write(node: UOp) -> Faults:
    previous, value = node.src
    shape = previous.shape
    if not (node.dtype is previous.dtype is value.dtype):
        yield node, f"a write keeps the type, got {value.dtype.name} into {previous.dtype.name}"
    for name, arg in node.arg:
        message = movement_fault(name, arg, shape) if name in _FITS else f"{name} is no movement"
        if message:
            yield node, f"in the region: {message}"
            return
        shape = moved_shape(name, arg, shape)
    if value.shape not in (shape, ()):
        yield node, f"the region has the shape {shape}, the value {value.shape}"


def _gather(node: UOp) -> Faults:
    x, *positions = node.src
    if not 0 < len(positions) <= len(x.shape):
        yield node, f"a gather of {x.shape} takes positions for one or more of its axes, got {len(positions)}"
    elif node.dtype is not x.dtype or {p.dtype for p in positions} != {dtypes.int32}:
        yield node, "a gather keeps the type, and its positions are int32"
    elif len({p.shape for p in positions}) > 1:
        yield node, f"positions have one shape, got {' and '.join(str(p.shape) for p in positions)}"


def _store(node: UOp) -> Faults:
    if len(node.src) != 2:
        yield node, "a STORE in TENSOR takes a destination and a value"
    elif node.src[0].dtype is not node.src[1].dtype:
        yield node, "a STORE keeps the type of its destination"
    elif node.src[1].shape not in (node.src[0].shape, ()):
        yield node, f"the destination has the shape {node.src[0].shape}, the value {node.src[1].shape}"


def _call(node: UOp) -> Faults:
    if not node.src or node.src[0].op not in BODIES:
        yield node, "the first source of a CALL is its body: a SINK, LINEAR, COPY or PROGRAM"
    elif not isinstance(node.arg, int) or len(node.src) - 1 - node.arg not in (0, 1):
        yield node, f"a CALL of {node.arg} arguments has these and at most a gradient as sources, got {len(node.src)}"


def _leaf(node: UOp) -> Faults:
    shape = node.shape
    if not isinstance(shape, tuple) or any(not isinstance(size, (int, Size)) or size < 0 for size in shape):
        yield node, f"{shape!r} is no shape"


_RULES: dict[Op, Callable[[UOp], Faults]] = {
    ops.BUFFER: _leaf,
    ops.PARAM: _leaf,
    ops.IOTA: _leaf,
    ops.REDUCE: _reduce,
    ops.GATHER: _gather,
    ops.WRITE: _write,
    ops.STORE: _store,
    ops.CALL: _call,
    ops.BITCAST: _bitcast,
}
