"""Windows that move over the last axes of a value, found in the `TENSOR` language, and their greatest as MaxPool.

`View` tells what an element of a node is of the node's source: the same index maps answer it for every way in which
windows are written.  `window` reads one axis of that, stride * out + dilation * kernel - before.  Invariant: what is
zero in a window because it lies outside of the source is told apart from what is left out for other reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lazulite.analysis.index_map import both, origin
from lazulite.formats.onnx.export_elements import computed
from lazulite.formats.onnx.export_graph import GraphWriter, Shape, Value
from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.size import Size, size_form, size_node
from lazulite.ir.uop import UOp, index
from lazulite.simplify.comparison import below_zero

Axes = tuple[int, ...]


class View(NamedTuple):
    """The elements of a node as elements of its source: one range, or 0, for each axis, and where they come from."""

    node: UOp
    ranges: tuple[UOp, ...]
    source: UOp
    position: tuple[UOp, ...]
    gate: UOp | None

    @property
    def axes(self) -> frozenset[int]:
        """The axes along which the node is not one value repeated."""
        free = frozenset[UOp]().union(*[i.ranges for i in self.position], () if self.gate is None else self.gate.ranges)
        return frozenset([axis for axis, r in enumerate(self.ranges) if r in free])

    @property
    def pads(self) -> bool:
        """Whether the gate asks for no more than that the position lies in the source."""
        inside: UOp | None = None
        for size, i in zip(self.source.shape, self.position, strict=True):
            form = linear(i)
            inside = both(inside, below_zero(form.scaled(-1) + Linear(-1)))
            inside = both(inside, below_zero(form + size_form(size).scaled(-1)))
        return _conditions(self.gate) <= _conditions(inside)

    def axis_of(self, place: int, axes: frozenset[int]) -> int | None:
        """The one of these axes along which the source's axis at a place is the node's, whole; None if none is."""
        size = self.source.shape[place]
        return next((a for a in axes if self.ranges[a] is self.position[place] and self.node.shape[a] == size), None)


def view(node: UOp) -> View:
    """The node as a view of what lies below its movements."""
    ranges = tuple([
        index(0) if size == 1 else UOp(ops.RANGE, dtypes.index, (size_node(size),), ((axis,), "loop"))
        for axis, size in enumerate(node.shape)
    ])  # fmt: skip
    return View(node, ranges, *origin(node, ranges))


def _conditions(gate: UOp | None) -> set[UOp]:
    """What a gate is the conjunction of."""
    pending, found = [] if gate is None else [gate], set[UOp]()
    while pending:
        node = pending.pop()
        if node.op is ops.AND:
            pending += node.src
        else:
            found.add(node)
    return found


class Window(NamedTuple):
    """How windows lie along one axis of the source: axes of the view, or None where they are of size 1."""

    out: int | None
    kernel: int | None
    taps: int
    stride: int
    dilation: int
    before: int
    after: int


def window(found: View, place: int, outs: frozenset[int], kernels: frozenset[int]) -> Window | None:
    """How windows lie along an axis of the source; None where what lies there are none."""
    size, form = found.source.shape[place], linear(found.position[place])
    axes = {axis: factor for axis, r in enumerate(found.ranges) if (factor := form.terms.get(r))}
    own_outs, own_kernels = [[axis for axis in axes if axis in group] for group in (outs, kernels)]
    known = len(axes) == len(form.terms) == len(own_outs) + len(own_kernels) and min(axes.values(), default=1) > 0
    if not known or max(len(own_outs), len(own_kernels)) > 1 or form.constant > 0:
        return None
    out, kernel = [next(iter(group), None) for group in (own_outs, own_kernels)]
    count, taps = [1 if axis is None else found.node.shape[axis] for axis in (out, kernel)]
    if isinstance(taps, Size):
        return None
    stride, dilation = [1 if axis is None else axes[axis] for axis in (out, kernel)]
    before, reach = -form.constant, (taps - 1) * dilation + 1
    widths = range(before + reach + 1)
    after = next((width for width in widths if (size + before + width - reach) // stride + 1 == count), None)
    if after is None:
        return None
    return Window(out, kernel, taps, stride, dilation, before, after)


def attributes(windows: Sequence[Window]) -> dict[str, Any]:
    """What operators over windows are told of them."""
    return {
        "strides": [each.stride for each in windows],
        "dilations": [each.dilation for each in windows],
        "pads": [each.before for each in windows] + [each.after for each in windows],
    }


def in_place(graph: GraphWriter, node: UOp, value: Value, axes: Axes) -> Value:
    """A value with these axes of what a REDUCE takes, in some order, as the REDUCE has them; others are of size 1."""
    turned = graph.transpose(value, [axes.index(a) for a in sorted(axes)])
    return graph.reshape(turned, sizes(node.shape, [[a] for a in sorted(axes)]), node.shape)


def sizes(shape: Shape, groups: Sequence[Sequence[int]]) -> Shape:
    """For each group of axes how many elements they hold together."""
    found = []
    for group in groups:
        size = 1
        for axis in group:
            size = size * shape[axis]
        found.append(size)
    return tuple(found)


# --- pooling ---------------------------------------------------------------------------------------


class Pooling(NamedTuple):
    """A reduction as the greatest of each window."""

    node: UOp
    data: UOp
    lead: Axes
    """The axes of the view that are those before the windows, without those of size 1."""
    windows: tuple[Window, ...]


_POOLED = frozenset({dtypes.float16, dtypes.float32, dtypes.float64})


def pooling_of(node: UOp) -> Pooling | None:
    """The node as the greatest of windows; None for anything else."""
    if node.op is not ops.REDUCE or node.arg[0] is not ops.MAX or node.dtype not in _POOLED or 0 in node.src[0].shape:
        return None
    found = view(node.src[0])
    summed = frozenset(node.arg[1]) & found.axes
    kept, data = found.axes - summed, found.source
    if len(data.shape) < 3 or found.gate is not None or data.op is ops.CONST:
        return None
    lead = [found.axis_of(place, kept) for place in (0, 1)]
    if any(axis is None and data.shape[place] != 1 for place, axis in enumerate(lead)):
        return None
    windows = [window(found, place, kept, summed) for place in range(2, len(data.shape))]
    known = [each for each in windows if each is not None]
    outs = [each.out for each in known if each.out is not None]
    named = [axis for axis in lead if axis is not None]
    spelt = [*named, *outs, *[each.kernel for each in known if each.kernel is not None]]
    whole = {axis for axis, size in enumerate(found.node.shape) if size != 1}
    moving = any(each.out is not None and each.kernel is not None for each in known)
    if len(known) < len(windows) or set(spelt) != whole or not moving:
        return None
    return Pooling(node, data, tuple(named), tuple(known))


def pooled(graph: GraphWriter, found: Pooling, value: Value) -> Value:
    """The greatest of each window."""
    result = computed(
        graph, "MaxPool", [value], found.node.dtype, kernel_shape=[each.taps for each in found.windows],
        **attributes(found.windows),
    )  # fmt: skip
    shape = found.node.shape
    made = sizes(shape, [[] if each.out is None else [each.out] for each in found.windows])
    axes = (*found.lead, *[each.out for each in found.windows if each.out is not None])
    value = graph.reshape(result, (*found.data.shape[:2], *made), sizes(shape, [[a] for a in axes]))
    return in_place(graph, found.node, value, axes)
