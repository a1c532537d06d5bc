"""A file that tensors are read from: mapped into memory, every access checked against its size.

A `Source` gives copies of small parts (headers) and tensors over large ones.  A tensor over a part uses
the mapping in place, so only what is read of it comes from the disk.  The mapping is private: writing
to such a tensor changes memory and never the file.  Whatever does not fit is a `FormatError` that names
the file, the field and the offset; sizes are compared as Python integers, which do not wrap.
"""

from __future__ import annotations

import mmap
import os
import stat
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, NoReturn, cast

from lazulite.base.errors import FormatError
from lazulite.engine.storage import Storage
from lazulite.ir.dtype import DType
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.registry import Device
from lazulite.tensor.host import from_bytes
from lazulite.tensor.tensor import Tensor


class Source:
    """One file, open for reading; `function` is the public function that errors name."""

    def __init__(self, path: str | os.PathLike[str], function: str = "load") -> None:
        self.path, self.function = Path(path), function
        with open(self.path, "rb", opener=_open_regular) as file:
            self.size = os.fstat(file.fileno()).st_size
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if self.size else None
        self.memory = memoryview(b"" if self._map is None else self._map)

    def fail(self, message: str, field: str = "", offset: int | None = None, hint: str = "") -> NoReturn:
        """Raise because the file is not what its format says."""
        raise FormatError(self.function, message, file=str(self.path), field=field, offset=offset, hint=hint)

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

    def stream(self, offset: int) -> IO[bytes]:
        """The file from an offset on, as what reads and tells its place; a second one moves the first."""
        if self._map is None:
            return BytesIO()
        self._map.seek(offset)
        return cast("IO[bytes]", self._map)

    def starts_with(self, magic: bytes) -> bool:
        """Whether these are the first bytes."""
        return bytes(self.memory[: len(magic)]) == magic

    def tensor(
        self, offset: int, dtype: DType, shape: tuple[int, ...], field: str, device: str | None = None
    ) -> Tensor:
        """The elements from an offset as a tensor, which reads them when they are needed."""
        length = prod(shape) * dtype.itemsize
        self.require(offset, length, field)
        name = Device.DEFAULT if device is None else Device.canonical(device)
        part = self.memory[offset : offset + length]
        if not length or offset % dtype.itemsize or not Device[name].maps:
            return Tensor._with_storage(from_bytes(bytes(part), dtype, shape, name))
        return Tensor._with_storage(Storage(dtype, shape, name, Buffer.wrap(Device[name], part, label=field)))


def _open_regular(path: str, flags: int) -> int:
    """Open a regular file; anything else (a pipe, a device) could block or have no end."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FormatError("load", "only regular files are read", file=str(path))
    return descriptor
