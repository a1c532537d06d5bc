"""Plans that are ready to run: what no run changes is worked out once and kept.

`Loaded` is a plan with its programs, devices and sizes at hand.  `bind` gives it the memory and the
scalars of one run; `issue` hands one command of it to its device.  Invariant: what can fail for lack of a program or
of memory has failed when `bind` returns, before the first launch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from lazulite.base.errors import OutOfMemoryError
from lazulite.base.origin import Origin
from lazulite.ir.dtype import Scalar, by_name
from lazulite.ir.uop import UOp
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.counters import GlobalCounters
from lazulite.runtime.device import Argument, Program
from lazulite.runtime.queue import Queue
from lazulite.runtime.registry import Device
from lazulite.schedule.plan import Launch, Panels, Plan


@dataclass(frozen=True, slots=True)
class Command:
    """A launch with the queue and the program that it is for."""

    launch: Launch
    queue: Queue
    program: Program | None
    """None for a copy."""
    words: tuple[int, ...]
    """Where in `Run.words` each argument of the program stands."""


@dataclass(frozen=True, slots=True)
class Filling:
    """What fills the panels of an input (`schedule/plan.py`)."""

    key: str
    """Equal for fillings that make the same of the same contents."""
    source: int
    nbytes: int
    queue: Queue
    program: Program
    work: tuple[int, int]
    """Operations and bytes."""


class Loaded:
    """A plan whose launches that name no device are on `device`; `program_for(kernel, device)` loads a program."""

    def __init__(self, plan: Plan, device: str, program_for: Callable[[str, str], Program]) -> None:
        self.plan, self.device = plan, device
        self.encoders = [by_name(name).to_bits for name in plan.scalars]
        self.fresh = [
            (Device[f.device or device], math.prod(f.shape) * by_name(f.dtype).itemsize) for f in plan.fresh
        ]  # fmt: skip
        sizes = plan.arena_sizes()
        self.arenas = [(Device[name or device], size) for name, size in sizes.items()]
        arena_of = {name: number for number, name in enumerate(sizes)}
        self.temporaries = [(arena_of[t.device], t.offset, t.nbytes) for t in plan.temporaries]
        self.commands = [self._command(launch, program_for) for launch in plan.launches]
        self.fillings = [self._filling(panels, program_for) for panels in plan.panels]

    def _command(self, launch: Launch, program_for: Callable[[str, str], Program]) -> Command:
        device = launch.device or self.device
        queue = Device[device].queue
        if not launch.kernel:
            return Command(launch, queue, None, ())
        first_scalar = self.plan.memories
        pairs = zip(launch.buffers, launch.scalars, strict=True)
        words = tuple([first_scalar + scalar if buffer < 0 else buffer for buffer, scalar in pairs])
        return Command(launch, queue, program_for(launch.kernel, device), words)

    def _filling(self, panels: Panels, program_for: Callable[[str, str], Program]) -> Filling:
        launch, device = panels.filling, panels.filling.device or self.device
        program, work = program_for(launch.kernel, device), (launch.operations, launch.bytes_touched)
        return Filling(launch.kernel, panels.source, panels.nbytes, Device[device].queue, program, work)


@dataclass(slots=True)
class Run:
    """A plan with everything it needs at hand."""

    loaded: Loaded
    buffers: list[Buffer]
    words: list[Argument]
    """The memory of each buffer, then the bits of each scalar."""
    variables: Mapping[int, UOp]
    """The bound variable whose value a scalar is."""


def bind(
    loaded: Loaded, inputs: Sequence[Buffer], panels: Sequence[Buffer], scalars: Sequence[Scalar],
    made: Sequence[object], variables: Mapping[int, UOp] = MappingProxyType({}),
) -> Run:  # fmt: skip
    """The plan over this memory; `made` are the origins of its fresh outputs, for the report of a full device, and
    `variables` the bound variables that some of the scalars are the values of."""
    buffers, line = [*inputs], None
    try:
        for (device, nbytes), origin in zip(loaded.fresh, made, strict=True):
            line = origin if isinstance(origin, Origin) else None
            buffers.append(Buffer(device, nbytes, label=line or "").allocate())
    except OutOfMemoryError as error:
        error.add_origin(line)
        raise
    if loaded.temporaries:
        arenas = [Buffer(device, size).allocate() for device, size in loaded.arenas]
        buffers += [arenas[arena].view(offset, nbytes) for arena, offset, nbytes in loaded.temporaries]
    buffers += panels
    words: list[Argument] = [buffer.handle or buffer.require_handle("realize") for buffer in buffers]
    words += [encode(value) for encode, value in zip(loaded.encoders, scalars, strict=True)]
    return Run(loaded, buffers, words, variables)


def issue(run: Run, command: Command) -> None:
    """Hand a command of a run to its device."""
    launch, words = command.launch, run.words
    if command.program is None:
        into, source = launch.buffers
        command.queue.copy(run.buffers[into], run.buffers[source])
    else:
        command.queue.exec(command.program, [words[number] for number in command.words])
    GlobalCounters.global_ops += launch.operations
    GlobalCounters.global_mem += launch.bytes_touched
