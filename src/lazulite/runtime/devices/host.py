"""What devices have in common whose memory is the host's: a handle's owner is a memoryview of its bytes.

The memory lives as long as some view of it, so giving it back is letting go of it.
"""

from __future__ import annotations

import ctypes
import mmap
import os

from lazulite.base.errors import DeviceError
from lazulite.runtime.device import Capacity, Device
from lazulite.runtime.memory import Handle, Options

_MAPPED_FROM = 128 << 10
_HUGE_FROM = 4 << 20
_HUGE_PAGE = 2 << 20
_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a control group of version 2 or 1 says how much memory its processes may have."""


class HostDevice(Device):
    """A device whose memory is the host's.

    Small memory comes from the interpreter, larger from private anonymous mappings, from 4 MB on with
    huge pages.
    """

    def capacity(self) -> Capacity:
        limit = memory_limit()
        return Capacity(limit, limit // 4)

    def acquire(self, size: int, options: Options) -> Handle:
        huge = size >= _HUGE_FROM
        alignment = max(options.alignment, _HUGE_PAGE if huge else 1)
        memory: bytearray | mmap.mmap
        if size < _MAPPED_FROM:
            memory = bytearray(size + alignment)
        else:
            length = size + (alignment if alignment > mmap.PAGESIZE else 0)
            memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if huge:
                memory.madvise(mmap.MADV_HUGEPAGE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        offset = -address % alignment
        return Handle(size, address + offset, memoryview(memory)[offset : offset + size], options)

    def release(self, handle: Handle) -> None:
        handle.owner = None

    def part(self, handle: Handle, offset: int, size: int) -> Handle:
        return Handle(size, handle.address + offset, self.map(handle)[offset : offset + size], handle.options)

    def copy_in(self, handle: Handle, data: memoryview) -> None:
        self.map(handle)[:] = data

    def copy_out(self, handle: Handle, data: memoryview) -> None:
        data[:] = self.map(handle)

    def map(self, handle: Handle) -> memoryview:
        if not isinstance(handle.owner, memoryview):
            raise DeviceError("map", f"the memory of {handle!r} was freed")
        return handle.owner

    def wait(self) -> None:
        """Nothing is ever pending."""

    def wrap(self, data: memoryview) -> Handle:
        if data.readonly or not data.c_contiguous:
            raise DeviceError("wrap", "memory used in place must be writable and contiguous", hint="copy it in")
        if not data.nbytes:
            return Handle(0, 0, memoryview(bytearray()), shared=True)
        return Handle(data.nbytes, ctypes.addressof(ctypes.c_char.from_buffer(data)), data.cast("B"), shared=True)


def external_memory(address: int, size: int, owner: object = None) -> Handle:
    """Host memory at an address, for `Buffer.external`; `owner` keeps it alive."""
    array = (ctypes.c_uint8 * size).from_address(address)
    array.owner = owner  # type: ignore[attr-defined]
    return Handle(size, address, memoryview(array).cast("B"), shared=True)


def memory_limit() -> int:
    """Bytes that this process may use: the machine's, or less where a control group says so."""
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _GROUP_LIMITS:
        try:
            with open(path, encoding="ascii") as file:
                text = file.read().strip()
        except OSError:  # no control group of this version
            continue
        if text.isdecimal():  # else it says "max"
            limit = min(limit, int(text))
    return limit
