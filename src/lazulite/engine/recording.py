"""What a call of a function did: the runs of all its realizes, with where their memory and numbers come from.

A `Recording` watches the engine from `begin` to `finish` while a function runs.  It knows the storages of
the leaves (the tensors that the function can reach); everything else that a run reads was made by an
earlier run of the same call, or came from the host during the call, or is held where the function was not
seen to reach.  Numbers that are words of the random stream are noted by their distance from its position at
the begin.  The outcome is a `Trace`: plain data over sources, and equal for two calls that did the same.

Sources are dataclasses, as two of different kinds must never be equal.

Invariant: a trace names no storage, address or handle, so that another call can be carried out by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakSet

from lazulite.base.origin import Origin
from lazulite.engine import execute
from lazulite.engine.handles import Handle, live_handles, stored
from lazulite.engine.loaded import Loaded, Run
from lazulite.engine.outputs import Output, Work
from lazulite.engine.storage import Storage, next_number, storage_of, with_parts
from lazulite.engine.stream import STREAM
from lazulite.engine.variables import Variables
from lazulite.ir import ops
from lazulite.ir.size import OBSERVERS as SIZE_OBSERVERS
from lazulite.ir.size import Size
from lazulite.ir.uop import UOp
from lazulite.runtime.device import Device
from lazulite.runtime.registry import Device as devices
from lazulite.schedule.canonical import nodes_of


@dataclass(frozen=True, slots=True)
class Leaf:
    """The memory of a tensor that the function reaches, by number; those of parts follow the tensors."""

    number: int


@dataclass(frozen=True, slots=True)
class Made:
    """A fresh output of a run: number of the run, number of the buffer in its plan."""

    run: int
    buffer: int


@dataclass(frozen=True, slots=True)
class Given:
    """Memory that the host filled during the call, by number."""

    number: int


@dataclass(frozen=True, slots=True)
class Hidden:
    """Memory of a tensor held where the function was not seen to reach, by number."""

    number: int


Source = Leaf | Made | Given | Hidden


@dataclass(frozen=True, slots=True)
class Draw:
    """A position of the random stream, counted from where it stood when the call began."""

    offset: int


@dataclass(frozen=True, slots=True)
class Seed:
    """The key of the random stream."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The value of a variable of the call, by number."""

    number: int


Word = int | Draw | Seed | Bound


class Step(NamedTuple):
    """One run."""

    loaded: Loaded
    inputs: tuple[Source, ...]
    words: tuple[Word, ...]
    """The scalars."""
    writes: tuple[Source, ...]
    """Memory that is written in place."""


@dataclass(slots=True)
class Trace:
    """The steps of a call in order, and what its `Given` memory held before the first of them."""

    steps: list[Step] = field(default_factory=list)
    given: list[bytes] = field(default_factory=list)
    drawn: int = 0
    """How many positions of the random stream were taken."""
    leaf_devices: list[str] = field(default_factory=list)
    given_devices: list[str] = field(default_factory=list)
    hidden_devices: list[str] = field(default_factory=list)

    @property
    def key(self) -> tuple[object, ...]:
        return tuple(self.steps), tuple(self.given), self.drawn

    def device_of(self, source: Source) -> Device:
        """The device of memory that the call uses."""
        if isinstance(source, Made):
            loaded = self.steps[source.run].loaded
            return devices[loaded.plan.fresh[source.buffer - loaded.plan.inputs].device or loaded.device]
        found = {Leaf: self.leaf_devices, Given: self.given_devices, Hidden: self.hidden_devices}[type(source)]
        return devices[found[source.number]]


_NO_VARIABLES = Variables()


