"""The contract of a device: memory, copies, programs and a queue of commands.

A device says how memory is had from the system (`acquire`, `release`), how bytes get in and out
(`copy_in`, `copy_out`, `map`) and how a compiled `Binary` becomes a `Program` (`load`).  From these
this class makes the rest: `allocate` and `free` through free lists, and the queue.  What a device
cannot do raises `DeviceError` naming the device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn

from lazulite.base.errors import DeviceError
from lazulite.base.origin import Origin
from lazulite.emit.base import Binary
from lazulite.ir.target import Target
from lazulite.runtime.allocator import Allocator
from lazulite.runtime.launch_list import Command, LaunchList
from lazulite.runtime.memory import DEFAULT_OPTIONS, Handle, Options
from lazulite.runtime.queue import Queue

Argument = Handle | int


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much memory a device gives out, and how much freed memory it may keep for reuse."""

    limit: int
    cached: int


class Program(ABC):
    """A binary that a device has loaded.  Its queue calls it, one call at a time."""

    name: str
    binary: Binary
    """What it was loaded from."""

    @abstractmethod
    def __call__(self, arguments: Sequence[Argument]) -> None:
        """Run once; position is slot: a `Handle` for memory, the bits of a scalar as an integer."""


class Device(ABC):
    """One device, opened.  `name` is its canonical name, `emitter` the code generator it was asked for."""

    kind: ClassVar[str]
    emitters: ClassVar[tuple[str, ...]]
    """The code generators whose binaries it loads, the default one first."""

    def __init__(self, name: str, emitter: str = "") -> None:
        self.name = name
        self.emitter = emitter or (self.emitters[0] if self.emitters else "")
        capacity = self.capacity()
        self.allocator = Allocator(name, self.acquire, self.release, capacity.limit, capacity.cached)
        self.queue = Queue(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    # --- what a device implements ---------------------------------------------------------------

    @abstractmethod
    def capacity(self) -> Capacity:
        """How much memory there is."""

    @abstractmethod
    def acquire(self, size: int, options: Options) -> Handle:
        """Fresh memory from the system, or MemoryError."""

    @abstractmethod
    def release(self, handle: Handle) -> None:
        """Give memory from `acquire` back to the system."""

    @abstractmethod
    def part(self, handle: Handle, offset: int, size: int) -> Handle:
        """The `size` bytes from `offset`, sharing the memory of `handle`."""

    @abstractmethod
    def copy_in(self, handle: Handle, data: memoryview) -> None:
        """Fill the memory from the host; sizes are equal."""

    @abstractmethod
    def copy_out(self, handle: Handle, data: memoryview) -> None:
        """Fill `data` from the memory; sizes are equal."""

    @abstractmethod
    def load(self, binary: Binary) -> Program:
        """Make a binary callable."""

    @abstractmethod
    def wait(self) -> None:
        """Return when everything submitted is done."""

    # --- what a device may add ----------------------------------------------------------------

    def map(self, handle: Handle) -> memoryview:
        """The memory itself as bytes on the host, without a copy."""
        self.refuse("map", "its memory is not reachable from the host", hint="copy_out")

    def wrap(self, data: memoryview) -> Handle:
        """Memory of the host as memory of this device, without a copy."""
        self.refuse("wrap", "it cannot use memory of the host", hint="copy_in")

    def launch_list(self, commands: Sequence[Command], slots: Sequence[Argument], varying: int) -> LaunchList:
        """Commands for `Queue.submit`; the first `varying` of the slots are given anew with each submission."""
        return LaunchList(self, commands, slots, varying)

    @property
    def target(self) -> Target | None:
        """The machine that code is generated for; None where programs are not machine code."""
        return None

    # --- what follows ---------------------------------------------------------------------------

    def allocate(self, size: int, options: Options = DEFAULT_OPTIONS, label: str | Origin = "") -> Handle:
        """Memory of at least `size` bytes with any contents; the label names it when memory runs out."""
        return self.allocator.allocate(size, options, label)

    def free(self, handle: Handle) -> None:
        """Let the memory be used again.  Never raises, and may be called from a finalizer."""
        self.allocator.free(handle)

    def synchronize(self) -> None:
        """Wait for everything submitted; an error of an earlier command is raised here at the latest."""
        self.queue.synchronize()

    def copy_between(self, destination: Handle, other: Device, source: Handle) -> None:
        """Fill `destination` from the memory of any device, directly where the host reaches one of them."""
        if self.maps and self is not other:
            other.copy_out(source, self.map(destination))
        elif other.maps:
            self.copy_in(destination, other.map(source))
        else:
            staging = memoryview(bytearray(source.size))
            other.copy_out(source, staging)
            self.copy_in(destination, staging)

    @property
    def maps(self) -> bool:
        """Whether `map` works."""
        return type(self).map is not Device.map

    def require_size(self, function: str, handle: Handle, size: int) -> None:
        """Raise unless the memory has exactly this size."""
        if handle.size != size:
            raise DeviceError(function, f"{self.name} memory has {handle.size} bytes, the host's side {size}")

    def refuse(self, function: str, reason: str, hint: str = "") -> NoReturn:
        """Raise because this device never does that."""
        raise DeviceError(function, f"{self.name} cannot do this: {reason}", hint=hint)
