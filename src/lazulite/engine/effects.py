"""Stores and calls of hand-written graphs, as the engine sees them: which were executed, which are to come.

`results_of` is the call of a kernel as a value, for tensors.

An effect is executed once: a graph that is realized later and contains it again finds its outcome in
memory.  Nothing here changes a tensor; `note_executed` is called when all launches are done.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lazulite.base.errors import EffectError, GradientError
from lazulite.engine.handles import note_stored, stored
from lazulite.engine.storage import storage_of
from lazulite.ir import ops
from lazulite.ir.calls import device_of, memory_below, same_memory, touched_slots
from lazulite.ir.uop import UOp, substitute, toposort

if TYPE_CHECKING:
    from lazulite.schedule.effects import Elaboration

_executed: weakref.WeakSet[UOp] = weakref.WeakSet()


def elaborated(values: Sequence[UOp]) -> Elaboration:
    """The values without effects, and the writes that realizing them entails."""
    from lazulite.schedule.effects import elaborate

    return elaborate(values, stored, _executed.__contains__)


def written_by(values: Iterable[UOp]) -> set[UOp]:
    """The storages, by their BUFFERs, that realizing these values writes beside what they ask for."""
    effectful = [value for value in values if value.has_effects]
    return set(elaborated(effectful).writes) if effectful else set()


def note_executed(found: Elaboration) -> None:
    """The effects are done, and the storages hold what they left there."""
    _executed.update(found.effects)
    for node, buffer in found.states.items():
        note_stored(node, storage_of(buffer).node())


# --- kernels as values ----------------------------------------------------------------------------


def results_of(body: UOp, sources: Sequence[UOp], gradient: Callable[..., Any] | None) -> dict[int, UOp]:
    """What the call of a body leaves in the memories that it writes, by slot, as pure values of its sources.

    An EffectError where the body reads in other places what it writes, as it then depends on the order of its loops.
    """
    from lazulite.schedule.calls import reads_what_it_writes
    from lazulite.schedule.effects import elaborate

    memories = [_stand_in(slot, source) for slot, source in enumerate(sources)]
    call = body.call(*memories, grad_fxn=gradient)
    written = touched_slots(body, len(sources)).writes
    values = elaborate([memories[slot].after(call) for slot in written], lambda node: None, lambda effect: False).values
    launches = [node for node in toposort(*values) if node.op is ops.LAUNCH]
    for kernel in {launch.arg.kernel for launch in launches}:
        if reads_what_it_writes(kernel):
            raise EffectError(
                "custom_kernel", "the kernel reads memory in other places than it writes it",
                rule="What it reads there would depend on the order in which its loops run.",
                hint="read a clone() of the tensor, passed as another argument",
            )  # fmt: skip
    pure = {node: UOp(node.op, node.dtype, node.src, node.arg._replace(pure=True)) for node in launches}
    table = dict(zip(memories, sources, strict=True))
    return dict(zip(written, substitute(substitute(values, pure), table), strict=True))


def _stand_in(slot: int, source: UOp) -> UOp:
    """Memory that no storage is, for a source of a call."""
    return UOp(ops.BUFFER, source.dtype, (), (-1 - slot, 0, source.shape, device_of(source)))


# --- gradients ---------------------------------------------------------------------------------


def differentiable(value: UOp) -> tuple[UOp, dict[UOp, UOp]]:
    """The value without effects, and what each kernel's result in it stands for (`with_calls`).

    A GradientError where a write is not one value of one memory.
    """
    if not value.has_effects:
        return value, {}
    from lazulite.schedule.effects import elaborate

    found = elaborate([value], lambda node: None, lambda effect: False)
    for buffer in found.writes:
        memory = storage_of(buffer).buffer
        if memory is not None and (memory.base is not memory or memory.borrowed):
            raise GradientError(
                "gradient", "aliased write: others can change the memory that a store writes",
                about={"the storage": buffer}, hint="store into memory of its own",
            )  # fmt: skip
    for node in toposort(found.values[0]):
        if node.op is ops.LAUNCH:
            _refuse_shared_arguments(node)
    return found.values[0], found.launches


def with_calls(gradients: list[UOp | None], launches: Mapping[UOp, UOp]) -> list[UOp | None]:
    """The gradients over the memory that calls write; a kernel runs where its call says, never as a value."""
    table = {launch: meant for launch, meant in launches.items() if stored(launch) is None}
    if not table:
        return gradients
    known = [part for part in gradients if part is not None]
    replaced = iter(substitute(known, table))
    return [None if part is None else next(replaced) for part in gradients]


def _refuse_shared_arguments(launch: UOp) -> None:
    run = launch.arg
    if any(run.bindings[i] != i for i in run.writes):
        raise GradientError("gradient", "ambiguous CALL: one memory is passed as two of its outputs")
    for i, source in enumerate(launch.src):
        below = memory_below(source)
        written = [memory_below(launch.src[w]) for w in run.writes]
        partly = below is not None and any(m is not None and same_memory(m, below) for m in written)
        if i not in run.writes and (run.bindings[i] >= 0 or partly):
            raise GradientError("gradient", "aliased write: a CALL writes memory that another argument reads")
