"""Hypothesis strategies for small programs: graphs of whole values, and kernels over ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp, index

TYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.uint8, dtypes.int8, dtypes.bool)
ARITHMETIC = (ops.ADD, ops.MUL, ops.MAX, ops.MIN, ops.SUB)
COMPARISONS = (ops.LT, ops.LE, ops.EQ, ops.NE)
Draw = Callable[..., Any]


def const(draw: Draw, dtype: DType) -> UOp:
    choices = (0, 1, 2, 3, 100) if dtype.is_integral else (0.0, -0.0, 1.0, -1.5, 0.1, 1e30)
    return UOp.const(dtype, draw(st.sampled_from(choices)))


# --- TENSOR ------------------------------------------------------------------------------------


@st.composite
def tensor_graphs(draw: Draw, steps: int = 8) -> UOp:
    """A SINK of one to three values over a few BUFFERs, IOTAs and SCALARs."""
    nodes = [_leaf(draw, number) for number in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(1, steps))):
        value = draw(st.sampled_from(nodes))
        nodes.append(draw(st.sampled_from([_combined, _moved, _reduced, _written, _cast, _picked]))(draw, value, nodes))
    roots = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3))
    return UOp(ops.SINK, dtypes.void, (nodes[-1], *roots))


def _leaf(draw: Draw, number: int) -> UOp:
    dtype = draw(st.sampled_from(TYPES))
    kind = draw(st.sampled_from(["buffer", "buffer", "iota", "scalar"]))
    if kind == "iota" and dtype is not dtypes.bool:
        return UOp(ops.IOTA, dtype, (), draw(st.integers(1, 4)))
    if kind == "scalar":
        return UOp(ops.SCALAR, dtype, (), (number, None, None))
    shape = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))
    return UOp(ops.BUFFER, dtype, (), (100 + number, number, shape, draw(st.sampled_from(["CPU", "NPY"]))))


def _combined(draw: Draw, x: UOp, nodes: list[UOp]) -> UOp:
    """An elementwise op of the value with one that fits beside it."""
    partners = [n for n in nodes if n.dtype is x.dtype and n.shape in (x.shape, ())]
    y = draw(st.sampled_from([*partners, const(draw, x.dtype)]))
    if x.dtype is dtypes.bool:
        return UOp.apply(draw(st.sampled_from([ops.AND, ops.OR, ops.XOR, ops.EQ, ops.MAX])), y, x)
    if draw(st.booleans()):
        gate = UOp.apply(draw(st.sampled_from(COMPARISONS)), x, y)
        return draw(st.sampled_from([gate, gate.where(x, y), ~gate]))
    more = (ops.DIV,) if x.dtype.is_float else (ops.FLOORDIV, ops.MOD, ops.AND, ops.SHR)
    return UOp.apply(draw(st.sampled_from(ARITHMETIC + more)), x, y)


def _moved(draw: Draw, x: UOp, nodes: list[UOp]) -> UOp:
    op, arg = movement(draw, x.shape)
    return UOp(ops.OPS[op], x.dtype, (x,), arg)


def movement(draw: Draw, shape: tuple[int, ...]) -> tuple[str, Any]:
    """A movement that fits the shape and makes it no larger than it has to."""
    name = draw(st.sampled_from(["reshape", "permute", "expand", "pad", "shrink", "flip"]))
    if name == "reshape":
        return name, draw(st.sampled_from([(*shape, 1), (1, *shape), tuple(s for s in shape if s != 1), shape[::-1]]))
    if name == "permute":
        return name, tuple(draw(st.permutations(range(len(shape)))))
    if name == "expand":
        lead = draw(st.sampled_from([(), (), (2,)])) if len(shape) < 3 else ()
        return name, (*lead, *[draw(st.sampled_from([1, 2])) if size == 1 else size for size in shape])
    if name == "pad":
        return name, tuple((draw(st.integers(0, 1)), draw(st.integers(0, 1))) if size < 4 else (0, 0) for size in shape)
    if name == "shrink":
        begins = [draw(st.integers(0, size)) for size in shape]
        return name, tuple((begin, draw(st.integers(begin, size))) for begin, size in zip(begins, shape, strict=True))
    return name, tuple(axis for axis in range(len(shape)) if draw(st.booleans()))


def _reduced(draw: Draw, x: UOp, nodes: list[UOp]) -> UOp:
    axes = tuple(axis for axis in range(len(x.shape)) if draw(st.booleans()))
    known = (ops.ADD, ops.MUL, ops.MAX, ops.MIN, ops.AND, ops.OR)
    op = draw(st.sampled_from([op for op in known if x.dtype in op.accepts]))
    return UOp(ops.REDUCE, x.dtype, (x,), (op, axes))


def _written(draw: Draw, x: UOp, nodes: list[UOp]) -> UOp:
    """Part of the value replaced by constants or by the same part of a movement of it."""
    view, region = x, []
    for _ in range(draw(st.integers(0, 2))):
        name, arg = movement(draw, view.shape)
        if name in ("shrink", "flip", "permute"):
            view = UOp(ops.OPS[name], x.dtype, (view,), arg)
            region.append((name, arg))
    value = draw(st.sampled_from([const(draw, x.dtype), view, UOp.apply(ops.MAX, view, const(draw, x.dtype))]))
    return UOp(ops.WRITE, x.dtype, (x, value), tuple(region))


def _picked(draw: Draw, x: UOp, nodes: list[UOp]) -> UOp:
    """Elements at positions, which may lie outside."""
    if not x.shape:
        return x
    positions = draw(st.sampled_from([const(draw, dtypes.int32), *[n for n in nodes if n.dtype is dtypes.int32]]))
    return UOp(ops.GATHER, x.dtype, (x, *[positions] * draw(st.integers(1, len(x.shape)))))


def _cast(draw: Draw, x: UOp, nodes: list[UOp]) -> UOp:
    dtype = draw(st.sampled_from(TYPES))
    return UOp(ops.CAST, dtype, (x,)) if dtype is not x.dtype else x


# --- KERNEL ------------------------------------------------------------------------------------

KERNEL_TYPES = (dtypes.float32, dtypes.int32)


@st.composite
def kernels(draw: Draw) -> UOp:
    """A SINK of one or two stores over ranges, with gated loads, shared values and reductions."""
    order = iter(range(100))
    outer = [_range(draw, next(order), ["loop", "parallel"])]
    outer += [_range(draw, next(order), ["loop"]) for _ in range(draw(st.integers(0, 1)))]
    inner = [_range(draw, next(order), ["loop"]) for _ in range(draw(st.integers(0, 2)))]
    dtype = draw(st.sampled_from(KERNEL_TYPES))
    inputs = [UOp(ops.PARAM, dtype, (), (2 + n, (64,), "")) for n in range(2)]
    value = _value(draw, outer, inputs)
    for r in inner:
        op = draw(st.sampled_from([ops.ADD, ops.MAX, ops.MIN]))
        term = UOp.apply(draw(st.sampled_from([ops.MUL, ops.ADD])), value, _value(draw, [*outer, r], inputs))
        value = UOp(ops.REDUCE, dtype, (term, r), (op, ())) + _value(draw, outer, inputs)
    place = index(0)
    for r in outer:
        place = place * r.src[0].arg + r
    stores = [UOp(ops.STORE, dtypes.void, (_output(0, dtype), place, value))]
    if draw(st.booleans()):
        gate = (outer[0] < draw(st.integers(0, 3)),) if draw(st.booleans()) else ()
        stores.append(UOp(ops.STORE, dtypes.void, (_output(1, dtype), place + 3, value * value, *gate)))
    return UOp(ops.SINK, dtypes.void, tuple(stores))


def _output(slot: int, dtype: DType) -> UOp:
    return UOp(ops.PARAM, dtype, (), (slot, (64,), ""))


def _range(draw: Draw, order: int, kinds: list[str]) -> UOp:
    return UOp(ops.RANGE, dtypes.index, (index(draw(st.integers(1, 4))),), ((order,), draw(st.sampled_from(kinds))))


def _value(draw: Draw, ranges: list[UOp], inputs: list[UOp]) -> UOp:
    """A load at an index over the ranges, perhaps gated, perhaps with arithmetic around it."""
    place = index(draw(st.integers(0, 3)))
    for r in ranges:
        place = place + r * draw(st.integers(1, 4))
    place = draw(st.sampled_from([place, place // 2, place % 5, place * -1 + 60]))
    gate = (ranges[-1] < draw(st.integers(0, 3)),) if draw(st.booleans()) else ()
    memory = draw(st.sampled_from(inputs))
    load = UOp(ops.LOAD, memory.dtype, (memory, place, *gate))
    number = place.cast(memory.dtype)
    return draw(st.sampled_from([load, load + number, load * load, (load < number).where(load, number)]))
