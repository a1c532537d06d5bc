"""Simplify a `TENSOR` graph before fusion.

Takes canonical outputs and gives equal ones without DETACH and FUNCTION, without reductions over nothing, and
without WRITE: what a plan leaves in memory is read from there, as an AFTER of it; any other WRITE is a choice
between old and new.  A view that shows only the new, or only the old, is a view of that.  A value that is
the same everywhere (a constant behind any movement but PAD) is computed once, at rank 0.  No value
changes: elementwise nodes are rebuilt through the laws of `simplify`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from lazulite.analysis.kinds import FEW_ROWS, HERE, LEAVES, LONG, crosses
from lazulite.analysis.regions import Region, apply_region, invert, may_share
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.infer import lie_alike
from lazulite.ir.size import Size, varies
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.groups import element_count
from lazulite.simplify.normal import normal

MAX_WRITES = 1024
"""How many writes a view is looked at through."""


def prepare(
    outputs: Sequence[UOp], in_memory: Mapping[UOp, tuple[UOp, int]] = MappingProxyType({})
) -> tuple[list[UOp], dict[UOp, UOp]]:
    """The simplified outputs, and for each new node the (first) node of the graph that it stands for.

    `in_memory` tells of WRITEs in which memory they lie, and after which store.  An output that is the same
    everywhere is an EXPAND of a rank-0 value.
    """
    done: dict[UOp, UOp] = {}
    origins: dict[UOp, UOp] = {}
    nodes = toposort(*outputs)
    devices = devices_of(nodes) if any(crosses(node) for node in nodes) else {}
    for node in nodes:
        src = tuple([done[source] for source in node.src])
        if crosses(node) and 0 in node.shape and node not in outputs:  # there is nothing to send
            done[node] = spread(UOp.const(node.dtype, 0), node.shape)
        elif crosses(node) and node.arg == devices[node.src[0]]:
            done[node] = UOp(node.op, node.dtype, src, HERE)
        elif node in in_memory:
            target, sequence = in_memory[node]
            done[node] = UOp(ops.AFTER, node.dtype, (target, src[1]), sequence)
        else:
            seen = _seen(node, done)
            done[node] = _rebuild(node, src) if seen is None else seen
        origins.setdefault(done[node], node)
    return [done[output] for output in outputs], origins


def devices_of(nodes: Sequence[UOp]) -> dict[UOp, str]:
    """The device of each node of a topological order; "" where only constants are below."""
    devices: dict[UOp, str] = {}
    for node in nodes:
        if node.op is ops.PARAM:
            devices[node] = node.arg[2]
        elif crosses(node):
            devices[node] = node.arg
        else:
            devices[node] = next((devices[s] for s in node.src if devices[s]), "")
    return devices


def uniform(node: UOp) -> UOp | None:
    """The rank-0 node that every element of this value equals, if the movements above it show one."""
    while node.shape and node.op in ops.MOVEMENT and node.op is not ops.PAD:
        node = node.src[0]
    return node if node.shape == () else None


def spread(node: UOp, shape: tuple[int, ...]) -> UOp:
    """A rank-0 value repeated to a shape."""
    return node if node.shape == shape else UOp(ops.EXPAND, node.dtype, (node,), shape)


def _rebuild(node: UOp, src: tuple[UOp, ...]) -> UOp:
    op = node.op
    if op is ops.DETACH or op is ops.FUNCTION:
        return src[0]
    if op is ops.WRITE:
        return _written(node, *src)
    if op is ops.REDUCE:
        return _reduced(node, src[0])
    if op is ops.GATHER:
        return _gathered(node, *src)
    if op is ops.LAUNCH:
        launch = UOp(op, node.dtype, tuple([_in_memory(source) for source in src]), node.arg)
        return launch if launch.shape == node.shape else UOp(ops.RESHAPE, node.dtype, (launch,), node.shape)
    if op in ops.ELEMENTWISE and not (op is ops.BITCAST and node.dtype.itemsize != src[0].dtype.itemsize):
        return _elementwise(node, src)
    if op in ops.MOVEMENT:
        return _moved(node, src[0])
    return node if src == node.src else UOp(op, node.dtype, src, node.arg)


def _in_memory(source: UOp) -> UOp:
    """What a hand-written kernel finds in memory: a constant has to be put there, a shape makes no difference."""
    while source.op is ops.RESHAPE and lie_alike(source.shape, source.src[0].shape):
        source = source.src[0]
    return UOp(ops.COPY, source.dtype, (source,), "") if source.op in LEAVES - {ops.PARAM, ops.AFTER} else source


def _elementwise(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """Rank-0 operands lose their movements, since they stand beside any shape."""
    shape = node.shape
    src = tuple([u if (u := uniform(source)) is not None else source for source in src])
    result = normal(node.op, node.dtype, src, node.arg)
    return spread(result, shape) if result.shape == () else result


def _moved(node: UOp, source: UOp) -> UOp:
    """Movements of movements of the same kind become one; those that move nothing vanish."""
    if node.op is not ops.PAD and (value := uniform(source)) is not None:
        return spread(value, node.shape)
    if node.op is ops.RESHAPE and source.op is ops.RESHAPE:
        source = source.src[0]
    if node.op is ops.PERMUTE and node.arg == tuple(range(len(node.arg))):
        return source
    if node.op is not ops.FLIP and node.op is not ops.PERMUTE and source.shape == node.shape:
        return source
    return UOp(node.op, node.dtype, (source,), node.arg)


def _gathered(node: UOp, x: UOp, *positions: UOp) -> UOp:
    """Nothing but zeros comes from nothing; what is cast is picked first, since 0 stays 0."""
    if 0 in x.shape:
        return spread(UOp.const(node.dtype, 0), node.shape)
    if x.op is not ops.CAST:
        return UOp(ops.GATHER, node.dtype, (x, *positions))
    picked = UOp(ops.GATHER, x.src[0].dtype, (x.src[0], *positions))
    return normal(ops.CAST, node.dtype, (picked,))


def _reduced(node: UOp, source: UOp) -> UOp:
    """A reduction over axes of size 1 is its source; over constants it is exact or left alone."""
    op, axes = node.arg
    axes = tuple([axis for axis in axes if source.shape[axis] != 1])
    if not axes:
        return source
    if 0 in source.shape:
        return spread(UOp.const(node.dtype, op.identity(node.dtype)), node.shape)
    value = uniform(source)
    if value is not None and value.op is ops.CONST and not varies(source.shape):
        count = element_count(source.shape) // element_count(node.shape)
        folded = _folded_reduction(op, value, count)
        if folded is not None:
            return spread(folded, node.shape)
    parts = _parts(node, source, axes)
    return UOp(ops.REDUCE, node.dtype, (source,), (op, axes)) if parts is None else _in_parts(node, source, axes, parts)


def _parts(node: UOp, source: UOp, axes: tuple[int, ...]) -> int | None:
    """Into how many parts a long reduction with few results is cut, so that threads can share it.

    The number follows from the shape alone.  Narrow floats stay whole: their parts would be rounded.
    """
    few = element_count(node.shape) < FEW_ROWS
    if not few or element_count(source.shape) < LONG or (node.dtype.is_float and node.dtype.bits < 32):
        return None
    extent = source.shape[axes[0]]
    if isinstance(extent, Size):
        return None
    return next((parts for parts in (64, 48, 32, 16) if extent > parts and extent % parts == 0), None)


def _in_parts(node: UOp, source: UOp, axes: tuple[int, ...], parts: int) -> UOp:
    """The reduction of the reductions of equal parts of the first axis."""
    op, first = node.arg[0], axes[0]
    shape = source.shape
    split = (*shape[:first], parts, shape[first] // parts, *shape[first + 1 :])
    cut = UOp(ops.RESHAPE, node.dtype, (source,), split)
    inner = UOp(ops.REDUCE, node.dtype, (cut,), (op, tuple([axis + 1 for axis in axes])))
    outer = UOp(ops.REDUCE, node.dtype, (inner,), (op, (first,)))
    return UOp(ops.RESHAPE, node.dtype, (outer,), node.shape)


def _folded_reduction(op: ops.Op, value: UOp, count: int) -> UOp | None:
    """The reduction of equal constants, where no order of rounding could give another value."""
    if op in (ops.MAX, ops.MIN, ops.AND, ops.OR):
        return value
    if op is not ops.ADD:
        return None
    number = value.value
    if value.dtype.is_int:
        return UOp.const(value.dtype, number * count)
    whole = value.dtype.is_float and number == number and abs(number) < 1 << 24 and number == int(number)
    exact = whole and abs(number) * count < 1 << min(24, value.dtype.mantissa_bits)
    return UOp.const(value.dtype, number * count) if exact else None


def _written(node: UOp, previous: UOp, value: UOp) -> UOp:
    """WRITE as a value: the new elements where the region is, the old ones elsewhere."""
    if not node.arg:
        return spread(value, previous.shape)
    back = invert(node.arg, previous.shape)
    shape = value.shape or _view_shape(previous, node.arg)
    if 0 in shape:
        return previous
    place = partial(apply_region, region=back)
    inside = place(UOp(ops.EXPAND, dtypes.bool, (UOp.const(dtypes.bool, True),), shape))
    return UOp.apply(ops.WHERE, inside, place(spread(value, shape)), previous)


def _seen(node: UOp, done: Mapping[UOp, UOp]) -> UOp | None:
    """A view of something written in parts, where it shows just one of them, or none."""
    steps: list[UOp] = []
    while node.op in ops.MOVEMENT and node.op is not ops.EXPAND:
        steps.append(node)
        node = node.src[0]
    if not steps or node.op is not ops.WRITE or 0 in steps[0].shape:
        return None
    first, region = node, tuple([(step.op.name, step.arg) for step in reversed(steps)])
    for _ in range(MAX_WRITES):
        if node.op is not ops.WRITE or may_share(node.shape, node.arg, region):
            break
        node = node.src[0]
    if node.op is ops.WRITE and node.arg == region:
        return spread(done[node.src[1]], steps[0].shape)
    if node is first:
        return None
    seen = done[node]
    for step in reversed(steps):
        seen = _moved(step, seen)
    return seen


def _view_shape(previous: UOp, region: Region) -> tuple[int, ...]:
    return apply_region(previous, region).shape
