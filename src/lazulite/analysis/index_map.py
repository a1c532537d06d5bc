"""Movement ops as maps of indices: which element of the source an element of the result is.

Takes: movement nodes and INDEX expressions.  Gives: INDEX expressions and gates in normal form.
Invariant: an index is right wherever its gate holds; elsewhere it may be anything, also out of range.
"""

from __future__ import annotations

from collections.abc import Sequence

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.infer import Shape, blocks, has_strides
from lazulite.ir.size import Size, most, size_form, size_node
from lazulite.ir.uop import UOp, index
from lazulite.simplify.comparison import below_zero
from lazulite.simplify.division import assuming, quotient, remainder
from lazulite.simplify.facts import NOTHING, Facts, has_division
from lazulite.simplify.index import recombined
from lazulite.simplify.normal import normal
from lazulite.simplify.terms import sum_of

Index = tuple[UOp, ...]


def through(node: UOp, position: Index, gate: UOp | None = None) -> tuple[Index, UOp | None]:
    """Where one element of a movement node comes from: its index in the source, and a gate.

    The gate is None where every element has a source; where it is false the element is zero.
    `gate`, if given, is the condition under which the result is used: it is part of the gate that
    comes back, and it helps to simplify the index.
    """
    op, source = node.op, node.src[0].shape
    if op is ops.RESHAPE:
        return _unflattened(node.shape, source, position, NOTHING if gate is None else Facts(gate)), gate
    if op is ops.PAD:
        return _padded(source, node.arg, position, gate)
    if op is ops.PERMUTE:
        places = sorted(range(len(source)), key=node.arg.__getitem__)
        return tuple([position[place] for place in places]), gate
    if op is ops.EXPAND:
        own = position[len(position) - len(source) :]
        return tuple([index(0) if size == 1 else i for size, i in zip(source, own, strict=True)]), gate
    if op is ops.SHRINK:
        return tuple([_shifted(i, begin) for i, (begin, _) in zip(position, node.arg, strict=True)]), gate
    if op is ops.FLIP:
        pairs = enumerate(zip(position, source, strict=True))
        return tuple([_mirrored(i, size) if axis in node.arg else i for axis, (i, size) in pairs]), gate
    raise TypeError(f"{node!r} is no movement")


class Maps:
    """`through` and `flat` with their answers kept: equal layers of a network ask the same again and again."""

    def __init__(self) -> None:
        self._through: dict[tuple[object, ...], tuple[Index, UOp | None]] = {}
        self._flat: dict[tuple[Shape, Index], UOp] = {}

    def through(self, node: UOp, position: Index, gate: UOp | None = None) -> tuple[Index, UOp | None]:
        """As the function."""
        key = (node.op, node.arg, node.shape, node.src[0].shape, position, gate)
        known = self._through.get(key)
        if known is None:
            known = self._through[key] = through(node, position, gate)
        return known

    def flat(self, shape: Shape, position: Index) -> UOp:
        """As the function."""
        known = self._flat.get((shape, position))
        if known is None:
            known = self._flat[shape, position] = flat(shape, position)
        return known


def origin(node: UOp, position: Index, gate: UOp | None = None) -> tuple[UOp, Index, UOp | None]:
    """The first node below a chain of movements, with the element of it that is meant."""
    while node.op in ops.MOVEMENT:
        position, gate = through(node, position, gate)
        node = node.src[0]
    return node, position, gate


def flat(shape: Shape, position: Index) -> UOp:
    """The place of an element in row-major order."""
    return sum_of(recombined(_flat(shape, position)))


def _flat(shape: Shape, position: Sequence[UOp]) -> Linear:
    form, stride = Linear(), 1
    for size, i in zip(reversed(shape), reversed(position), strict=True):
        form, stride = form + linear(i).scaled(stride), stride * most(size)
    return form


def _unflattened(shape: Shape, source: Shape, position: Index, facts: Facts) -> Index:
    """The index in `source` of the element at `position` of the same elements in `shape`."""
    if 0 in shape:
        return (index(0),) * len(source)
    result: list[UOp] = []
    for axes, source_axes in blocks(shape, source):
        if not (has_strides(shape[axes]) and has_strides(source[source_axes])):
            result += _counted_off(shape[axes], source[source_axes], position[axes])
            continue
        form = _flat(shape[axes], position[axes])
        block: list[UOp] = []
        for size in source[source_axes][:0:-1]:
            if isinstance(size, Size):  # the first axis of its block that is not of size 1
                block.append(sum_of(recombined(form)))
                form = Linear()
                continue
            block.append(sum_of(recombined(remainder(form, size, facts))))
            form = recombined(quotient(form, size, facts))
        if source[source_axes]:
            block.append(index(0) if source[source_axes.start] == 1 else sum_of(recombined(form)))
        result += reversed(block)
    return tuple(result)


def _counted_off(shape: Shape, source: Shape, position: Index) -> list[UOp]:
    """As `_unflattened` for one block of axes whose strides vary."""
    place, stride, result = index(0), 1, list[UOp]()
    for size, i in zip(reversed(shape), reversed(position), strict=True):
        place = normal(ops.ADD, dtypes.index, (place, normal(ops.MUL, dtypes.index, (i, size_node(stride)))))
        stride = stride * size
    for size in source[:0:-1]:
        result.append(normal(ops.MOD, dtypes.index, (place, size_node(size))))
        place = normal(ops.FLOORDIV, dtypes.index, (place, size_node(size)))
    return [place, *reversed(result)]


def _padded(
    source: Shape, widths: Sequence[tuple[int, int]], position: Index, gate: UOp | None
) -> tuple[Index, UOp | None]:
    result: list[UOp] = []
    for size, (before, after), i in zip(source, widths, position, strict=True):
        inner = _shifted(i, -before)
        result.append(inner)
        form = linear(inner)
        if before:
            gate = both(gate, below_zero(form.scaled(-1) + Linear(-1)))
        if after:
            gate = both(gate, below_zero(form + size_form(size).scaled(-1)))
    if gate is not None and any(has_division(i) for i in result):
        facts = Facts(gate)
        result = [assuming(i, facts) for i in result]
    return tuple(result), gate


def both(gate: UOp | None, condition: UOp | None) -> UOp | None:
    """The conjunction of two gates; None is always true."""
    if condition is None or condition.is_const(True):
        return gate
    return condition if gate is None else normal(ops.AND, dtypes.bool, (gate, condition))


def _shifted(i: UOp, distance: int) -> UOp:
    return sum_of(linear(i) + size_form(distance)) if isinstance(distance, Size) or distance else i


def _mirrored(i: UOp, size: int) -> UOp:
    return sum_of(linear(i).scaled(-1) + size_form(size - 1))
