"""Values in from the host and out to it: lists, numbers, bytes, NumPy arrays.

Data that comes in is copied at once, so later changes of the source change nothing.  What goes out is
the realized value.  NumPy is imported only when an array is asked for.
"""

from __future__ import annotations

import array
import struct
from collections.abc import Sequence
from os import PathLike
from typing import Any

from lazulite.base.errors import DTypeError, OutOfMemoryError, ShapeError
from lazulite.base.origin import user_frame
from lazulite.base.terminal import size_text
from lazulite.engine.execute import realize
from lazulite.engine.handles import Handle
from lazulite.engine.spread import layout_of
from lazulite.engine.storage import Storage, storage_of
from lazulite.engine.tracing import refuse_reading
from lazulite.ir import ops
from lazulite.ir.dtype import EIGHT_BITS, STORED, DType, Scalar, dtypes
from lazulite.ir.placement import names_of, place_of
from lazulite.ir.size import Size, most, room, varies
from lazulite.ir.uop import UOp
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.registry import Device
from lazulite.tensor.base import Base, Shape, fitted

_FORMAT = {
    dtypes.bool: "?", dtypes.int8: "b", dtypes.uint8: "B", dtypes.int16: "h", dtypes.uint16: "H", dtypes.int32: "i",
    dtypes.uint32: "I", dtypes.int64: "q", dtypes.uint64: "Q", dtypes.float16: "e", dtypes.float32: "f",
    dtypes.float64: "d",
}  # fmt: skip
_CONVERSIONS = {
    "c": "one tensor of array.real and one of array.imag", "O": "array.astype('float32'), if all elements are numbers",
    "U": "the numbers that the text stands for", "S": "numpy.frombuffer(array.tobytes(), 'uint8')",
}  # fmt: skip
"""What to do with an array that has no dtype here, by NumPy's letter for its kind."""
_NOT_OF_NUMPY = EIGHT_BITS | {dtypes.bfloat16}
_ML_DTYPES = {
    "float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2", "float8_e4m3fnuz": "fp8e4m3fnuz",
    "float8_e5m2fnuz": "fp8e5m2fnuz",
}  # fmt: skip
"""The floats of 8 bits by their names in ml_dtypes."""
_SHOWN = 1000
"""A printout shows all elements up to so many."""


class HostMethods(Base):
    """Reading values."""

    __slots__ = ()
    _handle: Handle

    def data(self) -> memoryview:
        """The realized elements as a flat read-only memoryview of bytes in row-major order (a copy).

        >>> bytes(Tensor([1, 2], dtype="uint8").data())
        b'\\x01\\x02'
        """
        return memoryview(self._bytes("data")).toreadonly()

    def numpy(self) -> Any:
        """The realized elements as a NumPy array of their own.

        bfloat16 and floats of 8 bits come as float32, which holds them exactly; ``.astype`` with a type of ml_dtypes
        makes them what they were.

        >>> Tensor([[1, 2]]).numpy().shape
        (1, 2)
        """
        import numpy

        if self.dtype in _NOT_OF_NUMPY:
            return self._derived(self.uop.cast(dtypes.float32)).numpy()
        return numpy.frombuffer(self._bytes("numpy"), dtype=self.dtype.name).reshape(_current(self.shape))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """For NumPy: a copy of the elements, in another type if it asks for one; ValueError where it wants none."""
        if copy is False:
            raise ValueError("array: the elements of a tensor are copied, and copy=False forbids that")
        result = self.numpy()
        return result if dtype is None else result.astype(dtype)

    def tolist(self) -> Any:
        """The realized elements as nested lists; a number for rank 0.

        >>> Tensor([[1, 2], [3, 4]]).tolist(), Tensor(2.5).tolist()
        ([[1, 2], [3, 4]], 2.5)
        """
        return _nested(_elements(self._bytes("tolist"), self.dtype), _current(self.shape))

    def item(self) -> Scalar:
        """The only element as a Python number; ShapeError where there are more or none.

        >>> Tensor([[2.5]]).item()
        2.5
        """
        return self._only("item", "select an element, or use tolist()")

    def _only(self, function: str, hint: str) -> Scalar:
        if _count(_current(self.shape)) != 1:
            raise ShapeError(
                function, f"a tensor of one element is needed, got {self.shape}", about={"tensor": self}, hint=hint
            )
        return _elements(self._bytes(function), self.dtype)[0]

    def __bool__(self) -> bool:
        return bool(self._only("bool", "any() or all(), or a where(...) in the place of the if"))

    def __int__(self) -> int:
        return int(self._only("int", "select an element, or cast(dtypes.int32)"))

    def __float__(self) -> float:
        return float(self._only("float", "select an element, or cast(dtypes.float32)"))

    def __format__(self, spec: str) -> str:
        """One element as a Python number, if how it is to be printed is told; else `str`."""
        return format(self._only("format", "print it without a format"), spec) if spec else str(self)

    def __repr__(self) -> str:
        """The values (of a large tensor the corners), then shape, dtype and device.

        >>> Tensor([1.0, 2.0])
        Tensor([1.0, 2.0], shape=(2,), dtype=float32, device='CPU')
        """
        facts = f"shape={self.shape}, dtype={self.dtype.name}, device={self.device!r}"
        first = self.device if isinstance(self.device, str) else self.device[0]
        if not Device[first].maps:
            return f"Tensor({facts})"
        if _count(_current(self.shape)) > _SHOWN:
            import numpy

            values = numpy.array2string(self.numpy(), separator=", ", prefix="Tensor(", threshold=_SHOWN)
        else:
            values = str(self.tolist())
        return f"Tensor({values}, {facts})"

    def __reduce__(self) -> tuple[Any, ...]:
        wanted = self._handle.requires_grad
        shape = _current(self.shape)
        place = self.device if isinstance(self.device, str) else str(layout_of(self.uop))
        return _unpickled, (type(self), self._bytes("pickle"), shape, self.dtype.name, place, wanted)

    def _bytes(self, function: str) -> bytearray:
        """The realized elements, on behalf of a public function."""
        refuse_reading(function, self)
        handle = self._handle
        realize([handle])
        if handle.value.op is not ops.BUFFER:
            constant = _constant_below(handle.value)
            return _repeated(constant.dtype, constant.value, _count(_current(self.shape)))
        storage = storage_of(handle.value)
        storage.require_contents(function)
        if storage.parts:
            return self.to(storage.parts[0].device)._bytes(function)  # type: ignore[attr-defined, no-any-return]
        if storage.buffer is None:
            return _repeated(storage.dtype, storage.fill or 0, _count(_current(self.shape)))
        data = bytearray(storage.nbytes)
        storage.buffer.copy_out(memoryview(data))
        return _first(data, storage.dtype.itemsize, storage.shape) if varies(storage.shape) else data