class Recording:
    """Watches one call; `leaves` are the storages that the function reaches, in memory all of them."""

    def __init__(self, leaves: Sequence[Storage], variables: Variables = _NO_VARIABLES) -> None:
        self.trace, self.variables = Trace(), variables
        self.looked_at: Size | None = None
        """A size of the call whose value was looked at, which may be another one in a replay."""
        self.hidden: list[Storage] = []
        self.values: list[UOp] = []
        """What the runs computed."""
        self.origins: dict[Source, Origin | None] = {}
        self._sources: dict[int, Source] = {}
        flat = with_parts(leaves)
        self.trace.leaf_devices = ["" if storage.parts else storage.home for storage in flat]
        self._kept: list[object] = []
        for number, storage in enumerate(flat):
            if not storage.parts:
                self._sources.setdefault(id(storage.buffer), Leaf(number))
        self._first = next_number()
        self._stream = STREAM.key, STREAM.position, STREAM.restarts
        self.handles_before = WeakSet(live_handles())

    def __enter__(self) -> Recording:
        execute.OBSERVERS.append(self._observe)
        SIZE_OBSERVERS.append(self._note_size)
        return self

    def __exit__(self, *failure: object) -> None:
        execute.OBSERVERS.remove(self._observe)
        SIZE_OBSERVERS.remove(self._note_size)

    @property
    def begun_at(self) -> tuple[int, int]:
        """The key and the position of the random stream when the call began."""
        return self._stream[:2]

    @property
    def reseeded(self) -> bool:
        """Whether the random stream was started anew."""
        return STREAM.restarts != self._stream[2]

    def let_go(self) -> None:
        """Hold no memory of the call any more, when nothing further is asked about its sources."""
        self._kept.clear()
        self._sources.clear()

    def finish(self) -> Trace:
        """Everything that was recorded."""
        self.trace.drawn = STREAM.position - self._stream[1]
        return self.trace

    def source_of(self, storage: Storage) -> Source:
        """Where the memory of a storage comes from."""
        known = self._sources.get(id(storage.buffer))
        if known is None:
            known = self._sources[id(storage.buffer)] = self._new_source(storage)
            self._kept.append(storage.buffer)
        return known

    def _new_source(self, storage: Storage) -> Source:
        if storage.number < self._first:
            self.hidden.append(storage)
            self.trace.hidden_devices.append(storage.home)
            return Hidden(len(self.hidden) - 1)
        buffer = execute.materialize(storage)
        self.trace.given.append(buffer.tobytes())
        self.trace.given_devices.append(storage.home)
        return Given(len(self.trace.given) - 1)

    def _observe(self, run: Run, work: Work) -> None:
        plan, number, outputs = run.loaded.plan, len(self.trace.steps), work.outputs
        storages = {id(storage.buffer): storage for storage in _storages(outputs)}
        inputs = tuple([self.source_of(storages[id(buffer)]) for buffer in run.buffers[: plan.inputs]])
        writes = tuple([self.source_of(output.target) for output in outputs if output.target is not None])
        bits = run.words[len(run.buffers) :]
        words = [self._word(kind, word) for kind, word in zip(plan.scalars, bits, strict=True)]  # type: ignore[arg-type]
        for slot, leaf in run.variables.items():
            place = self.variables.number_of(leaf)
            if place is not None:
                words[slot] = Bound(place)
        for output, made in zip(outputs, plan.outputs, strict=True):
            if output.target is None:
                source = Made(number, made)
                self._sources[id(run.buffers[made])] = source
                origin = output.value.origin
                self.origins[source] = origin if isinstance(origin, Origin) else None
        self._kept.append(run.buffers)
        self.values += [output.value for output in outputs] + [each.output.value for each in work.spread]
        self.trace.steps.append(Step(run.loaded, inputs, tuple(words), writes))

    def _note_size(self, size: Size) -> None:
        if self.variables.occur_in(size):
            self.looked_at = size

    def _word(self, kind: str, bits: int) -> Word:
        key, position, _ = self._stream
        if kind != "uint64":
            return bits
        return Seed() if bits == key else Draw(bits - position) if position <= bits < STREAM.position else bits


def _storages(outputs: Sequence[Output]) -> list[Storage]:
    """The storages that values read and write."""
    found = [output.target for output in outputs if output.target is not None]
    for node in nodes_of([output.value for output in outputs], stored):
        held = node if node.op is ops.BUFFER else stored(node)
        if held is not None:
            found.append(storage_of(held))
    return found


def made_handles(recording: Recording, known: set[Handle]) -> list[Handle]:
    """Handles that came into being during the call, are still held, and are not among the known ones."""
    return [handle for handle in live_handles() if handle not in recording.handles_before and handle not in known]


def contents_by_node(recording: Recording) -> dict[UOp, UOp]:
    """For each BUFFER that a run of the call filled and that is still known: the expression of its contents."""
    pairs = [(stored(value), value) for value in recording.values]
    return {node: value for node, value in pairs if node is not None}
