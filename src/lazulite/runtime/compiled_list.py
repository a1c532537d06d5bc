"""A launch list of the processor: words that one call of compiled code walks (`runtime/walk.py`).

Everything that a kernel needs is laid out once; a submission writes the slots that vary into a table, one
word each, and calls.  Where there is no compiled code, and for copies from other devices, the commands are
carried out one by one as on any device.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lazulite.base.settings import SETTINGS
from lazulite.runtime.fork_join import fork_join
from lazulite.runtime.launch_list import Command, Copy, Exec, LaunchList
from lazulite.runtime.walk import RECORD, walker
from lazulite.runtime.workers import WORKERS, Scratch, threads_for, usable_cores

if TYPE_CHECKING:
    from lazulite.runtime.device import Argument, Device

_THREADS = 3
"""Where in a record stand the four words that `threads_for` gives."""


class CompiledList(LaunchList):
    """Commands whose programs are machine code and share one scratch memory."""

    def __init__(
        self, device: Device, commands: Sequence[Command], slots: Sequence[Argument], varying: int, scratch: Scratch
    ) -> None:
        super().__init__(device, commands, slots, varying)
        self._scratch = scratch
        local = all(command.device is device for command in commands if isinstance(command, Copy))
        self._walk = walker() if local else None
        self.takes_addresses = self._walk is not None
        if self._walk is not None:
            self._lay_out()

    def _lay_out(self) -> None:
        words = ctypes.c_int64 * len(self.slots)
        self._table = words(*[_word(value) for value in self.slots])
        numbers = [_slots_of(command) for command in self.commands]
        places = (ctypes.c_int64 * sum(map(len, numbers)))(*[slot for each in numbers for slot in each])
        arguments = type(places)()
        records = (ctypes.c_int64 * (RECORD * len(self.commands)))()
        begin = 0
        for number, (command, each) in enumerate(zip(self.commands, numbers, strict=True)):
            record: list[ctypes.c_int64 | int] = [0] * RECORD
            record[1], record[8] = (ctypes.addressof(array) + 8 * begin for array in (arguments, places))
            record[7] = len(each)
            if isinstance(command, Exec):
                program: Any = command.program
                record[0], record[2] = program.address, program.parallel
            else:
                record[9] = self._memory(command.into).size
            records[RECORD * number : RECORD * (number + 1)] = record
            begin += len(each)
        self._extents = {number: records[RECORD * number + 2] for number in range(len(self.commands))}
        self._records, self._kept = records, (places, arguments)
        self._list = (ctypes.c_int64 * 5)(len(self.commands), ctypes.addressof(records), ctypes.addressof(self._table))
        self._pointer = ctypes.c_void_p(ctypes.addressof(self._list))
        self._parallel = any(extent > 1 for extent in self._extents.values())
        self._threads = self._moves = 0
        self._vary = partial(struct.Struct(f"{self.varying}Q").pack_into, self._table, 0)

    def rebind(self, slot: int, value: Argument) -> None:
        super().rebind(slot, value)
        if self._walk is not None:
            self._table[slot] = _word(value)

    def run(self, values: Sequence[Argument]) -> None:
        if self._walk is None:
            super().run(values)
            return
        self._vary(*values)
        threads, block = 1, None
        if self._parallel:
            code = fork_join()
            threads = 1 if code is None else SETTINGS.THREADS or usable_cores()
            if code is not None and threads > 1:
                block = WORKERS.assembled(code, threads)  # kept until the call returns
                self._list[3:] = [block.pointer.value or 0, code.run_address]
        if self._threads != threads or self._moves != self._scratch.moves:
            self._share(threads)
        self._walk(self._pointer)

    def _share(self, threads: int) -> None:
        """Tell every record how many threads there are, and where their scratch memory is."""
        self._scratch.reserve(self._scratch.size, threads)
        for number, extent in self._extents.items():
            begin = RECORD * number + _THREADS
            self._records[begin : begin + 4] = threads_for(extent, threads, self._scratch)
        self._threads, self._moves = threads, self._scratch.moves


def _slots_of(command: Command) -> tuple[int, ...]:
    return command.slots if isinstance(command, Exec) else (command.into, command.source)


def _word(value: Argument) -> int:
    return value if isinstance(value, int) else value.address
