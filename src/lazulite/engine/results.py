"""What a call leaves behind, as data: how each resulting handle is made anew from the memory of a replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lazulite.analysis.regions import Region
from lazulite.base.origin import Origin
from lazulite.engine.handles import Handle, history
from lazulite.engine.recording import Recording, Source
from lazulite.engine.storage import storage_of
from lazulite.engine.views import ancestors
from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar
from lazulite.ir.placement import Placement
from lazulite.ir.uop import UOp, toposort


class Unrepeatable(Exception):
    """A call did something that a replay would not do; the message says what."""


@dataclass(frozen=True, slots=True)
class Same:
    """The handle of a leaf itself."""

    leaf: int


@dataclass(frozen=True, slots=True)
class Fill:
    """One number everywhere, which needs no memory."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a value on several devices, by device."""

    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """A handle with the facts of the one that the recorded call made."""

    source: Source | Parts | Fill | UOp
    """Where its memory comes from; a node of constants for a value that has no storage."""
    owns: bool
    """Whether it owns the storage; else it shows the contents of one that another handle owns."""
    dtype: DType
    shape: tuple[int, ...]
    """Over the numbers of the variables of the call."""
    device: str | Placement
    requires_grad: bool | None
    leaf: bool
    shared: bool
    above: tuple[tuple[bool, int, Region], ...]
    """What it is a view of: whether that is a leaf (else a result), its number, and the way from there."""
    remembers: bool
    """Whether it keeps how it was made, for gradients."""
    origin: Origin | None = field(compare=False)


def describe(recording: Recording, leaves: Sequence[Handle], results: Sequence[Handle]) -> tuple[Same | Result, ...]:
    """How the handles, all of them realized, are made anew."""
    numbers = {id(handle): number for number, handle in reversed(list(enumerate(leaves)))}
    own = {id(handle): number for number, handle in enumerate(results)}
    return tuple([
        Same(numbers[id(handle)]) if id(handle) in numbers else _result(recording, handle, numbers, own)
        for handle in results
    ])  # fmt: skip


def _result(recording: Recording, handle: Handle, leaves: dict[int, int], own: dict[int, int]) -> Result:
    value = handle.value
    if handle in recording.handles_before:
        raise Unrepeatable("it gives a tensor that it was not seen to reach")
    if handle.grad is not None:
        raise Unrepeatable("a result of it has a gradient of its own")
    above = []
    for held, region in ancestors(handle):
        number = leaves.get(id(held), own.get(id(held)))
        if number is None:
            raise Unrepeatable("it gives a view of a tensor that it was not seen to reach")
        above.append((id(held) in leaves, number, recording.variables.numbered(region)))
    device = storage_of(value).device if value.op is ops.BUFFER else ""
    origin = value.origin if isinstance(value.origin, Origin) else None
    shape = recording.variables.numbered(value.shape)
    return Result(
        _source(recording, handle), handle.storage is not None, value.dtype, shape, device,
        handle.requires_grad, handle.leaf, handle.shared, tuple(above), history(value) is not None, origin,
    )  # fmt: skip


def _source(recording: Recording, handle: Handle) -> Source | Parts | Fill | UOp:
    value = handle.value
    if value.op is not ops.BUFFER:
        if any(recording.variables.occur_in(node.arg) for node in toposort(value)):
            raise Unrepeatable("it gives a constant whose size varies")
        return value
    storage = storage_of(value)
    if storage.parts:
        return Parts(tuple([recording.source_of(part) for part in storage.parts]))
    if storage.buffer is None:
        return Fill(storage.fill or 0)
    return recording.source_of(storage)
