"""Hand-written kernels that put one value in one place each turn, as ScatterND.

Takes LAUNCHes, gives a `Scatter`: the places and values of all turns as `TENSOR` values, read off the kernel by writing
each of its ranges as an axis.  A value may be combined with what is in its place.  Kernels that do anything else
give None.  Of several values for one place ONNX does not say which one stays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.parse import parse
from lazulite.ir.size import varies
from lazulite.ir.uop import UOp, toposort

_COMBINING = {ops.ADD: "add", ops.MUL: "mul", ops.MAX: "max", ops.MIN: "min"}
_LARGEST = (1 << 31) - 1


class Scatter(NamedTuple):
    """Values for places of a flat memory, whose last element is to spare for the values that have no place."""

    memory: UOp
    places: UOp
    values: UOp
    reduction: str
    """How a value is combined with what is in its place; empty where it takes the place."""


def scatter_of(node: UOp) -> Scatter | None:
    """What a LAUNCH puts where; None if it does anything else."""
    run, memory = node.arg, node.src[node.arg.result]
    kernel = parse(run.kernel)
    stores = [each for each in toposort(kernel) if each.op is ops.STORE]
    if len(stores) != 1 or run.writes != (run.result,) or any(varies(source.shape) for source in node.src):
        return None
    target, place, value, *gate = stores[0].src
    size = math.prod(memory.shape)
    reduction, value = _combination(value, target, place)
    turns = _Turns(dict(zip(run.slots, node.src, strict=True)), target, [place, value, *gate])
    if size >= _LARGEST or not turns.known:
        return None
    flat = UOp(ops.RESHAPE, memory.dtype, (memory,), (size,))
    spare = UOp(ops.PAD, memory.dtype, (flat,), ((0, 1),))
    places = turns.whole(place)
    if gate:
        places = UOp.apply(ops.WHERE, turns.whole(gate[0]), places, UOp.const(dtypes.int32, size))
    return Scatter(spare, places, turns.whole(value), reduction)


def _combination(value: UOp, target: UOp, place: UOp) -> tuple[str, UOp]:
    """How a stored value is combined with what is in its place, and the value apart from that."""
    if value.op in _COMBINING:
        for old, new in (value.src, value.src[::-1]):
            if old.op is ops.LOAD and old.src[0] is target and old.src[1] is place:
                return _COMBINING[value.op], new
    return "", value


class _Turns:
    """Values of a kernel in all of its turns, an axis for each range; `known` tells whether there are any."""

    def __init__(self, memories: Mapping[int, UOp], target: UOp, roots: Sequence[UOp]) -> None:
        self._memories = memories
        nodes = toposort(*roots)
        self._ranges = sorted([node for node in nodes if node.op is ops.RANGE], key=lambda r: r.arg[0])
        self.shape = tuple([int(r.src[0].value) if r.src[0].op is ops.CONST else 0 for r in self._ranges])
        self._values: dict[UOp, UOp] = {}
        self.known = 0 not in self.shape and math.prod(self.shape) <= _LARGEST
        for node in nodes:
            value = self._value(node, target) if self.known else None
            self.known = value is not None
            if value is None:
                return
            self._values[node] = value

    def whole(self, node: UOp) -> UOp:
        """The value in each turn."""
        value = self._values[node]
        return value if value.shape == self.shape else UOp(ops.EXPAND, value.dtype, (value,), self.shape)

    def _value(self, node: UOp, target: UOp) -> UOp | None:
        if node.op is ops.PARAM:
            return None if node is target else self._memories[node.arg[0]]
        if node.op is ops.CONST:
            return UOp.const(_stored(node.dtype), node.value)
        if node.op is ops.RANGE:
            return self._along(UOp(ops.IOTA, dtypes.int32, (), int(node.src[0].value)), [node])
        if node.op is ops.LOAD:
            return self._loaded(*node.src)
        if node.op not in ops.ELEMENTWISE:
            return None
        src = tuple([self._values[source] for source in node.src])
        if node.op is ops.CAST:
            return src[0].cast(_stored(node.dtype))
        return UOp(node.op, _stored(node.dtype), src, node.arg)

    def _along(self, value: UOp, ranges: Sequence[UOp]) -> UOp:
        """A value with an axis for each of the ranges, in every turn."""
        sizes = tuple([size if r in ranges else 1 for r, size in zip(self._ranges, self.shape, strict=True)])
        return UOp(ops.EXPAND, value.dtype, (UOp(ops.RESHAPE, value.dtype, (value,), sizes),), self.shape)

    def _loaded(self, memory: UOp, place: UOp, gate: UOp | None = None) -> UOp:
        source, form = self._values[memory], linear(place)
        used = [(r, size) for r, size in zip(self._ranges, self.shape, strict=True) if r in form.terms]
        steps = {r: math.prod([size for _, size in used[n + 1 :]]) for n, (r, _) in enumerate(used)}
        if form.terms == steps and not form.constant and math.prod(size for _, size in used) == math.prod(source.shape):
            found = self._along(source, [r for r, _ in used])
        else:
            flat = UOp(ops.RESHAPE, source.dtype, (source,), (math.prod(source.shape),))
            found = UOp(ops.GATHER, source.dtype, (flat, self.whole(place)))
        return found if gate is None else self.whole(gate).where(found, 0)


def _stored(dtype: DType) -> DType:
    """The type of an element that is a position in a kernel."""
    return dtypes.int32 if dtype is dtypes.index else dtype
