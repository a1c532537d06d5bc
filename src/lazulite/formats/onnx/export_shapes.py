"""Movement, reductions, and the reading and writing of places, as ONNX operators.

Takes nodes of the `TENSOR` language with the names of their sources, gives the name of the result.  A WRITE is
spelt in `TENSOR` first: the value put in its place among zeros, chosen there and the old value elsewhere.
"""

from __future__ import annotations

import math

from lazulite.analysis.regions import apply_region, invert
from lazulite.formats.onnx.export_elements import computed, where
from lazulite.formats.onnx.export_graph import GraphWriter, Value
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp

_FIRST = -(1 << 63)
"""Where a Slice that runs backwards ends."""
_REDUCTIONS = {ops.ADD: "ReduceSum", ops.MUL: "ReduceProd", ops.MAX: "ReduceMax", ops.MIN: "ReduceMin"}
_OF_BOOLS = {ops.OR: ops.MAX, ops.AND: ops.MIN}


def moved(graph: GraphWriter, node: UOp, value: Value) -> Value:
    """A movement of a value."""
    source, arg = node.src[0], node.arg
    if node.op is ops.RESHAPE:
        return graph.reshape(value, source.shape, node.shape)
    if node.op is ops.PERMUTE:
        return graph.transpose(value, arg)
    if node.op is ops.EXPAND:
        return value if source.shape == arg else graph.node("Expand", value, graph.integers(arg))
    if node.op is ops.PAD:
        return _padded(graph, node, value)
    if node.op is ops.FLIP:
        return _sliced(graph, value, dict.fromkeys(arg, (-1, _FIRST)), backwards=True)
    cut = {axis: box for axis, box in enumerate(arg) if box != (0, source.shape[axis])}
    return _sliced(graph, value, cut)


def _sliced(graph: GraphWriter, value: Value, cut: dict[int, tuple[int, int]], backwards: bool = False) -> Value:
    """The box of a value; for each axis that is cut where it begins and ends."""
    if not cut:
        return value
    begins, ends = [[box[side] for box in cut.values()] for side in (0, 1)]
    steps = [graph.integers([-1] * len(cut))] if backwards else []
    return graph.node("Slice", value, *[graph.integers(part) for part in (begins, ends, [*cut])], *steps)


def _padded(graph: GraphWriter, node: UOp, value: Value) -> Value:
    if not any(width != (0, 0) for width in node.arg):
        return value
    before, after = [[width[side] for width in node.arg] for side in (0, 1)]
    return computed(graph, "Pad", [value], node.dtype, graph.integers([*before, *after]))


def reduced(graph: GraphWriter, node: UOp, value: Value) -> Value | None:
    """A reduction along axes, which stay with size 1; None where ONNX has no such reduction.

    What ONNX calls the greatest and least of numbers with a NaN among them is left open there.
    """
    op, axes = node.arg
    dtype = node.dtype
    if not axes:
        return value
    if dtype is dtypes.bool:
        wide = graph.cast(value, dtype, dtypes.uint8)
        operator = _REDUCTIONS[_OF_BOOLS.get(op, op)]
        return graph.cast(computed(graph, operator, [wide], dtypes.uint8, graph.integers(axes)), dtypes.uint8, dtype)
    if op not in _REDUCTIONS:
        return None
    return computed(graph, _REDUCTIONS[op], [value], dtype, graph.integers(axes))


def counted(graph: GraphWriter, node: UOp) -> Value:
    """An IOTA."""
    kind = node.dtype if node.dtype in (dtypes.int32, dtypes.int64) else dtypes.int64
    end = graph.cast(graph.size(node.arg), dtypes.index, kind)
    return graph.cast(graph.node("Range", graph.scalar(kind, 0), end, graph.scalar(kind, 1)), kind, node.dtype)


def gathered(graph: GraphWriter, node: UOp, value: Value, positions: list[Value], inside: list[bool]) -> Value:
    """A GATHER; `inside` tells the positions that are known to lie in the source."""
    x, first = node.src[0], node.src[1]
    gate: Value | None = None
    places = []
    for axis, (position, certain) in enumerate(zip(positions, inside, strict=True)):
        if not certain:
            size = graph.cast(graph.size(x.shape[axis]), dtypes.index, dtypes.int32)
            low = graph.node("Less", position, graph.scalar(dtypes.int32, 0))
            fits = graph.node("And", graph.node("Not", low), graph.node("Less", position, size))
            gate = fits if gate is None else graph.node("And", gate, fits)
            position = graph.node("Where", fits, position, graph.scalar(dtypes.int32, 0))
        places.append(position)
    if len(places) == 1:
        found = graph.node("Gather", value, places[0], axis=0)
    else:
        column = graph.integers([-1])
        rows = [graph.cast(graph.node("Unsqueeze", p, column), dtypes.int32, dtypes.int64) for p in places]
        found = graph.node("GatherND", value, graph.node("Concat", *rows, axis=-1))
    if gate is None:
        return found
    shape = (*first.shape, *(1 for _ in x.shape[len(places) :]))
    return where(graph, graph.reshape(gate, first.shape, shape), found, graph.scalar(node.dtype, 0), node.dtype)


def scattered(graph: GraphWriter, node: UOp, memory: Value, places: Value, values: Value, reduction: str) -> Value:
    """Values put in int32 places of a flat memory with one element to spare, in the shape of the node."""
    size = math.prod(node.shape)
    rows = graph.cast(graph.node("Unsqueeze", places, graph.integers([-1])), dtypes.int32, dtypes.int64)
    more = {"reduction": reduction} if reduction else {}
    found = _sliced(graph, graph.node("ScatterND", memory, rows, values, **more), {0: (0, size)})
    return graph.reshape(found, (size,), node.shape)


def written(node: UOp) -> UOp:
    """A WRITE as a choice between the value in its place and the old one."""
    previous, value = node.src
    view = apply_region(previous, node.arg).shape
    spread = value if value.shape == view else UOp(ops.EXPAND, value.dtype, (value,), view)
    everywhere = UOp.const(dtypes.bool, True)
    everywhere = UOp(ops.EXPAND, dtypes.bool, (everywhere,), view) if view else everywhere
    back = invert(node.arg, previous.shape)
    return UOp.apply(ops.WHERE, apply_region(everywhere, back), apply_region(spread, back), previous)
