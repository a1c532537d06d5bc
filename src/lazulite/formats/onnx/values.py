"""The values that flow through a graph, and how the data of a file becomes one.

A value is a `Tensor`, a NumPy array on the host (what is known before anything runs: shapes, small
constants, texts), `Coded` (elements of a type that Lazulite has no arithmetic for), a list (a
sequence) or None (an absent optional).  What is small stays on the host, so that computing with shapes
launches no kernel; what is not becomes a tensor over the file's own bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy

from lazulite.base.errors import DTypeError
from lazulite.formats.onnx.external import ExternalFiles
from lazulite.formats.onnx.proto import NAMES, SparseData, TensorData
from lazulite.formats.onnx.wire import Part
from lazulite.formats.source import Source
from lazulite.ir.dtype import STORED
from lazulite.ir.dtype import by_name as dtype_named
from lazulite.tensor.tensor import Tensor

Value = Any
Host = Any
"""A NumPy array."""
Ints = tuple[int, ...]
Lift = Callable[[Value], Tensor]

FOLDED = 4096
"""Constants of up to so many elements are computed with on the host."""
LARGEST_DENSE = 1 << 28
"""Elements that a sparse tensor may have once its zeros are written out."""

CODED = {
    "float8_e4m3fn": 8, "float8_e4m3fnuz": 8, "float8_e5m2": 8, "float8_e5m2fnuz": 8, "float8_e8m0fnu": 8,
    "float4_e2m1fn": 4, "uint4": 4, "int4": 4, "uint2": 2, "int2": 2,
}  # fmt: skip
"""Element types that are kept as codes, with their bits."""
_STORED = {dtype.name for dtype in STORED}
BITS = {name: dtype_named(name).itemsize * 8 for name in _STORED} | CODED
_TYPED = {
    "float32": "float_data", "float64": "double_data", "int64": "int64_data", "uint64": "uint64_data",
    "uint32": "uint64_data",
}  # fmt: skip
"""The field that holds typed elements where it is not `int32_data`."""


@dataclass(frozen=True, slots=True)
class Coded:
    """Elements of a type without arithmetic: one code a byte, and the type's name."""

    codes: Tensor
    kind: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.codes.shape

    def numpy(self) -> Host:
        """The codes as `ml_dtypes` has them, which the `onnx` package brings along."""
        import ml_dtypes

        return self.codes.numpy().view(numpy.dtype(getattr(ml_dtypes, self.kind)))


def type_name(value: Value) -> str:
    """The name of a value's element type."""
    if isinstance(value, Tensor):
        return value.dtype.name
    if isinstance(value, Coded):
        return value.kind
    if isinstance(value, numpy.ndarray):
        return "string" if value.dtype.kind in "OUS" else str(value.dtype)
    return type(value).__name__


def lifted(value: Value, device: str) -> Tensor:
    """A value as a tensor; a single number needs no memory."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, numpy.ndarray) and str(value.dtype) in _STORED:
        if value.size == 1 and value.dtype.kind != "V":
            return Tensor.full(value.shape, value.item(), dtype=str(value.dtype), device=device)
        return Tensor(value, device=device)
    raise DTypeError("OnnxRunner", f"a tensor of numbers is needed, got {type_name(value)}")


def on_host(value: Value) -> Host:
    """A value as an array, computed now if it has to be."""
    return value.numpy() if isinstance(value, Tensor | Coded) else value


def accepted(value: Any, device: str) -> Value:
    """What a user gives for an input: tensors as they are, numbers as tensors, texts as arrays.

    A single integer or truth value, such as a rate or a count, is known and stays on the host: it may decide.
    """
    if isinstance(value, Tensor | Coded) or value is None:
        return value
    if isinstance(value, list | tuple) and any(hasattr(item, "shape") for item in value):
        return [accepted(item, device) for item in value]
    array = value if hasattr(value, "dtype") else numpy.asarray(value)
    name = str(array.dtype)
    if name in CODED:
        return Coded(Tensor(numpy.ascontiguousarray(array).view("uint8"), device=device), name)
    known = array.dtype.kind in "OUS" or (array.dtype.kind in "iub" and not array.shape and name in _STORED)
    return numpy.asarray(array) if known else Tensor(array, device=device)


def read_tensor(data: TensorData, source: Source, files: ExternalFiles, device: str, field: str) -> Value:
    """The value that a file's data describes."""
    name = NAMES[data.data_type] if 0 < data.data_type < len(NAMES) else ""
    shape = tuple(data.dims)
    if any(size < 0 for size in shape):
        source.fail(f"a size is negative in {shape}", field)
    if name == "string":
        return _texts(data, shape, source, field)
    if name not in BITS:
        source.fail(f"elements of type {name or data.data_type} are not read", field)
    count = prod(shape)
    needed = (count * BITS[name] + 7) // 8
    part = _part(data, name, needed, source, files, field)
    if part is None:
        raw = _typed(data, name, count, needed, source, field)
    elif name in CODED or (count <= FOLDED and name != "bfloat16"):
        raw = part.read(field)
    else:
        return part.source.tensor(part.begin, dtype_named(name), shape, field, device)
    if name in CODED:
        return Coded(Tensor(unpacked(raw, CODED[name], count).reshape(shape), device=device), name)
    if name == "bfloat16":
        return Source.over(memoryview(raw), field).tensor(0, dtype_named(name), shape, field, device)
    array = numpy.frombuffer(raw, numpy.dtype(name).newbyteorder("<")).astype(name).reshape(shape)
    return array if count <= FOLDED else Tensor(array, device=device)


