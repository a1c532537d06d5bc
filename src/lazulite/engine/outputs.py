"""What a realize has to compute: values with the handles that wait for them, and writes of storages.

`outputs_of` gathers the values of handles; where they contain hand-written stores and calls, those
become outputs of their own, so that the plan sees pure values and their targets only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lazulite.base.errors import EffectError
from lazulite.engine.effects import elaborated, note_executed
from lazulite.engine.handles import Handle
from lazulite.engine.storage import Storage, is_current, storage_of
from lazulite.ir import ops
from lazulite.ir.calls import device_of
from lazulite.ir.placement import Placement
from lazulite.ir.uop import UOp, toposort

if TYPE_CHECKING:
    from lazulite.schedule.effects import Elaboration


@dataclass(slots=True)
class Output:
    """A value to store, with the handles that will then have it; the first of them owns the storage."""

    value: UOp
    target: Storage | None
    handles: list[Handle]
    keeps_history: bool = False
    """Whether gradients may be asked for all the same, as nobody asked for the value to be realized."""


@dataclass(slots=True)
class Spread:
    """An output on several devices, and the outputs that compute its parts."""

    output: Output
    parts: list[Output]
    where: Placement


@dataclass(slots=True)
class Work:
    """Everything that one realize computes, and what is known once it is done."""

    outputs: list[Output]
    shown: list[tuple[list[Handle], UOp]] = field(default_factory=list)
    """Handles whose value turned out to be the contents of a storage that nothing writes."""
    effects: Elaboration | None = None
    spread: list[Spread] = field(default_factory=list)
    """The values on several devices, whose parts are among the outputs."""

    def done(self) -> None:
        """Note what was executed, and hand over what needed no computing."""
        if self.effects is not None:
            note_executed(self.effects)
        for handles, buffer in self.shown:
            for handle in handles:
                handle.value = buffer


def outputs_of(handles: Sequence[Handle]) -> Work:
    """Handles with the same value share an output; one with a storage of its own has its own."""
    outputs: dict[tuple[UOp, Storage | None], Output] = {}
    for handle in handles:
        key = (handle.value, handle.storage)
        known = outputs.get(key)
        if known is None:
            outputs[key] = Output(handle.value, handle.storage, [handle])
        else:
            known.handles.append(handle)
    work = Work(list(outputs.values()))
    for output in work.outputs:
        if output.value.has_effects:
            return _elaborate(work)
    return work


def _elaborate(work: Work) -> Work:
    """The work with every hand-written write as an output of its own."""
    found = elaborated([output.value for output in work.outputs])
    writes = {buffer: _write(buffer, value) for buffer, value in found.writes.items()}
    result, replaced = Work([], effects=found), {o.target.node() for o in work.outputs if o.target} | writes.keys()
    for output, value in zip(work.outputs, found.values, strict=True):
        shown, own = found.states.get(output.value), None if output.target is None else output.target.node()
        if shown is not None and own is None:
            writes[shown].handles += output.handles
        elif shown is not None and own is shown:
            writes[shown].handles[:0] = output.handles
        elif own is not None and own in writes:
            result.outputs += _own(writes[own], output, value, found)
        elif own is None and output.value is not value and value.op is ops.BUFFER and value not in replaced:
            result.shown.append((output.handles, value))
        else:
            result.outputs.append(Output(_beside(value), output.target, output.handles))
    result.outputs += writes.values()
    return result


def _beside(value: UOp) -> UOp:
    """What a kernel leaves in the memory that it writes, and what is then written to parts of it, as a value to store
    elsewhere."""
    *writes, first = _chain(value)
    if first.op is not ops.LAUNCH:
        return value
    held = UOp(ops.COPY, first.dtype, (first,), device_of(first))
    for write in reversed(writes):
        held = UOp(ops.WRITE, write.dtype, (held, write.src[1]), write.arg)
    return held


def _chain(value: UOp) -> list[UOp]:
    """The value, and what it was before each of the writes to a part on top."""
    chain = [value]
    while chain[-1].op is ops.WRITE and chain[-1].arg:
        chain.append(chain[-1].src[0])
    return chain


def _write(buffer: UOp, value: UOp) -> Output:
    if not is_current(buffer):
        raise EffectError("store", "a store into contents that a later write has replaced", about={"storage": buffer})
    return Output(value, storage_of(buffer), [])


def _own(write: Output, output: Output, value: UOp, found: Elaboration) -> list[Output]:
    """The output, if any, of a tensor whose storage a graph writes: it has what the graph leaves there, or is
    written after that, and then the graph works in memory of its own."""
    assert output.target is not None
    contents = output.target.node()
    if output.value is contents:
        write.handles[:0] = output.handles
        return []
    if write.value not in toposort(value):
        raise EffectError(
            "realize", "a tensor and a hand-written graph both write one storage, and nothing orders them",
            about={"the tensor's value": output.value}, hint="realize() the tensor before the graph is written",
        )  # fmt: skip
    for node in [node for node, buffer in found.states.items() if buffer is contents]:
        del found.states[node]
    if write.value in _chain(value):
        write.value, write.handles[:0] = value, output.handles
        return []
    write.target = None
    return [Output(_beside(value), output.target, output.handles)]
