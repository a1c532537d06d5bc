"""Operands that lie in memory as kernels want to read them: which inputs of a plan get panels, and what fills those.

`Layouts` takes the kernels of a plan one by one.  A kernel may want an input that no launch writes in another order
(`choose`); then it reads panels, which a launch of their own fills once for many runs.  Kernels that want an input in
the same order share its panels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from lazulite.ir.uop import UOp
from lazulite.schedule.kernels import Kernel, Memory


class Packed(Protocol):
    """A kernel that reads one operand from panels."""

    @property
    def kernel(self) -> UOp: ...
    @property
    def slot(self) -> int:
        """The slot of the operand."""

    @property
    def nbytes(self) -> int:
        """The size of the panels."""

    @property
    def filling(self) -> UOp:
        """The kernel that fills memory 0 with the panels of memory 1."""


Choose = Callable[[UOp, str, frozenset[int]], Packed | None]
"""How a kernel for a device wants an operand among those in these slots; None where it takes them as they are."""


@dataclass(slots=True)
class Layouts:
    """The panels of a plan whose buffers have numbers below `first`."""

    first: int
    still: frozenset[int]
    """The inputs that may have panels."""
    choose: Choose | None
    panels: dict[tuple[int, str, UOp], int] = field(default_factory=dict)
    """The buffer of the panels of an input on a device, as its filling makes them."""
    sizes: list[int] = field(default_factory=list)
    """The bytes of each of those buffers."""
    _known: dict[tuple[UOp, str, frozenset[int]], Packed | None] = field(default_factory=dict)

    def place(self, kernel: Kernel, device: str) -> dict[Memory, int]:
        """Let a kernel read from panels what it had better: the buffers that take the place of inputs."""
        slots = frozenset([slot for slot, a in enumerate(kernel.arguments) if a.memory in self.still])
        if self.choose is None or not slots:
            return {}
        key = kernel.sink, device, slots
        if key not in self._known:
            self._known[key] = self.choose(*key)
        packed = self._known[key]
        if packed is None:
            return {}
        kernel.sink, source = packed.kernel, kernel.arguments[packed.slot].memory
        assert isinstance(source, int)
        wanted = source, device, packed.filling
        if wanted not in self.panels:
            self.panels[wanted] = self.first + len(self.panels)
            self.sizes.append(packed.nbytes)
        return {source: self.panels[wanted]}


def still_inputs(inputs: Iterable[int], kernels: Iterable[Kernel]) -> frozenset[int]:
    """Those of the inputs that no kernel writes."""
    return frozenset(inputs).difference(memory for kernel in kernels for memory, _ in kernel.writes)
