"""The interpreter as a device: runs kernels in their text form, slowly and strictly.

Memory is bytes as on any other device, so values are stored exactly as compiled code stores them.
What the interpreter finds wrong with a kernel, an index out of range for instance, is a `DeviceError`.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
from typing import Any

from lazulite.base.errors import DeviceError
from lazulite.emit.base import Binary
from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.evaluate import KernelFault, compile_kernel
from lazulite.ir.parse import parse
from lazulite.ir.uop import toposort
from lazulite.runtime.device import Argument, Program
from lazulite.runtime.devices.host import HostDevice
from lazulite.runtime.memory import Handle

_FORMAT = {
    dtypes.bool: "?", dtypes.int8: "b", dtypes.uint8: "B", dtypes.int16: "h", dtypes.uint16: "H", dtypes.int32: "i",
    dtypes.uint32: "I", dtypes.int64: "q", dtypes.uint64: "Q", dtypes.float32: "f", dtypes.float64: "d",
}  # fmt: skip
"""The types that a memoryview reads and writes by itself."""


class _Bits(MutableSequence[Any]):
    """Elements of a type of 8 or 16 bits that a memoryview does not know."""

    def __init__(self, data: memoryview, dtype: DType) -> None:
        self._bits, self._dtype = data.cast("H" if dtype.bits == 16 else "B"), dtype

    def __len__(self) -> int:
        return len(self._bits)

    def __iter__(self) -> Iterator[Scalar]:
        return map(self._dtype.from_bits, self._bits)

    def __getitem__(self, index: Any) -> Any:
        return self._dtype.from_bits(self._bits[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._bits[index] = self._dtype.to_bits(value)

    def __delitem__(self, index: Any) -> None:
        raise TypeError("memory does not shrink")

    def insert(self, index: int, value: Any) -> None:
        raise TypeError("memory does not grow")


def elements(data: memoryview, dtype: DType) -> MutableSequence[Any]:
    """Bytes as the elements of a type; assignments go through to the bytes."""
    whole: Any = data[: data.nbytes // dtype.itemsize * dtype.itemsize]
    return whole.cast(_FORMAT[dtype]) if dtype in _FORMAT else _Bits(whole, dtype)


class PythonProgram(Program):
    """A kernel that was parsed and written out as a Python function."""

    def __init__(self, binary: Binary) -> None:
        self.name = binary.name
        kernel = parse(binary.code.decode())
        nodes = toposort(kernel)
        self._memory = {node.arg[0]: node.dtype for node in nodes if node.op is ops.PARAM}
        self._scalars = {node.arg[0]: node.dtype for node in nodes if node.op is ops.SCALAR}
        self._run = compile_kernel(kernel)

    def __call__(self, arguments: Sequence[Argument]) -> None:
        memory = {slot: elements(self._bytes(arguments, slot), dtype) for slot, dtype in self._memory.items()}
        scalars = {slot: self._scalar(arguments, slot, dtype) for slot, dtype in self._scalars.items()}
        try:
            self._run(memory, scalars)
        except KernelFault as fault:
            raise DeviceError(self.name, str(fault)) from None

    def _bytes(self, arguments: Sequence[Argument], slot: int) -> memoryview:
        handle = arguments[slot] if slot < len(arguments) else None
        if not isinstance(handle, Handle) or not isinstance(handle.owner, memoryview):
            raise DeviceError(self.name, f"argument {slot} has to be memory of this device, got {handle!r}")
        return handle.owner

    def _scalar(self, arguments: Sequence[Argument], slot: int, dtype: DType) -> Scalar:
        bits = arguments[slot] if slot < len(arguments) else None
        if not isinstance(bits, int):
            raise DeviceError(self.name, f"argument {slot} has to be the bits of a {dtype.name}, got {bits!r}")
        if dtype is dtypes.index:
            return dtypes.int64.from_bits(bits)
        return dtype.from_bits(bits & ((1 << 8 * dtype.itemsize) - 1))


class PythonDevice(HostDevice):
    """Runs binaries of kind ``text``."""

    kind = "PYTHON"
    emitters = ("TEXT",)

    def load(self, binary: Binary) -> Program:
        if binary.kind != "text":
            self.refuse("load", f"{binary.name} is {binary.kind}, not text")
        return PythonProgram(binary)
