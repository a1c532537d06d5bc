"""The processor: programs are machine code, called directly on host memory.

A launch packs its arguments into an array of words that the program keeps, and passes ctypes values
made beforehand, so that nothing is converted.  Parallel kernels are shared with the helper threads of
`runtime/workers.py`.  Launches that were recorded are walked by compiled code (`runtime/compiled_list.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from lazulite.base.settings import SETTINGS
from lazulite.emit.base import Binary
from lazulite.ir.target import Target, host
from lazulite.runtime.compiled_list import CompiledList
from lazulite.runtime.device import Argument, Program
from lazulite.runtime.devices.host import HostDevice
from lazulite.runtime.launch_list import Command, LaunchList
from lazulite.runtime.loader import load_object
from lazulite.runtime.workers import WORKERS, Job, Scratch, usable_cores


class CpuProgram(Program):
    """A kernel as machine code, with the words of its arguments."""

    def __init__(self, binary: Binary, scratch: Scratch) -> None:
        self.name, self.parallel = binary.name, binary.parallel
        self._scratch = scratch
        self._kernel = load_object(binary.code).function(binary.name)
        self.address = ctypes.cast(self._kernel, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
        """Where the machine code is."""
        self._set_count(0)

    def __call__(self, arguments: Sequence[Argument]) -> None:
        if len(arguments) != self._count:
            self._set_count(len(arguments))
        self._words[:] = [x if type(x) is int else x.address for x in arguments]  # type: ignore[union-attr]
        if self.parallel > 1:
            WORKERS.run(self._job)
        else:
            self._kernel(*self._whole)

    def _set_count(self, count: int) -> None:
        self._count = count
        self._words = (ctypes.c_int64 * count)()
        pointer = ctypes.c_void_p(ctypes.addressof(self._words))
        self._job = Job(self._kernel, pointer, self.parallel, self._scratch)
        self._whole = (pointer, ctypes.c_int64(0), ctypes.c_int64(1), self._scratch.pointer)


def this_machine() -> Target:
    """This machine, as the settings CPU_FEATURES, MATRIX_UNITS and THREADS let it be seen."""
    target = host(SETTINGS.CPU_FEATURES, SETTINGS.THREADS or usable_cores())
    return target if SETTINGS.MATRIX_UNITS else target.with_vectors_only


class CpuDevice(HostDevice):
    """The processor and its memory."""

    kind = "CPU"
    emitters = ("LLVM",)

    def __init__(self, name: str, emitter: str = "") -> None:
        super().__init__(name, emitter)
        self._scratch = Scratch()

    @property
    def target(self) -> Target:
        return this_machine()

    def load(self, binary: Binary) -> Program:
        if binary.kind != "elf":
            self.refuse("load", f"{binary.name} is {binary.kind}, not machine code")
        with self.queue.lock:  # no kernel runs while the scratch memory moves
            self._scratch.reserve(binary.scratch_bytes)
        return CpuProgram(binary, self._scratch)

    def launch_list(self, commands: Sequence[Command], slots: Sequence[Argument], varying: int) -> LaunchList:
        return CompiledList(self, commands, slots, varying, self._scratch)
