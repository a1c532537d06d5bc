"""Operators that pick and place elements by index tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy

from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.formats.onnx.values import Host, Ints, Value, on_host
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor

_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def placed(x: Tensor, axis: int, index: Tensor, updates: Tensor, reduction: str) -> Tensor:
    """Updates put at, or combined with, what the index names along an axis."""
    if reduction == "none":
        return x.scatter(axis, index, updates)
    return x.scatter_reduce(axis, index, updates, _REDUCTIONS[reduction])


@onnx_op("Gather")
def gather(x: Value, index: Value, *, axis: int = 0, call: Call) -> Value:
    if isinstance(x, numpy.ndarray) and x.dtype.kind in "OUS":
        return numpy.take(x, on_host(index), axis)
    places = call.lift(index)
    return call.lift(x)[(slice(None),) * (axis % len(x.shape)) + (places,)]


@onnx_op("GatherElements", since=11)
def gather_elements(x: Tensor, index: Tensor, *, axis: int = 0) -> Tensor:
    return x.gather(axis, index)


@onnx_op("Scatter")
@onnx_op("ScatterElements", since=11)
def scatter_elements(x: Tensor, index: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none") -> Tensor:
    return placed(x, axis, index, updates, reduction)


def _rows(index: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Tuples of positions as positions in the flattened axes."""
    total: Any = 0
    for n, size in enumerate(shape):
        place = index[..., n].cast(dtypes.int64)
        total = total * size + (place < 0).where(place + size, place)
    result: Tensor = total
    return result


@onnx_op("GatherND", since=11)
def gather_nd(x: Tensor, index: Tensor, *, batch_dims: int = 0) -> Tensor:
    depth, batch = index.shape[-1], x.shape[:batch_dims]
    axes, rest = x.shape[batch_dims : batch_dims + depth], x.shape[batch_dims + depth :]
    places = _rows(index, axes)
    count = math.prod(axes)
    flat = x.reshape((math.prod(batch) * count, *rest))
    if batch:
        starts = Tensor.arange(math.prod(batch), device=x.device, dtype=dtypes.int64) * count
        places = places + starts.reshape((*batch, *(1,) * (len(places.shape) - batch_dims)))
    return flat[places]


@onnx_op("ScatterND", since=11)
def scatter_nd(x: Tensor, index: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    depth = index.shape[-1]
    lead, rest = x.shape[:depth], math.prod(x.shape[depth:])
    places = _rows(index, lead).reshape((-1, 1))
    count = places.shape[0]
    flat = x.reshape((math.prod(lead), rest))
    return placed(flat, 0, places.expand((count, rest)), updates.reshape((count, rest)), reduction).reshape(x.shape)


@onnx_op("TensorScatter", since=24)
def tensor_scatter(
    cache: Tensor, update: Tensor, write_indices: Tensor | None = None, *, axis: int = -2, mode: str = "linear"
) -> Tensor:
    """Each batch element's update written at its own place along an axis, which may wrap around."""
    along, rank = axis % len(cache.shape), len(cache.shape)
    steps = Tensor.arange(update.shape[along], device=cache.device)
    steps = steps.reshape([-1 if n == along else 1 for n in range(rank)])
    if write_indices is not None:
        steps = steps + write_indices.cast(dtypes.int32).reshape([-1 if n == 0 else 1 for n in range(rank)])
    steps = steps % cache.shape[along] if mode == "circular" else steps
    return cache.scatter(along, steps.expand(update.shape), update)


@onnx_op("OneHot", since=9)
def one_hot(index: Tensor, depth: Ints, values: Tensor, *, axis: int = -1) -> Tensor:
    """Negative positions count from the end; those outside give no one."""
    size, rank = depth[0], len(index.shape) + 1
    place = index.cast(dtypes.int64)
    place = (place < 0).where(place + size, place).unsqueeze(axis if axis >= 0 else axis + rank)
    classes = Tensor.arange(size, device=index.device).reshape([-1 if n == axis % rank else 1 for n in range(rank)])
    return place.eq(classes).where(values[1], values[0])


@onnx_op("Compress", since=9)
def compress(x: Tensor, condition: Host, *, axis: int | None = None) -> Tensor:
    places = Tensor(numpy.flatnonzero(condition).astype("int64"), device=x.device)
    return x.flatten()[places] if axis is None else x.index_select(axis, places)


@onnx_op("NonZero", since=9)
def nonzero(x: Tensor) -> Tensor:
    places: Tensor = x.nonzero()
    return places.transpose(0, 1).cast(dtypes.int64)


@onnx_op("Unique", since=11)
def unique(x: Value, *, axis: int | None = None, sorted: int = 1, call: Call) -> tuple[Any, ...]:
    """How many there are depends on the values, so they are looked at on the host."""
    values, first, inverse, counts = numpy.unique(
        on_host(x), return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = numpy.argsort(first)
        rank = numpy.argsort(order)
        values, first = numpy.take(values, order, axis or 0), first[order]
        inverse, counts = rank[inverse], counts[order]
    found = call.lift(values).cast(x.dtype) if isinstance(x, Tensor) else values
    return found, *[part.astype("int64") for part in (first, inverse, counts)]


@onnx_op("ArrayFeatureExtractor", domain="ai.onnx.ml")
def array_feature_extractor(x: Value, places: Ints, *, call: Call) -> Value:
    if isinstance(x, numpy.ndarray) and x.dtype.kind in "OUS":
        return x[..., list(places)]
    return call.lift(x)[..., list(places)].reshape((-1, len(places)))
