"""The interpreter of the `TENSOR` language: what a graph of whole values means, at small sizes.

`evaluate_tensors` takes roots and the contents of their leaves and gives flat row-major lists.  Each
node is evaluated once, in order, with `Op.meaning` and one rounding to its type; only `REDUCE`
accumulates wider.  The other languages are interpreted by `ir/evaluate_kernel.py`, whose entry
points are re-exported here.  Compiled code equals this oracle.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lazulite.ir import ops
from lazulite.ir.calls import arguments_of, bodies_below, touched_slots
from lazulite.ir.dtype import Scalar
from lazulite.ir.evaluate_call import launched, run_call
from lazulite.ir.evaluate_kernel import KernelFault, compile_kernel, run_kernel
from lazulite.ir.meaning import reducer, rounded
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp, toposort

__all__ = ["KernelFault", "compile_kernel", "evaluate_tensors", "run_kernel"]

Values = list[Any]
Shape = tuple[int, ...]


def evaluate_tensors(roots: Sequence[UOp], memory: Mapping[UOp, Sequence[Scalar]]) -> list[list[Scalar]]:
    """The elements of each root.

    `memory` holds the elements of every BUFFER and PARAM leaf, and one element for every SCALAR.

    >>> from lazulite.ir.dtype import dtypes
    >>> x = UOp(ops.IOTA, dtypes.int32, (), 3)
    >>> evaluate_tensors([x * x + 1], {})
    [[1, 2, 5]]
    """
    bodies = bodies_below(*roots)
    order = toposort(*roots, enter=lambda node: node not in bodies)
    uses = Counter(source for node in order for source in node.src)
    uses.update(roots)
    state = _State(memory)
    for node in order:
        if node in bodies:
            state.values[node] = []
            continue
        state.values[node] = _RULES.get(node.op, _elementwise)(node, state)
        for source in node.src:  # a value dies with its last user, so a long chain stays small
            uses[source] -= 1
            if not uses[source]:
                del state.values[source]
    return [list(state.values[root]) for root in roots]


class _State:
    """The values of the nodes that are still needed, and the memory that stores have changed."""

    def __init__(self, memory: Mapping[UOp, Sequence[Scalar]]) -> None:
        self.memory = memory
        self.values: dict[UOp, Values] = {}
        self.stored: dict[UOp, Values] = {}

    def operand(self, node: UOp, position: int) -> Values:
        return self.values[node.src[position]]


# --- leaves and elementwise --------------------------------------------------------------------


def _leaf(node: UOp, state: _State) -> Values:
    values = state.memory.get(node)
    if values is None and node.op is ops.SCALAR and len(node.arg) > 3:
        values = node.arg[3:]  # a bound variable
    if values is None:
        raise KeyError(f"no contents were given for {node!r}")
    if len(values) != math.prod(node.shape):
        raise ValueError(f"{node!r} has {math.prod(node.shape)} elements, but {len(values)} were given")
    return list(values)


def _elementwise(node: UOp, state: _State) -> Values:
    function = rounded(node)
    columns = [state.values[source] for source in node.src]
    if not node.shape:
        return [function(*[column[0] for column in columns])]
    spread = [c if s.shape else itertools.repeat(c[0]) for s, c in zip(node.src, columns, strict=True)]
    return list(map(function, *spread))


def _bitcast(node: UOp, state: _State) -> Values:
    old, new = node.src[0].dtype, node.dtype
    values = state.operand(node, 0)
    if old.itemsize == new.itemsize:
        return [new.from_bits(old.to_bits(value)) for value in values]
    data = b"".join([old.to_bits(value).to_bytes(old.itemsize, "little") for value in values])
    size = new.itemsize
    return [new.from_bits(int.from_bytes(data[at : at + size], "little")) for at in range(0, len(data), size)]


# --- movement ----------------------------------------------------------------------------------


def _positions(sizes: Sequence[int], strides: Sequence[int], start: int = 0) -> list[int]:
    """The flat positions of a strided box, in row-major order of the box."""
    positions = [start]
    for size, stride in zip(sizes, strides, strict=True):
        positions = [p + i * stride for p in positions for i in range(size)]
    return positions


def _strides(shape: Shape) -> list[int]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return strides


def move(name: str, arg: Any, values: Values, shape: Shape, fill: object) -> tuple[Values, Shape]:
    """The values after one movement op, and their shape; `fill` is what `pad` puts around them."""
    strides = _strides(shape)
    if name == "reshape":
        return values, arg
    if name == "pad":
        padded = tuple([before + size + after for size, (before, after) in zip(shape, arg, strict=True)])
        outer = _strides(padded)
        result = [fill] * math.prod(padded)
        corner = sum(before * stride for (before, _), stride in zip(arg, outer, strict=True))
        for value, at in zip(values, _positions(shape, outer, corner), strict=True):
            result[at] = value
        return result, padded
    start = 0
    if name == "permute":
        shape, strides = tuple([shape[axis] for axis in arg]), [strides[axis] for axis in arg]
    elif name == "expand":
        added = len(arg) - len(shape)
        strides = [0] * added + [0 if size == 1 else stride for size, stride in zip(shape, strides, strict=True)]
        shape = arg
    elif name == "shrink":
        start = sum(begin * stride for (begin, _), stride in zip(arg, strides, strict=True))
        shape = tuple([end - begin for begin, end in arg])
    elif name == "flip":
        start = sum((shape[axis] - 1) * strides[axis] for axis in arg)
        strides = [-stride if axis in arg else stride for axis, stride in enumerate(strides)]
    return [values[at] for at in _positions(shape, strides, start)], shape


def _movement(node: UOp, state: _State) -> Values:
    zero = node.dtype.round(0)
    return move(node.op.name, node.arg, state.operand(node, 0), node.src[0].shape, zero)[0]


def _write(node: UOp, state: _State) -> Values:
    result = list(state.operand(node, 0))
    places, shape = list(range(len(result))), node.shape
    for name, arg in node.arg:
        places, shape = move(name, arg, places, shape, None)
    return _put(result, places, state.operand(node, 1))


def _put(result: Values, places: Sequence[int | None], values: Values) -> Values:
    """The result with values written at the places; a rank-0 value goes everywhere, padding nowhere."""
    spread = itertools.repeat(values[0]) if len(values) == 1 else iter(values)
    for place, value in zip(places, spread):  # noqa: B905  (a repeated value has no end)
        if place is not None:
            result[place] = value
    return result


def _gather(node: UOp, state: _State) -> Values:
    x, *positions = node.src
    sizes = x.shape[: len(positions)]
    width, values, zero = math.prod(x.shape[len(positions) :]), state.values[x], node.dtype.round(0)
    result: Values = []
    for place in zip(*[state.values[p] for p in positions], strict=True):
        inside = all(0 <= p < size for p, size in zip(place, sizes, strict=True))
        at = sum([p * stride for p, stride in zip(place, _strides(x.shape), strict=False)])
        result += values[at : at + width] if inside else [zero] * width
    return result


# --- reductions --------------------------------------------------------------------------------


def _reduce(node: UOp, state: _State) -> Values:
    (op, axes), shape = node.arg, node.src[0].shape
    strides, values = _strides(shape), state.operand(node, 0)
    combine = reducer(op, node.dtype)
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    inner = _positions([shape[axis] for axis in axes], [strides[axis] for axis in axes])
    outer = _positions([shape[axis] for axis in kept], [strides[axis] for axis in kept])
    return [combine([values[base + at] for at in inner]) for base in outer]


# --- stores of hand-written graphs -------------------------------------------------------------


def _base(node: UOp) -> UOp:
    while node.op in ops.MOVEMENT or node.op is ops.AFTER:
        node = node.src[0]
    return node


def _places(node: UOp) -> list[Any]:
    """Where the elements of a view, a chain of movements of one leaf, lie in that leaf."""
    chain, base = [], _base(node)
    while node is not base:
        if node.op in ops.MOVEMENT:
            chain.append(node)
        node = node.src[0]
    places, shape = list(range(math.prod(base.shape))), base.shape
    for step in reversed(chain):
        places, shape = move(step.op.name, step.arg, places, shape, None)
    return places


def _store(node: UOp, state: _State) -> Values:
    base = _base(node.src[0])
    contents = state.stored.setdefault(base, list(state.memory[base]))
    _put(contents, _places(node.src[0]), state.operand(node, 1))
    return []


def _after(node: UOp, state: _State) -> Values:
    contents = state.stored.get(_base(node))
    return state.operand(node, 0) if contents is None else [contents[place] for place in _places(node)]


def _call(node: UOp, state: _State) -> Values:
    arguments = arguments_of(node)
    held = [list(_after(a, state)) if _base(a) in state.stored else list(state.values[a]) for a in arguments]
    run_call(node.src[0], held, evaluate_tensors)
    for slot in touched_slots(node.src[0], len(arguments)).writes:
        base = _base(arguments[slot])
        _put(state.stored.setdefault(base, list(state.memory[base])), _places(arguments[slot]), held[slot])
    return []


def _launch(node: UOp, state: _State) -> Values:
    return launched(node, [list(state.values[source]) for source in node.src])


_RULES: dict[Op, Callable[[UOp, _State], Values]] = {
    ops.CONST: lambda node, state: [node.value],
    ops.IOTA: lambda node, state: [node.dtype.round(i) for i in range(node.arg)],
    ops.SCALAR: _leaf,
    ops.BUFFER: _leaf,
    ops.PARAM: _leaf,
    ops.BITCAST: _bitcast,
    **dict.fromkeys(ops.MOVEMENT, _movement),
    ops.REDUCE: _reduce,
    ops.DETACH: lambda node, state: state.operand(node, 0),
    ops.FUNCTION: lambda node, state: state.operand(node, 0),
    ops.COPY: lambda node, state: state.operand(node, 0),
    ops.GATHER: _gather,
    ops.WRITE: _write,
    ops.STORE: _store,
    ops.AFTER: _after,
    ops.CALL: _call,
    ops.LAUNCH: _launch,
    ops.SINK: lambda node, state: [],
}
