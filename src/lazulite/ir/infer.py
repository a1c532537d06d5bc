"""What follows from a node and its sources: the shape of a value.

Shapes belong to the `TENSOR` language.  An elementwise operand of rank 0 stands beside operands of
any shape (it is the same for every element); all others have equal shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lazulite.ir import ops
from lazulite.ir.ops import Op
from lazulite.ir.size import most, varies
from lazulite.ir.uop import UOp

Shape = tuple[int, ...]


def shape_of(node: UOp) -> Shape:
    """The shape of a node whose sources know theirs."""
    rule = _SHAPE_RULES.get(node.op)
    return rule(node) if rule is not None else _elementwise_shape(node)


def _elementwise_shape(node: UOp) -> Shape:
    for source in node.src:
        if source.shape:
            return source.shape
    return ()


def _reduced_shape(node: UOp) -> Shape:
    axes = node.arg[1]
    return tuple([1 if axis in axes else size for axis, size in enumerate(node.src[0].shape)])


def _bitcast_shape(node: UOp) -> Shape:
    shape, old, new = node.src[0].shape, node.src[0].dtype.itemsize, node.dtype.itemsize
    return shape if old == new else (*shape[:-1], shape[-1] * old // new)


def _gathered_shape(node: UOp) -> Shape:
    x, *positions = node.src
    return positions[0].shape + x.shape[len(positions) :]


def lie_alike(shape: Shape, source: Shape) -> bool:
    """Whether the same elements lie in memory alike in both shapes.

    They do unless sizes vary: memory has room for the most elements along each axis.  So of the axes that are
    reshaped together only the first may vary, those of size 1 apart: then what lies behind it stays where it is.
    """
    if 0 in shape or not (varies(shape) or varies(source)):
        return True
    return all(has_strides(shape[axes]) and has_strides(source[others]) for axes, others in blocks(shape, source))


def has_strides(shape: Shape) -> bool:
    """Whether the elements stand at constant distances when they are counted through without gaps."""
    return not varies([size for size in shape if size != 1][1:])


def blocks(shape: Shape, source: Shape) -> list[tuple[slice, slice]]:
    """The axes of both shapes cut into the shortest runs that hold equally many elements."""
    runs: list[tuple[slice, slice]] = []
    begin, source_begin = 0, 0
    while begin < len(shape) or source_begin < len(source):
        end, source_end = min(begin + 1, len(shape)), min(source_begin + 1, len(source))
        count, source_count = math.prod(shape[begin:end]), math.prod(source[source_begin:source_end])
        while count != source_count:
            if source_end == len(source) or (end < len(shape) and most(count) < most(source_count)):
                count, end = count * shape[end], end + 1
            else:
                source_count, source_end = source_count * source[source_end], source_end + 1
        runs.append((slice(begin, end), slice(source_begin, source_end)))
        begin, source_begin = end, source_end
    return runs


_SHAPE_RULES: dict[Op, Callable[[UOp], Shape]] = {
    ops.CONST: lambda node: (),
    ops.SCALAR: lambda node: (),
    ops.RANGE: lambda node: (),
    ops.IOTA: lambda node: (node.arg,),
    ops.BUFFER: lambda node: node.arg[2],
    ops.PARAM: lambda node: node.arg[1],
    ops.SCRATCH: lambda node: (node.arg[1],),
    ops.RESHAPE: lambda node: node.arg,
    ops.EXPAND: lambda node: node.arg,
    ops.PERMUTE: lambda node: tuple([node.src[0].shape[axis] for axis in node.arg]),
    ops.PAD: lambda node: tuple([b + s + e for s, (b, e) in zip(node.src[0].shape, node.arg, strict=True)]),
    ops.SHRINK: lambda node: tuple([end - begin for begin, end in node.arg]),
    ops.FLIP: lambda node: node.src[0].shape,
    ops.REDUCE: _reduced_shape,
    ops.BITCAST: _bitcast_shape,
    ops.GATHER: _gathered_shape,
    ops.COPY: lambda node: node.src[0].shape,
    ops.DETACH: lambda node: node.src[0].shape,
    ops.FUNCTION: lambda node: node.src[0].shape,
    ops.WRITE: lambda node: node.src[0].shape,
    ops.AFTER: lambda node: node.src[0].shape,
    ops.STORE: lambda node: (),
    ops.SINK: lambda node: (),
    ops.LOAD: lambda node: (),
    ops.LINEAR: lambda node: (),
    ops.CALL: lambda node: (),
    ops.PROGRAM: lambda node: (),
    ops.LAUNCH: lambda node: node.src[node.arg.result].shape,
}
