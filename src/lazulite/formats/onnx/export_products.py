"""Sums of products in the `TENSOR` language as Conv or MatMul, so that no product of every pair is in memory.

Takes REDUCEs of a MUL, whose factors are repeated along axes by EXPAND.  `Product` tells which axes of the product
each factor varies along; `convolution` asks of the first factor's elements which ones of its source they are, and
accepts windows that move by strides along the axes behind batch and channels.  What is neither stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lazulite.formats.onnx.export_elements import computed
from lazulite.formats.onnx.export_graph import GraphWriter, Shape, Value
from lazulite.formats.onnx.export_windows import Axes, View, Window, attributes, in_place, sizes, view, window
from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.size import Size
from lazulite.ir.uop import UOp

Name = Callable[[UOp], Value]
"""The value of a node in the graph that is written."""
_MATMUL = frozenset({
    dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint32,
    dtypes.uint64,
})  # fmt: skip
_CONV = frozenset({dtypes.float16, dtypes.float32})
"""Also float64 by the specification, but ONNX Runtime has no such kernel; a MatMul of windows it has."""


class Product(NamedTuple):
    """A sum of products: its factors, and which axes of the product are summed; none of these is of size 1."""

    node: UOp
    factors: tuple[View, View]
    summed: frozenset[int]

    @property
    def shape(self) -> Shape:
        return self.node.src[0].shape

    @property
    def kept(self) -> Axes:
        """The other axes that are not of size 1."""
        return tuple([a for a, size in enumerate(self.shape) if a not in self.summed and size != 1])


def product_of(node: UOp) -> Product | None:
    """The node as a sum over products of factors that share what is summed; None for anything else."""
    if node.op is not ops.REDUCE or node.arg[0] is not ops.ADD or node.src[0].op is not ops.MUL:
        return None
    shape, factors = node.src[0].shape, node.src[0].src
    if node.dtype not in _MATMUL or 0 in shape or any(factor.shape != shape for factor in factors):
        return None
    first, second = [view(factor) for factor in factors]
    summed = frozenset([axis for axis in node.arg[1] if shape[axis] != 1])
    if not summed or not summed <= first.axes & second.axes or first.axes == second.axes:
        return None
    return Product(node, (first, second), summed)


def product(graph: GraphWriter, found: Product, name: Name) -> Value:
    """A sum of products as a Conv where it is one, else as a MatMul."""
    for data in (0, 1):
        spelt = convolution(found, data)
        if spelt is not None:
            return _convolved(graph, found, spelt, name)
    return _multiplied(graph, found, name)


# --- matrix products -------------------------------------------------------------------------------


def _multiplied(graph: GraphWriter, found: Product, name: Name) -> Value:
    """The factors as matrices (batch.., rows, summed) and (batch.., summed, columns), and the result put in order."""
    first, second = [factor.axes for factor in found.factors]
    batch = [[a] for a in found.kept if a in first & second]
    sides = [[a for a in found.kept if a in own] for own in (first - second, second - first)]
    left, right = (1, 0) if sides[1] and (not sides[0] or sides[1] < sides[0]) else (0, 1)
    rows, columns, summed = sides[left], sides[right], sorted(found.summed)
    lead = [[a] for a in rows] if rows and not batch else [*batch, rows]  # further rows are batches of a matrix
    x = _arranged(graph, found, left, (*_joined(lead), *summed), [*lead, summed], name)
    y = _arranged(graph, found, right, (*_joined(batch), *summed, *columns), [*batch, summed, columns], name)
    made = [*lead, columns]
    axes = _joined(made)
    result = computed(graph, "MatMul", [x, y], found.node.dtype)
    value = graph.reshape(result, sizes(found.shape, made), sizes(found.shape, [[a] for a in axes]))
    return in_place(graph, found.node, value, axes)


def _arranged(
    graph: GraphWriter, found: Product, factor: int, axes: Axes, groups: Sequence[Sequence[int]], name: Name
) -> Value:
    """A factor without the axes along which it repeats, the others in an order and joined in groups."""
    part = found.factors[factor]
    own = sorted(part.axes)
    node = _without(part.node, frozenset(range(len(found.shape))) - part.axes)
    plain = graph.reshape(name(node), node.shape, sizes(found.shape, [[a] for a in own]))
    turned = graph.transpose(plain, [own.index(a) for a in axes])
    return graph.reshape(turned, sizes(found.shape, [[a] for a in axes]), sizes(found.shape, groups))


def _without(node: UOp, axes: frozenset[int]) -> UOp:
    """The value with size 1 along axes where it is one element repeated; what repeats it is left out."""
    kept = tuple([1 if axis in axes else size for axis, size in enumerate(node.shape)])
    if kept == node.shape:
        return node
    if node.op is ops.EXPAND:
        source = node.src[0]
        added = len(node.shape) - len(source.shape)
        inner = _without(source, frozenset([a - added for a in axes if a >= added and source.shape[a - added] != 1]))
        spread = ops.RESHAPE if (1,) * added + inner.shape == kept else ops.EXPAND
        return UOp(spread, node.dtype, (inner,), kept)
    if node.op is ops.PERMUTE:
        inner = _without(node.src[0], frozenset([node.arg[axis] for axis in axes]))
        return UOp(ops.PERMUTE, node.dtype, (inner,), node.arg)
    return UOp(ops.SHRINK, node.dtype, (node,), tuple([(0, size) for size in kept]))


# --- convolutions ----------------------------------------------------------------------------------


class Convolution(NamedTuple):
    """A product as a convolution: its data, and what the axes of the product are."""

    data: UOp
    factor: int
    batch: int | None
    group: int | None
    channel: int | None
    outputs: Axes
    windows: tuple[Window, ...]


def convolution(found: Product, factor: int) -> Convolution | None:
    """The product as a convolution of the factor's source with the other factor; None where it is none."""
    image, other = found.factors[factor], found.factors[1 - factor].axes
    data = image.source
    if found.node.dtype not in _CONV or len(data.shape) < 3 or data.dtype is not found.node.dtype:
        return None
    outside = image.axes - other
    batch = image.axis_of(0, outside)
    channels = _channels(found, image)
    windows = [window(image, place, outside, found.summed) for place in range(2, len(data.shape))]
    known = [each for each in windows if each is not None]
    if (batch is None and data.shape[0] != 1) or channels is None or len(known) < len(windows) or not image.pads:
        return None
    group, channel = channels
    outs = [each.out for each in known if each.out is not None]
    taps = [each.kernel for each in known if each.kernel is not None]
    named = [axis for axis in (batch, group, channel, *outs, *taps) if axis is not None]
    if set(named) != image.axes or len(set(named)) != len(named) or not outs:
        return None
    outputs = tuple([axis for axis in found.kept if axis in other - image.axes])
    return Convolution(data, factor, batch, group, channel, outputs, tuple(known))


