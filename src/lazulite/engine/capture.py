"""Calls of a function as recordings, and recordings as replays.

`settle` brings a leaf into memory.  `record` runs a function while the engine is watched, realizes what it
leaves behind, and tells what it did as a `Call`: data that is equal for two calls that did the same.
`Call.replay` makes it executable.  What a replay would not do as the call did is an `Unrepeatable`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lazulite.engine.captured import Captured
from lazulite.engine.execute import materialize, realize
from lazulite.engine.handles import Handle, lazy_writes, pending_writes
from lazulite.engine.past import Past
from lazulite.engine.recording import Leaf, Recording, Step, made_handles
from lazulite.engine.results import Result, Same, Unrepeatable, describe
from lazulite.engine.storage import Storage, owners, storage_of
from lazulite.engine.variables import Variables
from lazulite.engine.views import ancestors
from lazulite.ir import ops
from lazulite.ir.uop import UOp, toposort


def settle(handle: Handle, device: str | tuple[str, ...]) -> Storage:
    """The storage with the contents of a handle, in memory."""
    if handle.pending:
        realize([handle])
    if handle.value.op is not ops.BUFFER:
        value = handle.value
        constant = next(node for node in toposort(value) if node.op is ops.CONST)
        handle.storage = Storage(value.dtype, value.shape, _first(device), fill=constant.value)
        handle.value = handle.storage.node()
    storage = storage_of(handle.value)
    storage.require_contents("jit")
    if not storage.parts:
        materialize(storage)
    return storage


def _first(device: str | tuple[str, ...]) -> str:
    """The device; of several the first."""
    return device if isinstance(device, str) else device[0]


@dataclass(slots=True)
class Call:
    """What a call did."""

    recording: Recording
    results: tuple[Same | Result, ...]
    values: list[UOp]
    before: list[UOp]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for calls that did the same."""
        hidden = tuple([storage.number for storage in self.recording.hidden])
        return self.recording.trace.key, self.results, hidden

    def captured(self) -> Captured:
        """The call, ready to be carried out again."""
        remembers = any(isinstance(result, Result) and result.remembers for result in self.results)
        past = Past(self.recording, self.before, self.values) if remembers else None
        recording = self.recording
        recording.let_go()  # its intermediates become those of the replays
        return Captured(recording.trace, self.results, hidden=recording.hidden, origins=recording.origins, past=past)


def record(
    run: Callable[[], Sequence[Handle]], leaves: Sequence[Handle], storages: Sequence[Storage], variables: Variables
) -> Call:
    """Run a function of the leaves, which are settled in the storages; it gives the handles that it leaves behind.

    Unrepeatable where a replay would not do the same; what the function did is then done all the same.
    """
    realize([*pending_writes(), *lazy_writes()])  # of the program before the call
    wanted, before = [leaf.requires_grad for leaf in leaves], [storage.node() for storage in storages]
    with Recording(storages, variables) as recording:
        results = run()
        realize([*results, *leaves, *pending_writes()])
    trace = recording.finish()
    if recording.reseeded:
        raise Unrepeatable("it seeds the random numbers")
    if recording.looked_at is not None:
        raise Unrepeatable(f"it goes by the value of {recording.looked_at}")
    for leaf, storage in zip(leaves, storages, strict=True):
        if storage_of(leaf.value) is not storage:
            raise Unrepeatable("it gives a tensor other memory")
    if wanted != [leaf.requires_grad for leaf in leaves]:
        raise Unrepeatable("it changes requires_grad of a tensor")
    _refuse_views(leaves, storages, trace.steps)
    _refuse_unseen(recording, {*results, *leaves})
    return Call(recording, describe(recording, leaves, results), [handle.value for handle in results], before)


def _refuse_views(leaves: Sequence[Handle], storages: Sequence[Storage], steps: Sequence[Step]) -> None:
    """A write to a view is one to what it is a view of, and another view may be of something else."""
    written = {source.number for step in steps for source in step.writes if isinstance(source, Leaf)}
    for number in owners(written, storages):
        if ancestors(leaves[number]):
            raise Unrepeatable("it writes to a view")


def _refuse_unseen(recording: Recording, known: set[Handle]) -> None:
    """Tensors that the call made must be among its results, unless nobody holds them."""
    if made_handles(recording, known):
        gc.collect()
        if made_handles(recording, known):
            raise Unrepeatable("it keeps a tensor where a replay cannot put another one")
