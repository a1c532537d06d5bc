"""Commands that a device is given together, again and again: the launch list of a captured program.

A list has numbered slots, each memory or the bits of a scalar.  The first ones vary: `Queue.submit` gives
them anew each time.  The others stay until `rebind`.  Commands name their arguments by slot.  What a list
does is what the queue's `exec` and `copy` do for one command after the other; a device whose driver can
take many commands at once overrides `run`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lazulite.base.errors import DeviceError
from lazulite.runtime.memory import Handle

if TYPE_CHECKING:
    from lazulite.runtime.device import Argument, Device, Program


@dataclass(frozen=True, slots=True)
class Exec:
    """Run a program; `slots` are its arguments."""

    program: Program
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """Fill the memory in a slot from that in another one, which is on `device`."""

    into: int
    source: int
    device: Device


Command = Exec | Copy


class LaunchList:
    """Commands for one device, in order; the first `varying` of the slots are given with each submission."""

    def __init__(self, device: Device, commands: Sequence[Command], slots: Sequence[Argument], varying: int) -> None:
        self.device, self.commands, self.varying = device, tuple(commands), varying
        self.slots = list(slots)
        self.work = sum(isinstance(command, Exec) for command in commands), 0, 0
        """How many of the commands run a program, and the operations and bytes of these, where they are known."""
        self.takes_addresses = False
        """Whether `run` takes addresses in the place of memory."""

    def rebind(self, slot: int, value: Argument) -> None:
        """Put something else into a slot."""
        self.slots[slot] = value

    def run(self, values: Sequence[Argument]) -> None:
        """Carry out the commands; the caller holds the queue's lock."""
        self.slots[: self.varying] = values
        for command in self.commands:
            if isinstance(command, Exec):
                self._exec(command)
            else:
                self.device.copy_between(self._memory(command.into), command.device, self._memory(command.source))

    def _exec(self, command: Exec) -> None:
        try:
            command.program([self.slots[slot] for slot in command.slots])
        except Exception as error:
            error.add_note(f"{command.program.name} on {self.device.name}")
            raise

    def _memory(self, slot: int) -> Handle:
        value = self.slots[slot]
        if not isinstance(value, Handle):
            raise DeviceError("submit", f"slot {slot} has to be memory to copy, got {value!r}")
        return value
