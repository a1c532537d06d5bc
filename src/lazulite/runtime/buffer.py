"""`Buffer`: a number of bytes on a device, allocated or not, or a part of another one.

A buffer is made without memory; `allocate` gets it, `free` returns it, and so does the end of the
buffer's life.  A view shares the memory of its base: writes through either are seen by both, and
freeing the base leaves its views without memory.  `handle` is None exactly while there is none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from lazulite.base.errors import DeviceError
from lazulite.base.origin import Origin
from lazulite.runtime.memory import DEFAULT_OPTIONS, Handle, Options

if TYPE_CHECKING:
    from lazulite.runtime.device import Device


class Buffer:
    """`nbytes` bytes on `device`; the label names them in the report of a full device."""

    handle: Handle | None = None  # on the class as well: the finalizer of a buffer half made looks for it
    borrowed = False
    """Whether the memory belongs to somebody else, who may read and change it at any time."""

    def __init__(
        self, device: Device, nbytes: int, *, options: Options = DEFAULT_OPTIONS, label: str | Origin = ""
    ) -> None:
        if nbytes < 0:
            raise DeviceError("Buffer", f"a size must not be negative, got {nbytes}")
        self.device, self.nbytes, self.options, self.label = device, nbytes, options, label

    @classmethod
    def wrap(cls, device: Device, data: memoryview, *, label: str | Origin = "") -> Buffer:
        """Memory of the host, writable and contiguous, used in place; it is never reused for anything else."""
        self = cls(device, data.nbytes, label=label)
        self.borrowed = True
        self.handle = device.wrap(data)
        return self

    @classmethod
    def external(cls, device: Device, handle: Handle, *, label: str | Origin = "") -> Buffer:
        """Memory that somebody else owns, as the handle describes it."""
        self = cls(device, handle.size, label=label)
        self.borrowed = handle.shared = True
        self.handle = handle
        return self

    def __repr__(self) -> str:
        state = "a view" if self.base is not self else "allocated" if self.handle is not None else "no memory"
        return f"<Buffer {self.device.name} {self.nbytes} bytes, {state}>"

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self.handle is not None and not finalizing():
            self.device.free(self.handle)

    # --- memory ---------------------------------------------------------------------------------

    @property
    def base(self) -> Buffer:
        """The buffer that owns the memory."""
        return self

    @property
    def is_allocated(self) -> bool:
        return self.handle is not None

    def allocate(self) -> Self:
        """Get memory, with any contents, unless there is some already."""
        if self.handle is None:
            self.handle = self.device.allocate(self.nbytes, self.options, self.label)
        return self

    def free(self) -> None:
        """Return the memory; all views are then without.  A view owns none: it only lets go."""
        handle, self.handle = self.handle, None
        if handle is not None:
            self.device.free(handle)

    def view(self, offset: int, nbytes: int) -> View:
        """The `nbytes` bytes from `offset`, sharing this memory."""
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes:
            raise DeviceError("view", f"bytes {offset} to {offset + nbytes} do not lie in {self.nbytes} bytes")
        return View(self, offset, nbytes)

    def require_handle(self, function: str) -> Handle:
        """The memory, or an error that names the public function which needs it."""
        if self.handle is None:
            raise DeviceError(
                function,
                f"a buffer of {self.nbytes} bytes on {self.device.name} has no memory",
                rule="It was never allocated, or it or its base was freed.",
            )
        return self.handle

    # --- contents -------------------------------------------------------------------------------

    def copy_in(self, data: memoryview) -> None:
        """Fill the memory from the host."""
        handle = self._sized("copy_in", data)
        if not self.nbytes:
            return
        with self.device.queue.lock:
            self.device.wait()
            self.device.copy_in(handle, data.cast("B"))

    def copy_out(self, data: memoryview) -> None:
        """Fill `data` from the memory."""
        handle = self._sized("copy_out", data)
        if not self.nbytes:
            return
        with self.device.queue.lock:
            self.device.wait()
            self.device.copy_out(handle, data.cast("B"))

    def map(self) -> memoryview:
        """The memory itself as bytes.  It stays valid after this buffer is gone, and is then not reused."""
        handle = self.require_handle("map")
        self.device.synchronize()
        self.base.require_handle("map").shared = True
        return self.device.map(handle)

    def tobytes(self) -> bytes:
        """A copy of the contents."""
        data = bytearray(self.nbytes)
        self.copy_out(memoryview(data))
        return bytes(data)

    def _sized(self, function: str, data: memoryview) -> Handle:
        handle = self.require_handle(function)
        self.device.require_size(function, handle, data.nbytes)
        if not data.c_contiguous:
            raise DeviceError(function, "the host's memory must be contiguous")
        return handle


class View(Buffer):
    """A part of another buffer.  It has memory while that has, from its first use on or from `allocate`."""

    def __init__(self, of: Buffer, offset: int, nbytes: int) -> None:
        super().__init__(of.device, nbytes, options=of.options, label=of.label)
        self._base = of.base
        self._offset: int = offset + (of._offset if isinstance(of, View) else 0)
        self._whole: Handle | None = None
        self._part: Handle | None = None

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """The base owns the memory."""

    @property
    def base(self) -> Buffer:
        return self._base

    @property
    def handle(self) -> Handle | None:  # type: ignore[override]
        whole = self._base.handle
        if whole is not self._whole:  # the base got memory, or lost it
            self._whole = whole
            self._part = None if whole is None else self.device.part(whole, self._offset, self.nbytes)
        return self._part

    def allocate(self) -> Self:
        if self.handle is None:  # the base has no memory, or this view was freed by itself
            self._base.allocate()
            self._whole = None
        return self

    def free(self) -> None:
        self._whole, self._part = self._base.handle, None
