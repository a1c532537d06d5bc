"""Operators that arrange elements: shapes, slices, paddings, and values made from sizes."""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import Any

import numpy

from lazulite.base.errors import FormatError, ShapeError
from lazulite.formats.onnx.proto import NAMES
from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.formats.onnx.values import Coded, Host, Ints, Value, on_host, type_name
from lazulite.ir.dtype import dtypes
from lazulite.ir.size import varies
from lazulite.tensor.tensor import Tensor


@onnx_op("Shape")
def shape(x: Value, *, start: int = 0, end: int | None = None) -> Host:
    """Known without computing anything."""
    return numpy.array(_fixed(x.shape[slice(start, end)]), "int64")


def _fixed(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes that a model may compute with: those that vary would be frozen at their present values."""
    if varies(sizes):
        raise ShapeError(
            "OnnxRunner", f"the model computes with its shapes, of which {sizes} varies",
            hint="call it with tensors of fixed sizes; one capture for each",
        )  # fmt: skip
    return sizes


@onnx_op("Size")
def size(x: Value) -> Host:
    return numpy.array(math.prod(_fixed(x.shape)), "int64")


@onnx_op("Identity")
def identity(x: Value) -> Value:
    return x


@onnx_op("Constant")
def constant(
    *, value: Value = None, sparse_value: Value = None, value_float: float | None = None,
    value_floats: list[float] | None = None, value_int: int | None = None, value_ints: list[int] | None = None,
    value_string: str | None = None, value_strings: list[str] | None = None,
) -> Value:  # fmt: skip
    typed: list[tuple[Any, Any]] = [
        (value_float, "float32"), (value_floats, "float32"), (value_int, "int64"), (value_ints, "int64"),
        (value_string, object), (value_strings, object),
    ]  # fmt: skip
    given = [numpy.array(data, kind) for data, kind in typed if data is not None]
    given += [data for data in (value, sparse_value) if data is not None]
    if len(given) != 1:
        raise FormatError("OnnxRunner", f"a Constant has one value, got {len(given)}")
    return given[0]


@onnx_op("ConstantOfShape", since=9)
def constant_of_shape(shape: Ints, *, value: Value = None, call: Call) -> Value:
    fill = numpy.zeros(1, "float32") if value is None else value
    if isinstance(fill, Coded):
        return Coded(fill.codes.reshape((1,) * len(shape)).expand(shape), fill.kind)
    if isinstance(fill, Tensor):
        return fill.reshape((1,) * len(shape)).expand(shape)
    return Tensor.full(shape, fill.item(), dtype=str(fill.dtype), device=call.device)


@onnx_op("Range", since=11)
def range_(start: Value, limit: Value, delta: Value, *, stash_type: int = 1, call: Call) -> Tensor:
    name = type_name(start)
    start, limit, delta = [on_host(value) for value in (start, limit, delta)]
    count = max(math.ceil((limit.item() - start.item()) / delta.item()), 0)
    wide = dtypes.float64 if start.dtype.kind == "f" else dtypes.int64
    steps = Tensor.arange(count, dtype=wide, device=call.device)
    made: Tensor = steps * delta.item() + start.item()
    return made.cast(name)


@onnx_op("EyeLike", since=9)
def eye_like(x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    rows, columns = x.shape
    row, column = [Tensor.arange(size, device=x.device) for size in (rows, columns)]
    return (row.unsqueeze(1) + k).eq(column).cast(x.dtype if dtype is None else NAMES[dtype])


# --- axes ------------------------------------------------------------------------------------------


def _rearranged(x: Value, change: Any, call: Call) -> Value:
    """Elements of any type, moved: codes and texts too."""
    if isinstance(x, Coded):
        return Coded(change(x.codes), x.kind)
    if isinstance(x, numpy.ndarray) and x.dtype.kind in "OUS":
        places = change(Tensor.arange(x.size).reshape(x.shape))
        return x.reshape(-1)[places.numpy()]
    return change(call.lift(x))


@onnx_op("Reshape")
def reshape(x: Value, shape: Ints, *, allowzero: int = 0, call: Call) -> Value:
    sizes = [x.shape[n] if size == 0 and not allowzero else size for n, size in enumerate(shape)]
    return _rearranged(x, lambda t: t.reshape(sizes), call)


@onnx_op("Flatten")
def flatten(x: Value, *, axis: int = 1, call: Call) -> Value:
    lead = axis if axis >= 0 else axis + len(x.shape)
    sizes = math.prod(x.shape[:lead]), math.prod(x.shape[lead:])
    return _rearranged(x, lambda t: t.reshape(sizes), call)


@onnx_op("Transpose")
def transpose(x: Value, *, perm: list[int] | None = None, call: Call) -> Value:
    order = range(len(x.shape))[::-1] if perm is None else perm
    return _rearranged(x, lambda t: t.permute(tuple(order)), call)


@onnx_op("Squeeze")
def squeeze(x: Value, axes: Ints | None = None, *, call: Call) -> Value:
    rank = len(x.shape)
    gone = {n for n, size in enumerate(x.shape) if size == 1} if axes is None else {axis % rank for axis in axes}
    if any(x.shape[axis] != 1 for axis in gone):
        raise FormatError("OnnxRunner", f"only axes of size 1 are squeezed, not {sorted(gone)} of {x.shape}")
    sizes = [size for n, size in enumerate(x.shape) if n not in gone]
    return _rearranged(x, lambda t: t.reshape(sizes), call)


@onnx_op("Unsqueeze")
def unsqueeze(x: Value, axes: Ints, *, call: Call) -> Value:
    rank = len(x.shape) + len(axes)
    places, sizes = {axis % rank for axis in axes}, iter(x.shape)
    grown = [1 if n in places else next(sizes) for n in range(rank)]
    return _rearranged(x, lambda t: t.reshape(grown), call)


@onnx_op("Expand", since=8)
def expand(x: Value, shape: Ints, *, call: Call) -> Value:
    pairs = zip_longest(reversed(x.shape), reversed(shape), fillvalue=1)
    sizes = [n if m == 1 else m for m, n in pairs][::-1]
    return _rearranged(x, lambda t: t.expand(sizes), call)


@onnx_op("Tile", since=6)
def tile(x: Value, repeats: Ints, *, call: Call) -> Value:
    return _rearranged(x, lambda t: t.repeat(repeats), call)


@onnx_op("Tile")
def tile_axis(x: Tensor, tiles: Ints, axis: Ints) -> Tensor:
    """The first version: one axis."""
    return x.repeat([tiles[0] if n == axis[0] % len(x.shape) else 1 for n in range(len(x.shape))])


@onnx_op("Concat")
def concat(*parts: Value, axis: int = 1, call: Call) -> Value:
    if isinstance(parts[0], numpy.ndarray) and type_name(parts[0]) == "string":
        return numpy.concatenate(parts, axis)
    first, *others = [call.lift(part) for part in parts]
    return first.cat(*others, dim=axis)


@onnx_op("Split")
def split(x: Tensor, split: Ints | None = None, *, axis: int = 0, num_outputs: int | None = None, call: Call) -> Any:
    """Without sizes into equal parts, of which the last may be smaller."""
    count = num_outputs or call.outputs
    whole = -(-x.shape[axis] // count)
    sizes = split or (*(whole,) * (count - 1), x.shape[axis] - whole * (count - 1))
    return tuple(x.split(sizes, axis))


@onnx_op("Slice")
def slice_(
    x: Value, starts: Ints, ends: Ints, axes: Ints | None = None, steps: Ints | None = None, *, call: Call
) -> Value:
    index = [slice(None)] * len(x.shape)
    for n, (begin, end) in enumerate(zip(starts, ends, strict=True)):
        axis, step = n if axes is None else axes[n], 1 if steps is None else steps[n]
        beyond = step < 0 and end < -x.shape[axis]
        index[axis] = slice(begin, None if beyond else end, step)
    return _rearranged(x, lambda t: t[tuple(index)], call)


@onnx_op("Pad")
def pad(
    x: Tensor, pads: Ints | None = None, value: Tensor | None = None, axes: Ints | None = None, *,
    mode: str = "constant", paddings: list[int] | None = None,
) -> Tensor:  # fmt: skip
    widths = pads if paddings is None else tuple(paddings)
    chosen = range(len(x.shape)) if axes is None else axes
    half = len(chosen)
    if widths is None or len(widths) != 2 * half:
        raise FormatError("OnnxRunner", f"Pad needs two widths for each of {half} axes, got {widths}")
    around = [(0, 0)] * len(x.shape)
    for n, axis in enumerate(chosen):
        around[axis] = widths[n], widths[half + n]
    if mode == "constant":
        return x.pad(around) if value is None else _padded_with(x, around, value.reshape(()))
    for axis, (before, after) in enumerate(around):
        if before or after:
            x = x.index_select(axis, Tensor(_sources(mode, x.shape[axis], before, after), device=x.device))
    return x


def _padded_with(x: Tensor, around: list[tuple[int, int]], value: Tensor) -> Tensor:
    """A value that is known only when it runs."""
    inside = Tensor.ones(*x.shape, dtype=dtypes.bool, device=x.device).pad(around)
    return inside.where(x.pad(around), value.cast(x.dtype))


def _sources(mode: str, size: int, before: int, after: int) -> list[int]:
    """Which element stands at each place of a padded axis."""
    places = range(-before, size + after)
    if mode == "edge":
        return [min(max(place, 0), size - 1) for place in places]
    if mode == "wrap":
        return [place % size for place in places]
    if mode != "reflect":
        raise FormatError("OnnxRunner", f"Pad has no mode {mode!r}")
    period = max(2 * (size - 1), 1)
    return [min(place % period, period - place % period) if size > 1 else 0 for place in places]


@onnx_op("CenterCropPad", since=18)
def center_crop_pad(x: Tensor, shape: Ints, *, axes: list[int] | None = None) -> Tensor:
    around = [(0, 0)] * len(x.shape)
    for axis, wanted in zip(range(len(x.shape)) if axes is None else axes, shape, strict=True):
        less = x.shape[axis] - wanted
        cut, added = max(less, 0), max(-less, 0)
        around[axis] = (added // 2 - cut // 2, (added - added // 2) - (cut - cut // 2))
    return x.pad(around)


@onnx_op("Trilu", since=14)
def trilu(x: Tensor, k: Ints | None = None, *, upper: int = 1) -> Tensor:
    return (x.triu if upper else x.tril)(0 if k is None else k[0])


@onnx_op("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    batch, channels, *sizes = x.shape
    rank, left = len(sizes), channels // blocksize ** len(sizes)
    blocks = (blocksize,) * rank
    if mode == "DCR":
        parts, first, block = x.reshape((batch, *blocks, left, *sizes)), 1 + rank, 1
    else:
        parts, first, block = x.reshape((batch, left, *blocks, *sizes)), 1, 2
    order = [0, first, *[axis for n in range(rank) for axis in (2 + rank + n, block + n)]]
    return parts.permute(tuple(order)).reshape((batch, left, *[size * blocksize for size in sizes]))


@onnx_op("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    batch, channels, *sizes = x.shape
    rank = len(sizes)
    parts = x.reshape((batch, channels, *[n for size in sizes for n in (size // blocksize, blocksize)]))
    blocks, places = [3 + 2 * n for n in range(rank)], [2 + 2 * n for n in range(rank)]
    order = (0, *blocks, 1, *places) if mode == "DCR" else (0, 1, *blocks, *places)
    out = (batch, channels * blocksize**rank, *[size // blocksize for size in sizes])
    return parts.permute(order).reshape(out)


@onnx_op("ReverseSequence", since=10)
def reverse_sequence(x: Tensor, lengths: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    rank = len(x.shape)
    steps = Tensor.arange(x.shape[time_axis], device=x.device)
    steps = steps.reshape([-1 if n == time_axis else 1 for n in range(rank)])
    limits = lengths.cast(dtypes.int32).reshape([-1 if n == batch_axis else 1 for n in range(rank)])
    source = (steps < limits).where(limits - 1 - steps, steps)
    return x.gather(time_axis, source.expand(x.shape))


@onnx_op("Dropout")
def dropout(
    x: Tensor, ratio: Host | None = None, training_mode: Host | None = None, *, is_test: int = 0, seed: int = 0,
    call: Call,
) -> Any:  # fmt: skip
    """The identity outside training; in training elements fall out at random, and the mask says which stay."""
    rate = 0.5 if ratio is None else float(ratio)
    training = training_mode is not None and bool(training_mode)
    kept = Tensor.full(x.shape, True, dtype=dtypes.bool, device=x.device)
    if training and rate:
        kept = Tensor.rand(*x.shape, device=x.device) >= rate
        x = kept.where(x / (1 - rate), 0) if rate < 1 else x.zeros_like()
    return (x, kept if call.opset >= 10 else kept.cast(x.dtype)) if call.outputs > 1 else x