def read_sparse(data: SparseData, source: Source, files: ExternalFiles, device: str, field: str) -> Value:
    """The dense value of a sparse tensor."""
    shape = tuple(data.dims)
    if data.values is None or data.indices is None or any(size < 0 for size in shape):
        source.fail("a sparse tensor has values, indices and sizes", field)
    count = prod(shape)
    if count > LARGEST_DENSE:
        source.fail(f"a sparse tensor of {count} elements is larger than {LARGEST_DENSE}", field)
    values = on_host(read_tensor(data.values, source, files, device, field))
    places = on_host(read_tensor(data.indices, source, files, device, field))
    if places.ndim == 2:
        strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
        places = places @ numpy.array(strides, "int64")
    if places.shape != values.shape or (places.size and not 0 <= places.min() <= places.max() < count):
        source.fail("an index of a sparse tensor is outside its shape", field)
    dense = numpy.zeros(count, values.dtype)
    dense[places] = values
    return dense.reshape(shape) if count <= FOLDED else Tensor(dense.reshape(shape), device=device)


def unpacked(raw: bytes, bits: int, count: int) -> Host:
    """One code a byte, from bytes that hold several, the lowest bits first."""
    data = numpy.frombuffer(raw, "uint8")
    if bits == 8:
        return data
    parts = [(data >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return numpy.stack(parts, axis=-1).reshape(-1)[:count]


def _part(data: TensorData, name: str, needed: int, source: Source, files: ExternalFiles, field: str) -> Part | None:
    """The bytes of the elements in a file; None where they are typed."""
    if data.data_location:
        return files.part(data, needed, field)
    if data.raw_data is not None and data.raw_data.length != needed:
        source.fail(
            f"{data.raw_data.length} bytes cannot hold {name} elements of shape {tuple(data.dims)}", field,
            data.raw_data.begin,
        )  # fmt: skip
    return data.raw_data


def _typed(data: TensorData, name: str, count: int, needed: int, source: Source, field: str) -> bytes:
    """The bytes of elements that stand in a field of their type."""
    values = getattr(data, _TYPED.get(name, "int32_data"))
    bits = BITS[name]
    expected = needed if name in CODED else count
    if len(values) != expected:
        source.fail(f"{len(values)} elements cannot have the shape {tuple(data.dims)}", field)
    if name in ("float32", "float64"):
        return numpy.array(values, name).astype(numpy.dtype(name).newbyteorder("<")).tobytes()
    wrapped = numpy.array(values, "int64").astype("uint64")
    return wrapped.astype(f"<u{max(bits, 8) // 8}").tobytes()


def _texts(data: TensorData, shape: tuple[int, ...], source: Source, field: str) -> Host:
    if len(data.string_data) != prod(shape):
        source.fail(f"{len(data.string_data)} texts cannot have the shape {shape}", field)
    texts = [part.read(field).decode(errors="replace") for part in data.string_data]
    return numpy.array(texts, object).reshape(shape)