def _channels(found: Product, image: View) -> tuple[int | None, int | None] | None:
    """The axes of the groups and of the channels in a group, which count the source's second axis; None if none do."""
    size, form = image.source.shape[1], linear(image.position[1])
    axes = {axis: form.terms[r] for axis, r in enumerate(image.ranges) if r in form.terms}
    shared = found.factors[0].axes & found.factors[1].axes
    channel = next((axis for axis in axes if axis in found.summed), None)
    group = next((axis for axis in axes if axis in shared - found.summed), None)
    inner, outer = [1 if axis is None else found.shape[axis] for axis in (channel, group)]
    wanted = {axis: step for axis, step in ((channel, 1), (group, inner)) if axis is not None}
    whole = not isinstance(size, Size) and inner * outer == size
    return (group, channel) if whole and axes == wanted and len(axes) == len(form.terms) and not form.constant else None


def _convolved(graph: GraphWriter, found: Product, spelt: Convolution, name: Name) -> Value:
    batch, groups, channel = [[] if a is None else [a] for a in (spelt.batch, spelt.group, spelt.channel)]
    outs, kernels = [
        [[] if axis is None else [axis] for axis in axes]
        for axes in ([each.out for each in spelt.windows], [each.kernel for each in spelt.windows])
    ]
    filters = [[*groups, *spelt.outputs], channel, *kernels]
    weight = _arranged(graph, found, 1 - spelt.factor, _joined(filters), filters, name)
    result = graph.node(
        "Conv", name(spelt.data), weight, **attributes(spelt.windows),
        group=1 if spelt.group is None else found.shape[spelt.group],
    )  # fmt: skip
    made = [batch, filters[0], *outs]
    axes = _joined(made)
    value = graph.reshape(result, sizes(found.shape, made), sizes(found.shape, [[a] for a in axes]))
    return in_place(graph, found.node, value, axes)


def _joined(groups: Sequence[Sequence[int]]) -> Axes:
    return tuple([axis for group in groups for axis in group])
