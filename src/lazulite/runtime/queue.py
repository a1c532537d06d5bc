"""Commands to a device in order: `exec submit copy signal wait timestamp barrier`.

This queue runs each command on the submitting thread before the call returns, so an error reaches
the caller at once.  One lock orders the submissions of several threads.  An interrupt is delivered
between commands and leaves the queue usable.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lazulite.base.errors import DeviceError
from lazulite.runtime.counters import GlobalCounters
from lazulite.runtime.forking import renew_after_fork
from lazulite.runtime.memory import Handle

if TYPE_CHECKING:
    from lazulite.runtime.buffer import Buffer
    from lazulite.runtime.device import Device, Program
    from lazulite.runtime.launch_list import LaunchList

DEFAULT_TIMEOUT = 30.0


class Signal:
    """A number that only its writers raise, and that queues and threads wait for."""

    def __init__(self, value: int = 0) -> None:
        self.timestamp = 0
        """Nanoseconds, as the last `timestamp` command left them."""
        self._value = value
        self._changed = threading.Condition()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._changed = threading.Condition()

    @property
    def value(self) -> int:
        return self._value

    def set(self, value: int) -> None:
        """Change the number and wake who waits for it."""
        with self._changed:
            self._value = value
            self._changed.notify_all()

    def wait(self, value: int, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Return once the number is at least `value`; the time starts anew whenever the number changes."""
        with self._changed:
            while self._value < value:
                before = self._value
                if not self._changed.wait_for(lambda seen=before: self._value != seen, timeout):  # type: ignore[misc]
                    raise DeviceError(
                        "wait", f"no progress for {timeout:g} s: the signal is at {before}, awaited is {value}",
                        hint="look for a queue that waits for its own later command")  # fmt: skip


class Queue:
    """The commands of one device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.lock = threading.RLock()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self.lock = threading.RLock()

    def exec(self, program: Program, arguments: Sequence[Handle | int]) -> None:
        """Run a loaded program; see `Program.__call__` for the arguments."""
        with self.lock:
            try:
                program(arguments)
            except Exception as error:
                error.add_note(f"{program.name} on {self.device.name}")
                raise
            GlobalCounters.kernel_count += 1

    def submit(self, launches: LaunchList, values: Sequence[Handle | int]) -> None:
        """Carry out a launch list with these values in its slots that vary."""
        with self.lock:
            launches.run(values)
            programs, operations, nbytes = launches.work
            GlobalCounters.kernel_count += programs
            GlobalCounters.global_ops += operations
            GlobalCounters.global_mem += nbytes

    def copy(self, destination: Buffer, source: Buffer) -> None:
        """Fill `destination`, which is on this device, from memory of the same size on any device."""
        if source.device is not self.device:
            source.device.synchronize()
        with self.lock:
            into, out_of = destination.require_handle("copy"), source.require_handle("copy")
            self.device.require_size("copy", into, out_of.size)
            self.device.copy_between(into, source.device, out_of)

    def signal(self, signal: Signal, value: int) -> None:
        """Set the signal once everything before is done."""
        with self.lock:
            signal.set(value)

    def wait(self, signal: Signal, value: int, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Begin nothing further until the signal has the value."""
        with self.lock:
            signal.wait(value, timeout)

    def timestamp(self, signal: Signal) -> None:
        """Note the time at which everything before is done."""
        with self.lock:
            signal.timestamp = time.perf_counter_ns()

    def barrier(self) -> None:
        """What follows sees the memory as everything before leaves it."""
        with self.lock:
            self.device.wait()

    def synchronize(self) -> None:
        """Return when everything submitted is done."""
        self.barrier()
