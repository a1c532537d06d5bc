"""Accepts every program and computes nothing: for tests of the compiler, and to time it alone."""

from __future__ import annotations

from collections.abc import Sequence

from lazulite.emit.base import Binary
from lazulite.ir.target import Target
from lazulite.runtime.device import Argument, Capacity, Device, Program
from lazulite.runtime.devices.cpu import this_machine
from lazulite.runtime.memory import Handle, Options


class NullProgram(Program):
    """Does nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, arguments: Sequence[Argument]) -> None:
        """Return at once."""


class NullDevice(Device):
    """Memory is a size and nothing else."""

    kind = "NULL"
    emitters = ("LLVM",)

    def capacity(self) -> Capacity:
        return Capacity(1 << 48, 0)

    def acquire(self, size: int, options: Options) -> Handle:
        return Handle(size, options=options)

    def release(self, handle: Handle) -> None:
        """There is nothing to give back."""

    def part(self, handle: Handle, offset: int, size: int) -> Handle:
        return Handle(size, options=handle.options)

    def copy_in(self, handle: Handle, data: memoryview) -> None:
        self.require_size("copy_in", handle, data.nbytes)

    def copy_out(self, handle: Handle, data: memoryview) -> None:
        self.refuse("copy_out", "it keeps no data", hint="use PYTHON to see values")

    def wait(self) -> None:
        """Nothing is ever pending."""

    @property
    def target(self) -> Target:
        """Programs are compiled as for the processor, and then not run."""
        return this_machine()

    def load(self, binary: Binary) -> Program:
        return NullProgram(binary.name)
