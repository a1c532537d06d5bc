"""Memory shared with other libraries: DLPack, and memory at an address.

What goes out by DLPack is the tensor's own memory where it has any: writes on either side are seen on
the other.  What comes in by `from_dlpack` is copied at once, as all data from the host; `from_blob` uses
memory in place, which the caller keeps alive and unchanged.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Self

from lazulite.base.errors import ArgumentError, DeviceError, DTypeError
from lazulite.engine.execute import realize
from lazulite.engine.handles import Handle
from lazulite.engine.storage import Storage, storage_of
from lazulite.engine.tracing import refuse_reading
from lazulite.ir import ops
from lazulite.ir.dtype import STORED, DType, dtypes
from lazulite.ir.size import room, varies
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.devices.host import external_memory
from lazulite.runtime.registry import Device
from lazulite.tensor.base import DeviceLike, DTypeLike, as_dtype, sizes_argument
from lazulite.tensor.host import HostMethods, from_bytes

_NAMESPACE = "lazulite.interop.array_api"
"""Named here as a device is in `runtime/registry.py`: a tensor tells where the namespace is and needs nothing of it."""
_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
_CPU = 1
_VERSION = (1, 0)
_IS_COPIED = 2
_UNUSED = b"dltensor"
_UNUSED_VERSIONED = b"dltensor_versioned"
_EIGHT_BIT_CODES = {dtypes.fp8e4m3: 10, dtypes.fp8e4m3fnuz: 11, dtypes.fp8e5m2: 12, dtypes.fp8e5m2fnuz: 13}
_CODES = {"int": 0, "uint": 1, "float": 2, "bool": 6}


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", _Deleter),
        ("flags", ctypes.c_uint64), ("tensor", _DLTensor),
    )  # fmt: skip


class ExchangeMethods(HostMethods):
    """Sharing memory."""

    __slots__ = ()

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        """The realized elements as a DLPack capsule, for `numpy.from_dlpack` and others.

        The memory is shared, unless `copy` is True, the tensor is a constant without memory, or a size varies; with
        `copy=False` these are a BufferError, as is another device.  With a `max_version` of 1 or more the capsule is
        of the versioned form, and says whether it holds a copy.  Host memory has no streams.

        >>> import numpy
        >>> numpy.from_dlpack(Tensor([[1, 2]])).tolist()
        [[1, 2]]
        """
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"dlpack: memory of {self.device} is host memory, not on device {dl_device}")
        if stream is not None:
            raise DeviceError("dlpack", f"host memory has no streams, got {stream!r}", hint="stream=None")
        refuse_reading("dlpack", self)
        memory = None if copy or varies(self.shape) else self._own_memory()
        if memory is None and copy is False:
            raise BufferError("dlpack: the tensor has no memory of its own to share, and copy=False forbids a copy")
        shape, versioned = tuple(map(int, self.shape)), max_version is not None and max_version[0] >= 1
        contents = memoryview(self._bytes("dlpack")) if memory is None else memory
        return _capsule(contents, self.dtype, shape, versioned, memory is None)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The functions of the array API standard, for libraries that are written to it.

        >>> Tensor([1.0]).__array_namespace__().__array_api_version__
        '2024.12'
        """
        if api_version not in (None, *_API_VERSIONS):
            raise ArgumentError("array_namespace", f"version {api_version!r} is not here", hint=_API_VERSIONS[-1])
        return import_module(_NAMESPACE)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The kind and number of the device in DLPack's terms; DeviceError where the memory is not the host's.

        >>> Tensor([1]).__dlpack_device__()
        (1, 0)
        """
        if not isinstance(self.device, str) or not Device[self.device].maps:
            raise DeviceError("dlpack", f"memory of {self.device} cannot be shared", hint="move it: x.to('CPU')")
        return _CPU, 0

    @classmethod
    def from_dlpack(cls, data: Any, device: DeviceLike = None, copy: bool | None = None) -> Self:
        """A copy of what another library offers by DLPack, in any layout, from host memory.

        `copy=False` is a BufferError: a tensor owns its memory, so what comes in is copied (`from_blob` shares).

        >>> import numpy
        >>> Tensor.from_dlpack(numpy.arange(3.0)).tolist()
        [0.0, 1.0, 2.0]
        """
        if not hasattr(data, "__dlpack__"):
            raise DTypeError("from_dlpack", f"{type(data).__name__} has no __dlpack__")
        if copy is False:
            raise BufferError("from_dlpack: what comes in is copied, and copy=False forbids that")
        import numpy

        try:
            capsule = data.__dlpack__(max_version=(1, 0))
        except TypeError:  # it knows the first form of the protocol only
            capsule = data.__dlpack__()
        given = _described(capsule)
        if given.device_type != _CPU:
            raise DeviceError("from_dlpack", f"the memory is on a device of kind {given.device_type}, not the host")
        dtype, shape = _dtype_of(given), tuple(given.shape[: given.ndim])
        elements = numpy.array(_Elements(given, dtype, shape))  # a copy: the capsule frees its memory when it goes
        return cls._with_storage(from_bytes(elements.tobytes(), dtype, shape, _name(device)))

    @classmethod
    def from_blob(
        cls, ptr: int, shape: int | Sequence[int], dtype: DTypeLike = dtypes.float32, device: DeviceLike = None
    ) -> Self:
        """The elements at an address of host memory, used in place.

        The memory must stay allocated and unchanged by others as long as the tensor, or what was made from it and
        is not realized, lives.  Writing to the tensor writes there.

        >>> import array
        >>> numbers = array.array("f", [1.0, 2.0])
        >>> Tensor.from_blob(numbers.buffer_info()[0], (2,)).tolist()
        [1.0, 2.0]
        """
        kind, sizes, name = as_dtype("from_blob", dtype), sizes_argument("from_blob", shape), _name(device)
        if not Device[name].maps:
            raise DeviceError(
                "from_blob", f"{name} does not use host memory", hint="copy it in: Tensor(..., device=..)"
            )
        memory = external_memory(ptr, room(sizes) * kind.itemsize)
        return cls._with_storage(Storage(kind, sizes, name, Buffer.external(Device[name], memory)))

    @classmethod
    def _with_storage(cls, storage: Storage) -> Self:
        return cls._made(Handle(storage.node(), storage, leaf=True), storage.home)

    def _own_memory(self) -> memoryview | None:
        """The memory of the realized tensor; None where it needs none."""
        realize([self._handle])
        node = self._handle.value
        if node.op is not ops.BUFFER:
            return None
        storage_of(node).require_contents("dlpack")
        buffer = storage_of(node).buffer
        return buffer.map() if buffer is not None and buffer.nbytes else None


def _name(device: DeviceLike) -> str:
    name = Device.DEFAULT if device is None else Device.canonical(device)
    if not isinstance(name, str):
        raise DeviceError("Tensor", "memory from outside goes to one device", hint="shard(devices) spreads the tensor")
    return name


# --- out ---------------------------------------------------------------------------------------

_ALIVE: dict[int, tuple[Any, ...]] = {}
"""What each description handed out refers to, until its receiver lets go of it."""


def _capsule(memory: memoryview, dtype: DType, shape: tuple[int, ...], versioned: bool, copied: bool) -> Any:
    managed = _Versioned() if versioned else _Managed()
    sizes = (ctypes.c_int64 * len(shape))(*shape)
    strides = (ctypes.c_int64 * len(shape))(*[math.prod(shape[axis + 1 :]) for axis in range(len(shape))])
    if isinstance(managed, _Versioned):
        (managed.major, managed.minor), managed.flags = _VERSION, _IS_COPIED if copied else 0
    tensor = managed.tensor
    tensor.data = ctypes.addressof(ctypes.c_char.from_buffer(memory)) if memory.nbytes else None
    tensor.device_type, tensor.device_id, tensor.ndim = _CPU, 0, len(shape)
    tensor.code = _EIGHT_BIT_CODES.get(dtype, 4 if dtype is dtypes.bfloat16 else _CODES[dtype.kind])
    tensor.bits, tensor.lanes = dtype.itemsize * 8, 1
    tensor.shape = ctypes.cast(sizes, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = _let_go
    address = ctypes.addressof(managed)
    _ALIVE[address] = managed, sizes, strides, memory
    return _new_capsule(address, _UNUSED_VERSIONED if versioned else _UNUSED, _dropped)


def _forget(address: int) -> None:
    _ALIVE.pop(address, None)


def _forget_unused(capsule: int) -> None:
    """A capsule that nobody took goes: a taken one has another name, and its receiver lets go itself."""
    for name in (_UNUSED, _UNUSED_VERSIONED):
        if _is_valid(capsule, name):
            _forget(_dying_pointer(capsule, name))


_let_go = _Deleter(_forget)
_dropped = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_forget_unused)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
# An object whose last reference has gone must not become a Python object again: these take its address.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_dying_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


# --- in ----------------------------------------------------------------------------------------


def _described(capsule: Any) -> _DLTensor:
    """The description in a capsule of either form."""
    kind: type[_Managed | _Versioned] = _Versioned if _is_valid(id(capsule), _UNUSED_VERSIONED) else _Managed
    pointer = _get_pointer(capsule, _UNUSED if kind is _Managed else _UNUSED_VERSIONED)
    tensor: _DLTensor = kind.from_address(pointer).tensor
    return tensor


class _Elements:
    """The described memory for NumPy, each element as an unsigned integer of its size."""

    def __init__(self, given: _DLTensor, dtype: DType, shape: tuple[int, ...]) -> None:
        size = dtype.itemsize
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": f"<u{size}",
            "data": ((given.data or 0) + given.byte_offset, True),
            "strides": tuple([n * size for n in given.strides[: given.ndim]]) if given.strides else None,
        }  # fmt: skip


def _dtype_of(given: _DLTensor) -> DType:
    if given.code == 4 and given.bits == 16 and given.lanes == 1:
        return dtypes.bfloat16
    for dtype, code in _EIGHT_BIT_CODES.items():
        if (given.code, given.bits, given.lanes) == (code, 8, 1):
            return dtype
    for dtype in STORED:
        if dtype is dtypes.bfloat16 or dtype in _EIGHT_BIT_CODES or given.lanes != 1:
            continue
        if _CODES.get(dtype.kind) == given.code and dtype.itemsize * 8 == given.bits:
            return dtype
    raise DTypeError("from_dlpack", f"no dtype here has kind {given.code}, {given.bits} bits and {given.lanes} lanes")
