"""A file that tensors are read from: mapped into memory, every access checked against its size.

A `Source` gives copies of small parts (headers) and tensors over large ones.  A tensor over a part uses
the mapping in place, so only what is read of it comes from the disk.  The mapping is private: writing
to such a tensor changes memory and never the file.  Whatever does not fit is a `FormatError` that names
the file, the field and the offset; sizes are compared as Python integers, which do not wrap.  As with
every mapping, a file must not be cut short while its tensors live; replacing it by another one is fine.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import NoReturn, Self

from lazulite.base.errors import DTypeError, FormatError
from lazulite.engine.storage import Storage
from lazulite.ir.dtype import DType, dtypes
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.registry import Device
from lazulite.tensor.host import from_bytes
from lazulite.tensor.mapped import mapping
from lazulite.tensor.tensor import Tensor

_MOST_ELEMENTS = 1 << 64
_LINE = 256
"""Bytes in which the end of a line is looked for at first."""


class Source:
    """One file, open for reading; `function` is the public function that errors name.

    A file that has to be `alone` is refused where its path ends in a link or it has other names.
    """

    _held: Tensor | None = None

    def __init__(self, path: str | os.PathLike[str], function: str = "load", alone: bool = False) -> None:
        self.path, self.function = Path(path), function
        self._keep(mapping(path, function, alone=alone))

    @classmethod
    def over(cls, memory: memoryview, path: str | os.PathLike[str], function: str = "load") -> Self:
        """Memory that holds what a file would hold; errors call it `path`."""
        self = object.__new__(cls)
        self.path, self.function = Path(path), function
        self._keep(memory)
        return self

    @classmethod
    def of(cls, held: Tensor, function: str) -> Self:
        """The bytes of a tensor; what is read of them are views of it."""
        self = cls.over(bytes_of(held, function), f"a tensor of {held.numel()} bytes", function)
        self._held = held
        return self

    def _keep(self, memory: memoryview) -> None:
        self.memory, self.size = memory, memory.nbytes

    def fail(self, message: str, field: str, offset: int = 0, hint: str = "") -> NoReturn:
        """Raise because the file is not what its format says; 0 is the place of what the file is as a whole."""
        named = field or "(a name of no characters)"
        raise FormatError(self.function, message, file=str(self.path), field=named, offset=offset, hint=hint)

    def require(self, offset: int, length: int, field: str) -> None:
        """Raise unless these bytes lie in the file."""
        if offset < 0 or length < 0 or offset + length > self.size:
            self.fail(
                f"{field} would take bytes {offset} to {offset + length} of a file of {self.size} bytes", field, offset
            )

    def read(self, offset: int, length: int, field: str) -> bytes:
        """A copy of bytes of the file."""
        self.require(offset, length, field)
        return bytes(self.memory[offset : offset + length])

    def integer(self, offset: int, length: int, field: str) -> int:
        """An unsigned little-endian integer."""
        return int.from_bytes(self.read(offset, length, field), "little")

    def starts_with(self, magic: bytes) -> bool:
        """Whether these are the first bytes."""
        return bytes(self.memory[: len(magic)]) == magic

    def elements(self, shape: Sequence[int], field: str, offset: int = 0) -> int:
        """How many elements a shape has; no size and no product of the first ones may need more than 64 bits."""
        count = 1
        for size in shape:
            count *= size
            if max(count, size) >= _MOST_ELEMENTS:
                self.fail("its sizes multiply to more than 64 bits hold", field, offset)
        return count

    def tensor(
        self, offset: int, dtype: DType, shape: tuple[int, ...], field: str, device: str | None = None
    ) -> Tensor:
        """The elements from an offset as a tensor, which reads them when they are needed.

        They are copied at once where the device has no part in the host's memory.
        """
        length = prod(shape) * dtype.itemsize
        self.require(offset, length, field)
        name = Device.DEFAULT if device is None else Device.canonical(device)
        part = self.memory[offset : offset + length]
        if self._held is not None and length:
            view = self._held[offset : offset + length].bitcast(dtype).reshape(shape)
            return view if device is None else view.to(name)
        if not length or part.readonly or not Device[name].maps:
            return Tensor._with_storage(from_bytes(part, dtype, shape, name))
        if offset % dtype.itemsize:  # no kernel may take the bytes for elements where they stand
            return self.tensor(offset, dtypes.uint8, (length,), field, device).bitcast(dtype).reshape(shape)
        return Tensor._with_storage(Storage(dtype, shape, name, Buffer.wrap(Device[name], part, label=field)))


def bytes_of(held: Tensor, function: str) -> memoryview:
    """The memory of a tensor of bytes."""
    if held.dtype is not dtypes.uint8 or len(held.shape) != 1:
        raise DTypeError(function, "a file is a vector of uint8", about={"tensor": held}, hint="bitcast and flatten it")
    memory = held._own_memory()
    return memoryview(held.data()) if memory is None else memory


class Cursor(io.RawIOBase):
    """Memory as a file to read from; what is asked for is copied, never more than there is.

    >>> cursor = Cursor(memoryview(b"one line" + bytes([10]) + b"another"))
    >>> cursor.readline(), cursor.read(3), cursor.tell()
    (b'one line\\n', b'ano', 12)
    """

    def __init__(self, memory: memoryview) -> None:
        super().__init__()
        self._memory, self._at = memory, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._memory.nbytes}[whence]
        if place < 0:
            raise OSError(errno.EINVAL, f"there is no place {place}")
        self._at = place
        return place

    def read(self, size: int | None = -1) -> bytes:
        end = self._memory.nbytes if size is None or size < 0 else self._at + size
        found = bytes(self._memory[self._at : end])
        self._at += len(found)
        return found

    def readinto(self, buffer: object) -> int:
        target = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        found = self.read(target.nbytes)
        target[: len(found)] = found
        return len(found)

    def readline(self, size: int | None = -1) -> bytes:
        begin, length = self._at, _LINE
        while True:
            end = bytes(self._memory[begin : begin + length]).find(b"\n")
            if end >= 0 or begin + length >= self._memory.nbytes:
                line = self.read(end + 1 if end >= 0 else -1)
                break
            length *= 2
        if size is not None and 0 <= size < len(line):
            self._at, line = begin + size, line[:size]
        return line
