"""Where everything lies that the commands of a trace name: one numbering for all launch lists of a replay.

First come the slots that vary: leaves, outputs that every replay allocates, words of the random stream, panels of
tensors.  Then what stays: intermediate memory, data from the host, numbers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from lazulite.base.origin import Origin
from lazulite.engine.execute import materialize
from lazulite.engine.loaded import Command as Launch
from lazulite.engine.recording import Bound, Draw, Given, Hidden, Leaf, Made, Seed, Source, Step, Trace, Word
from lazulite.engine.storage import Storage
from lazulite.ir.dtype import by_name
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.device import Argument, Device
from lazulite.runtime.launch_list import Command, Copy, Exec, LaunchList
from lazulite.runtime.memory import Handle
from lazulite.runtime.registry import Device as devices


class Fresh(NamedTuple):
    """Memory that every replay allocates anew."""

    device: Device
    nbytes: int
    label: Origin | None


@dataclass(frozen=True, slots=True)
class Temporary:
    """A part of an arena, which is known by the name that plans give its device and by that device."""

    arena: tuple[str, str]
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Panels:
    """What a filling, known by its key, makes of the memory of a source."""

    source: Source
    key: str


class Slots:
    """The slots of a recorded call; memory in `renewed` is allocated anew by every replay."""

    def __init__(
        self,
        trace: Trace,
        hidden: Sequence[Storage],
        origins: Mapping[Source, Origin | None],
        renewed: Iterable[Source],
    ) -> None:
        """`hidden` are the storages of the `Hidden` sources, `origins` the lines where outputs were made."""
        self._trace, self._hidden, self._origins = trace, hidden, origins
        self.values: list[Argument] = []
        """What is in each slot; in those that vary, something of the right size."""
        self.kept: list[Buffer] = []
        """The memory of the slots that stay."""
        self._numbers: dict[Hashable, int] = {}
        self.leaves = [s for s in _inputs(self._trace) if isinstance(s, Leaf)]
        self.fresh = {source: self._fresh(source) for source in dict.fromkeys(renewed)}
        words = _words(self._trace)
        self.draws = [word for word in words if isinstance(word, Draw | Seed)]
        self.bound = [word for word in words if isinstance(word, Bound)]
        for leaf in self.leaves:
            self._enter(leaf, 0)
        for source, fresh in self.fresh.items():
            self._enter(source, Handle(fresh.nbytes))
        for word in (*self.draws, *self.bound):
            self._enter(word, 0)
        self._written = {source for step in trace.steps for source in step.writes}
        self.panels = {
            Panels(source, filling.key): filling
            for step in trace.steps
            for filling in step.loaded.fillings
            if isinstance(source := step.inputs[filling.source], Leaf | Hidden) and source not in self._written
        }
        """Panels that stay filled from replay to replay."""
        for panels in self.panels:
            self._enter(panels, 0)
        self.varying = len(self.values)
        self._arenas = self._allocated_arenas()

    def launch_lists(self) -> list[LaunchList]:
        """The commands, in a list for each stretch on one device."""
        commands = self._fillings()
        for number, step in enumerate(self._trace.steps):
            panels = [Panels(step.inputs[filling.source], filling.key) for filling in step.loaded.fillings]
            commands += self._refillings(step, panels)
            places = [*step.inputs, *self._own_memory(number, step), *panels, *step.words]
            numbers = [self._number(place) for place in places]
            for launch in step.loaded.commands:
                work = launch.launch.operations, launch.launch.bytes_touched
                commands.append((launch.queue.device, self._command(launch, numbers, step), work))
        found = []
        for device, group in groupby(commands, lambda each: each[0]):
            own = list(group)
            launches = device.launch_list([command for _, command, _ in own], self.values, self.varying)
            launches.work = launches.work[0], sum(work[0] for *_, work in own), sum(work[1] for *_, work in own)
            found.append(launches)
        return found

    def _refillings(self, step: Step, panels: Sequence[Panels]) -> list[tuple[Device, Command, tuple[int, int]]]:
        """What fills, before a step, the panels of memory that has other contents in each replay."""
        commands: list[tuple[Device, Command, tuple[int, int]]] = []
        for each, filling in zip(panels, step.loaded.fillings, strict=True):
            if each not in self.panels:
                device = filling.queue.device
                if each not in self._numbers:
                    self._enter(each, self._allocated(device, filling.nbytes))
                fill = Exec(filling.program, (self._numbers[each], self._number(each.source)))
                commands.append((device, fill, filling.work))
        return commands

    def _command(self, launch: Launch, numbers: Sequence[int], step: Step) -> Command:
        if launch.program is not None:
            return Exec(launch.program, tuple([numbers[word] for word in launch.words]))
        into, source = launch.launch.buffers
        return Copy(numbers[into], numbers[source], self._device_of(step, source))

    def _device_of(self, step: Step, buffer: int) -> Device:
        """The device of a buffer of a step's plan."""
        plan = step.loaded.plan
        if buffer < plan.inputs:
            return self._trace.device_of(step.inputs[buffer])
        buffer -= plan.inputs
        own = plan.fresh[buffer] if buffer < len(plan.fresh) else plan.temporaries[buffer - len(plan.fresh)]
        return devices[own.device or step.loaded.device]

    def _fillings(self) -> list[tuple[Device, Command, tuple[int, int]]]:
        """What gives data of the host to memory that is written or handed out: the data itself stays."""
        commands: list[tuple[Device, Command, tuple[int, int]]] = []
        for number, data in enumerate(self._trace.given):
            source, device = Given(number), self._trace.device_of(Given(number))
            pristine = self._filled(device, data)
            if source in self.fresh or source in self._written:
                commands.append((device, Copy(self._number(source), self._enter((source,), pristine), device), (0, 0)))
            else:
                self._enter(source, pristine)
        return commands

    # --- numbers of slots -----------------------------------------------------------------------

    def _number(self, place: Source | Word | Temporary | Panels) -> int:
        """The slot of a place, made where there is none yet."""
        known = self._numbers.get(place)
        if known is not None:
            return known
        if isinstance(place, int):
            return self._enter(place, place)
        if isinstance(place, Hidden):
            return self._enter(place, materialize(self._hidden[place.number]).require_handle("capture"))
        if isinstance(place, Made | Given):
            fresh = self._fresh(place)
            return self._enter(place, self._allocated(fresh.device, fresh.nbytes))
        if not isinstance(place, Temporary):
            raise TypeError(f"{place} has a slot of its own")
        view = self._arenas[place.arena].view(place.offset, place.nbytes)
        self.kept.append(view)
        return self._enter(place, view.require_handle("capture"))

    def _enter(self, place: Hashable, value: Argument) -> int:
        number = self._numbers[place] = len(self.values)
        self.values.append(value)
        return number

    def _own_memory(self, number: int, step: Step) -> list[Made | Temporary]:
        """The fresh outputs and the temporaries of a step, in the order of its plan."""
        plan = step.loaded.plan
        made = [Made(number, plan.inputs + position) for position in range(len(plan.fresh))]
        default = step.loaded.device
        own = [Temporary((t.device, t.device or default), t.offset, t.nbytes) for t in plan.temporaries]
        return [*made, *own]

    # --- memory ---------------------------------------------------------------------------------

    def _fresh(self, source: Source) -> Fresh:
        if isinstance(source, Given):
            return Fresh(self._trace.device_of(source), len(self._trace.given[source.number]), None)
        if not isinstance(source, Made):
            raise TypeError(f"{source} is not made by the call")
        loaded = self._trace.steps[source.run].loaded
        fresh = loaded.plan.fresh[source.buffer - loaded.plan.inputs]
        nbytes = math.prod(fresh.shape) * by_name(fresh.dtype).itemsize
        return Fresh(devices[fresh.device or loaded.device], nbytes, self._origins.get(source))

    def _allocated(self, device: Device, nbytes: int) -> Handle:
        buffer = Buffer(device, nbytes, label="memory of a captured function").allocate()
        self.kept.append(buffer)
        return buffer.require_handle("capture")

    def _filled(self, device: Device, data: bytes) -> Handle:
        handle = self._allocated(device, len(data))
        self.kept[-1].copy_in(memoryview(data))
        return handle

    def _allocated_arenas(self) -> dict[tuple[str, str], Buffer]:
        """Arenas large enough for every step: no step needs that of another."""
        sizes: dict[tuple[str, str], int] = {}
        for step in self._trace.steps:
            for name, size in step.loaded.plan.arena_sizes().items():
                arena = name, name or step.loaded.device
                sizes[arena] = max(sizes.get(arena, 0), size)
        return {
            arena: Buffer(devices[arena[1]], size, label="the arena of a captured function").allocate()
            for arena, size in sizes.items()
        }


def _inputs(trace: Trace) -> list[Source]:
    return list(dict.fromkeys(source for step in trace.steps for source in step.inputs))


def _words(trace: Trace) -> list[Word]:
    return list(dict.fromkeys(word for step in trace.steps for word in step.words))