def _current(shape: Shape) -> Shape:
    """The shape with the sizes that vary as they are now."""
    return tuple(map(int, shape)) if varies(shape) else shape


def _first(data: bytearray, itemsize: int, shape: Shape) -> bytearray:
    """The elements that there are now, out of memory for the most elements along each axis."""
    for axis, size in enumerate(shape):
        if isinstance(size, Size) and data:
            inner = room(shape[axis + 1 :]) * itemsize
            step, taken = most(size) * inner, int(size) * inner
            data = bytearray().join([data[at : at + taken] for at in range(0, len(data), step)])
            shape = (*shape[:axis], int(size), *shape[axis + 1 :])
    return data


def _constant_below(node: UOp) -> UOp:
    while node.src:
        node = node.src[0]
    return node


def _repeated(dtype: DType, value: Scalar, count: int) -> bytearray:
    """The bytes of one value so many times."""
    try:
        return bytearray(dtype.to_bits(value).to_bytes(dtype.itemsize, "little") * count)
    except (MemoryError, OverflowError):
        raise OutOfMemoryError(
            "Tensor", f"the host has no room for {size_text(count * dtype.itemsize)}",
            hint="ask for a part, such as the values of t[:10]",
        ) from None  # fmt: skip


def _unpickled(kind: type[Base], data: bytes, shape: Shape, dtype: str, place: str, requires_grad: bool | None) -> Base:
    where = place_of(place)
    device = where if isinstance(where, str) else names_of(where)[0]
    result: Any = kind(memoryview(data), device=device, dtype=dtypes.uint8, requires_grad=requires_grad)
    storage = from_bytes(data, next(t for t in STORED if t.name == dtype), shape, device)
    result._handle.value, result._handle.storage = storage.node(), storage
    return result if isinstance(where, str) else result._spread(where)  # type: ignore[no-any-return]


# --- in ----------------------------------------------------------------------------------------


def from_host(data: Any, dtype: DType | None, device: str) -> Storage:
    """A storage with the host's data; a single number needs no memory.

    Numbers take the type; bytes and arrays keep theirs, for the device to convert.
    """
    if isinstance(data, bool | int | float):
        chosen = _dtype_of([data]) if dtype is None else dtype
        return Storage(chosen, (), device, fill=fitted(chosen, data))
    if isinstance(data, bytes | bytearray | memoryview):
        raw = bytes(data)
        return from_bytes(raw, dtypes.uint8, (len(raw),), device)
    if hasattr(data, "dtype") and hasattr(data, "tobytes"):
        return _from_array(data, device)
    if isinstance(data, PathLike):
        from lazulite.tensor.mapped import from_file

        return from_file(data, dtype, device)
    if not isinstance(data, Sequence) or isinstance(data, str):
        raise DTypeError("Tensor", f"cannot make a tensor of {type(data).__name__}: {data!r:.60}")
    shape = _shape_of(data)
    flat = _flattened(data, shape)
    chosen = _dtype_of(flat) if dtype is None else dtype
    return from_bytes(_packed(flat, chosen), chosen, shape, device)


