"""What the process has done so far, for tests and for people: `GlobalCounters`."""

from __future__ import annotations

from lazulite.ir.uop import live_nodes
from lazulite.runtime.allocator import memory_in_use


class Counters:
    """Sums since the start or the last `reset`, and two numbers that are measured when read."""

    kernel_count: int
    """Programs run."""
    global_ops: int
    """Arithmetic operations of these programs, by the compiler's estimate."""
    global_mem: int
    """Bytes that they read and wrote, by the compiler's estimate."""
    programs_compiled: int
    """Binaries made by a code generator."""
    programs_from_disk: int
    """Binaries found in the cache on disk."""
    schedules_built: int
    """Graphs that were scheduled; one that is known already is not."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin all sums at 0."""
        self.kernel_count = self.global_ops = self.global_mem = 0
        self.programs_compiled = self.programs_from_disk = self.schedules_built = 0

    @property
    def mem_used(self) -> int:
        """Bytes allocated now, on all devices."""
        return memory_in_use()

    @property
    def live_nodes(self) -> int:
        """Graph nodes that exist now."""
        return live_nodes()

    def __repr__(self) -> str:
        fields = [*vars(self).items(), ("mem_used", self.mem_used), ("live_nodes", self.live_nodes)]
        return f"<GlobalCounters {' '.join(f'{name}={value}' for name, value in fields)}>"


GlobalCounters = Counters()
