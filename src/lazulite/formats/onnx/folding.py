"""Operators on what is known on the host, computed at once by NumPy: shapes, sizes, small constants.

Only operators whose results are exact are here, so a folded value equals a computed one.  A result has
at most `FOLDED` elements, which is known before it is made; what would be larger is left to tensors, so a
file cannot make folding use memory.  `fold` gives None wherever it leaves a node alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy

from lazulite.formats.onnx.proto import NAMES
from lazulite.formats.onnx.values import FOLDED, Host, Value
from lazulite.ir.dtype import STORED

_ARITHMETIC = frozenset(dtype.name for dtype in STORED if dtype.name != "bfloat16")
_Table = dict[str, Callable[..., Any]]


def fold(domain: str, name: str, inputs: Sequence[Value], attributes: Mapping[str, Any]) -> tuple[Host, ...] | None:
    """The results of a node whose inputs are all known; None where it is not computed here."""
    function = _TABLE.get(name) if domain in ("", "ai.onnx") else None
    if function is None or not inputs:
        return None
    for value in inputs:
        if value is not None and (not isinstance(value, numpy.ndarray) or str(value.dtype) not in _ARITHMETIC):
            return None
    try:
        with numpy.errstate(all="ignore"):
            result = function(*inputs, **attributes)
    except (ValueError, IndexError, TypeError, ArithmeticError):
        return None  # the operator itself says what is wrong
    if result is None:
        return None
    return tuple([numpy.asarray(each) for each in (result if isinstance(result, tuple) else (result,))])


def _elementwise(function: Callable[..., Host]) -> Callable[..., Host | None]:
    """Operands meet by broadcasting and have one type, which the result has or decides."""

    def apply(*operands: Host) -> Host | None:
        if prod(numpy.broadcast_shapes(*[x.shape for x in operands])) > FOLDED:
            return None
        return function(*operands)

    return apply


def divide(a: Host, b: Host) -> Host:
    """Integers towards zero, and 0 by 0 gives 0."""
    if a.dtype.kind == "f":
        return a / b
    quotient = numpy.floor_divide(a, b)
    return numpy.where((quotient < 0) & (quotient * b != a), quotient + 1, quotient).astype(a.dtype)


def _mod(a: Host, b: Host, fmod: int = 0) -> Host | None:
    both = prod(numpy.broadcast_shapes(a.shape, b.shape))
    return None if both > FOLDED else (numpy.fmod(a, b) if fmod else numpy.mod(a, b))


def _gather(x: Host, index: Host, axis: int = 0) -> Host | None:
    count = prod(x.shape[:axis]) * index.size * prod(x.shape[axis % x.ndim + 1 :])
    return None if count > FOLDED else numpy.take(x, index, axis)


def _concat(*parts: Host, axis: int = 1) -> Host | None:
    return None if sum(part.size for part in parts) > FOLDED else numpy.concatenate(parts, axis)


def _axes(axes: Any) -> tuple[int, ...] | None:
    return None if axes is None else tuple([int(axis) for axis in numpy.asarray(axes).reshape(-1)])


def _unsqueeze(x: Host, axes: Any = None) -> Host:
    return numpy.expand_dims(x, _axes(axes) or ())


def _squeeze(x: Host, axes: Any = None) -> Host:
    return numpy.squeeze(x, _axes(axes))


def _slice(x: Host, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None) -> Host:
    begins, stops = _axes(starts) or (), _axes(ends) or ()
    chosen = _axes(axes) or tuple(range(len(begins)))
    strides = _axes(steps) or (1,) * len(begins)
    index = [slice(None)] * x.ndim
    for axis, begin, stop, step in zip(chosen, begins, stops, strides, strict=True):
        beyond = step < 0 and stop < -x.shape[axis]
        index[axis] = slice(begin, None if beyond else stop, step)
    return x[tuple(index)]


def _cast(x: Host, to: int = 1, saturate: int = 1, round_mode: str = "up") -> Host | None:
    name = NAMES[to]
    exact = x.dtype.kind in "biu" or name.startswith(("float", "bool"))
    return x.astype(name) if name in _ARITHMETIC and exact else None


def _reshape(x: Host, shape: Any, allowzero: int = 0) -> Host:
    sizes = _axes(shape) or ()
    return x.reshape([x.shape[n] if size == 0 and not allowzero else size for n, size in enumerate(sizes)])


def _range(start: Host, limit: Host, delta: Host) -> Host | None:
    if start.dtype.kind == "f":
        return None
    steps = range(int(start), int(limit), int(delta))
    return numpy.array(steps, start.dtype) if len(steps) <= FOLDED else None


def _constant_of_shape(shape: Host, value: Any = None) -> Host | None:
    fill = numpy.zeros(1, "float32") if value is None else value
    sizes = _axes(shape) or ()
    small = prod(sizes) <= FOLDED and isinstance(fill, numpy.ndarray)
    return numpy.full(sizes, fill.reshape(()), fill.dtype) if small else None


def _expand(x: Host, shape: Host) -> Host | None:
    sizes = numpy.broadcast_shapes(x.shape, _axes(shape) or ())
    return numpy.broadcast_to(x, sizes) if prod(sizes) <= FOLDED else None


def _tile(x: Host, repeats: Host) -> Host | None:
    return numpy.tile(x, _axes(repeats) or ()) if x.size * prod(_axes(repeats) or ()) <= FOLDED else None


def _transpose(x: Host, perm: Any = None) -> Host:
    return numpy.transpose(x, perm)


def _reduction(function: Callable[..., Host]) -> Callable[..., Host | None]:
    """A reduction of integers, which keeps their type."""

    def apply(x: Host, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Host | None:
        chosen = _axes(axes) or None
        if x.dtype.kind not in "iu" or (chosen is None and noop_with_empty_axes):
            return None
        return numpy.asarray(function(x, axis=chosen, keepdims=bool(keepdims))).astype(x.dtype)

    return apply


_TABLE: _Table = {
    "Add": _elementwise(numpy.add), "Sub": _elementwise(numpy.subtract), "Mul": _elementwise(numpy.multiply),
    "Div": _elementwise(divide), "Mod": _mod, "Neg": numpy.negative, "Abs": numpy.abs, "Floor": numpy.floor,
    "Ceil": numpy.ceil, "Sqrt": numpy.sqrt, "Not": numpy.logical_not,
    "And": _elementwise(numpy.logical_and), "Or": _elementwise(numpy.logical_or),
    "Equal": _elementwise(numpy.equal), "Greater": _elementwise(numpy.greater), "Less": _elementwise(numpy.less),
    "GreaterOrEqual": _elementwise(numpy.greater_equal), "LessOrEqual": _elementwise(numpy.less_equal),
    "Where": _elementwise(numpy.where), "Cast": _cast, "Concat": _concat, "ConstantOfShape": _constant_of_shape,
    "Expand": _expand, "Gather": _gather, "Range": _range, "ReduceMax": _reduction(numpy.max),
    "ReduceMin": _reduction(numpy.min), "ReduceProd": _reduction(numpy.prod), "ReduceSum": _reduction(numpy.sum),
    "Reshape": _reshape, "Slice": _slice, "Squeeze": _squeeze, "Tile": _tile, "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}  # fmt: skip