def from_bytes(data: bytes | memoryview, dtype: DType, shape: Shape, device: str) -> Storage:
    """A storage with these bytes."""
    storage = Storage(dtype, shape, device, Buffer(Device[device], len(data), label=user_frame() or "").allocate())
    if data and storage.buffer is not None:
        storage.buffer.copy_in(memoryview(data))
    return storage


def _from_array(data: Any, device: str) -> Storage:
    """A NumPy array, or what has its interface."""
    if not getattr(data.dtype, "isnative", True):
        data = data.astype(data.dtype.newbyteorder("="))
    name = _ML_DTYPES.get(str(data.dtype), str(data.dtype))
    known = next((t for t in STORED if t.name == name), None)
    if known is None:
        raise DTypeError(
            "Tensor", f"an array of {name} has no dtype here",
            rule=f"The dtypes are {', '.join(sorted(t.name for t in STORED))}.",
            hint="convert it first: " + _CONVERSIONS.get(data.dtype.kind, "array.astype('float32')"),
        )  # fmt: skip
    return from_bytes(data.tobytes(), known, tuple(data.shape), device)


def _shape_of(data: Any) -> Shape:
    shape = []
    while isinstance(data, Sequence) and not isinstance(data, str):
        shape.append(len(data))
        if not data:
            break
        data = data[0]
    return tuple(shape)


def _flattened(data: Sequence[Any], shape: Shape) -> list[Any]:
    """The numbers of nested sequences in row-major order; ShapeError where they are ragged."""
    level: list[Any] = [data]
    for size in shape:
        for part in level:
            if not isinstance(part, Sequence) or isinstance(part, str) or len(part) != size:
                raise ShapeError(
                    "Tensor", f"nested sequences must have equal lengths, expected {size} elements, got {part!r:.60}",
                    rule=f"The first elements give the shape {shape}.",
                )  # fmt: skip
        level = [item for part in level for item in part]
    return level if {*map(type, level)} <= {bool, int, float} else [_number(value) for value in level]


def _number(value: Any) -> Scalar:
    """The number in a NumPy scalar or a tensor of rank 0."""
    number = value.item() if getattr(value, "shape", None) == () else value
    if isinstance(number, bool | int | float):
        return number
    if isinstance(value, Sequence) and not isinstance(value, str):
        raise ShapeError("Tensor", f"nested sequences must have equal depths, got {value!r:.60}")
    raise DTypeError(
        "Tensor", f"elements must be numbers, got {type(value).__name__}: {value!r:.60}",
        hint="Tensor.stack(*tensors), or numpy.stack(arrays)" if hasattr(value, "shape") else "",
    )  # fmt: skip


def _dtype_of(values: Sequence[Scalar]) -> DType:
    """bool, the default integer (int64 where one does not fit) or the default float."""
    kinds = {*map(type, values)}
    if not kinds or any(issubclass(kind, float) for kind in kinds):
        return dtypes.default_float
    if kinds == {bool}:
        return dtypes.bool
    default = dtypes.default_int
    return default if default.min <= min(values) and max(values) <= default.max else dtypes.int64


def _packed(values: Sequence[Scalar], dtype: DType) -> bytes:
    if dtype in (dtypes.float32, dtypes.float64):
        return array.array(_FORMAT[dtype], values).tobytes()
    if dtype.is_int and {*map(type, values)} == {int}:
        fitted(dtype, min(values)), fitted(dtype, max(values))
        return array.array(_FORMAT[dtype], values).tobytes()
    elements = [fitted(dtype, value) for value in values]
    if dtype in _NOT_OF_NUMPY:
        return b"".join(dtype.to_bits(value).to_bytes(dtype.itemsize, "little") for value in elements)
    return struct.pack(f"<{len(elements)}{_FORMAT[dtype]}", *elements)


# --- out ---------------------------------------------------------------------------------------


def _elements(data: bytearray, dtype: DType) -> list[Scalar]:
    if dtype is dtypes.bfloat16:
        return [dtype.from_bits(bits) for bits in struct.unpack(f"<{len(data) // 2}H", data)]
    if dtype in EIGHT_BITS:
        return [dtype.from_bits(bits) for bits in data]
    return list(struct.unpack(f"<{len(data) // dtype.itemsize}{_FORMAT[dtype]}", data))


def _nested(values: list[Scalar], shape: Shape) -> Any:
    """A flat list folded into nested ones."""
    if not shape:
        return values[0]
    result: list[Any] = values
    for axis in range(len(shape) - 1, 0, -1):
        size = shape[axis]
        result = [result[i * size : (i + 1) * size] for i in range(_count(shape[:axis]))]
    return result


def _count(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count
