"""Files as memory: mapped, so that only what is looked at is read.

A mapping that is `shared` is the file: what is written there is in the file, and what others write to
the file is seen.  Any other is a private copy that is made page by page where it is written.
"""

from __future__ import annotations

import mmap
import os
import stat

from lazulite.base.errors import FormatError, ShapeError
from lazulite.engine.storage import Storage
from lazulite.ir.dtype import DType, dtypes
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.registry import Device
from lazulite.tensor.host import from_bytes


def mapping(path: str | os.PathLike[str], function: str, shared: bool = False, alone: bool = False) -> memoryview:
    """The bytes of a regular file; anything else (a pipe, a device) could block or have no end.

    A file that has to be `alone` is refused where its path ends in a link or it has other names.
    """
    access = (os.O_RDWR if shared else os.O_RDONLY) | (os.O_NOFOLLOW if alone else 0)
    descriptor = os.open(path, access | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FormatError(function, "only regular files are read", file=str(path), field="the file", offset=0)
        if alone and status.st_nlink != 1:
            message = f"the file has {status.st_nlink} names, one is expected"
            raise FormatError(function, message, file=str(path), field="the file", offset=0)
        if not status.st_size:
            return memoryview(b"")
        return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY))
    finally:
        os.close(descriptor)


def from_file(path: os.PathLike[str], dtype: DType | None, device: str) -> Storage:
    """A storage that is a file, taken as elements of a type: writing there writes to the file, if that is permitted."""
    kind = dtypes.uint8 if dtype is None else dtype
    memory = mapping(path, "Tensor", shared=os.access(path, os.W_OK))
    if memory.nbytes % kind.itemsize:
        raise ShapeError(
            "Tensor", f"{path} has {memory.nbytes} bytes, which are no whole number of {kind.name}",
            hint="map it as bytes, and bitcast a part",
        )  # fmt: skip
    shape = (memory.nbytes // kind.itemsize,)
    if not memory.nbytes or not Device[device].maps:
        return from_bytes(memory, kind, shape, device)
    return Storage(kind, shape, device, Buffer.wrap(Device[device], memory, label=str(path)))
