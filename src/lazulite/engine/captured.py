"""A recorded call, ready to be carried out again: launch lists with everything laid out in numbered slots.

Leaves, fresh outputs and words of the random stream vary from replay to replay; intermediate memory, data
from the host and all other numbers are kept here.  A replay does what the eager call did: it allocates the
outputs (memory that somebody holds is never written), submits, moves the random stream on, and notes which
storages have new contents.

Invariant: all that may fail (allocation, readers of what will be overwritten) comes before the submission,
and a fault during it loses the contents of the written storages only.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from sys import getrefcount
from types import MappingProxyType
from typing import Any

from lazulite.base.errors import OutOfMemoryError
from lazulite.base.origin import Origin
from lazulite.engine.execute import preserve, uninterrupted
from lazulite.engine.handles import Handle, keep_history, live_handles, news, readers_of
from lazulite.engine.panels import panels_of
from lazulite.engine.past import Moment, Past
from lazulite.engine.recording import Hidden, Leaf, Seed, Source, Trace
from lazulite.engine.results import Fill, Parts, Result, Same
from lazulite.engine.slots import Slots
from lazulite.engine.storage import Storage, owners, with_parts
from lazulite.engine.stream import STREAM
from lazulite.engine.variables import with_variables
from lazulite.ir.placement import Placement
from lazulite.ir.uop import UOp
from lazulite.runtime.buffer import Buffer


class Captured:
    """The trace of a call with its results, carried out over the storages of leaves."""

    def __init__(
        self, trace: Trace, results: Sequence[Same | Result], *, hidden: Sequence[Storage] = (),
        origins: Mapping[Source, Origin | None] = MappingProxyType({}), past: Past | None = None,
    ) -> None:  # fmt: skip
        """`hidden` and `origins` as `Slots` takes them."""
        self.trace, self.results, self._past, self._drawn = trace, tuple(results), past, trace.drawn
        sources = [source for r in results if isinstance(r, Result) for source in _sources(r)]
        renewed = [source for source in sources if not isinstance(source, _ELSEWHERE)]
        slots = Slots(trace, hidden, origins, renewed)
        self._lists = [(launches.device.queue.submit, launches) for launches in slots.launch_lists()]
        self._kept = slots.kept
        self._leaves = [leaf.number for leaf in slots.leaves]
        self._fresh, self._draws = list(slots.fresh.values()), slots.draws
        self._bound = [word.number for word in slots.bound]
        self._panels = [(panels.source, filling) for panels, filling in slots.panels.items()]
        self._given: list[Buffer | None] = [None] * len(self._fresh)
        self._fresh_number = {source: number for number, source in enumerate(slots.fresh)}
        self._in_parts = "" in trace.leaf_devices
        """Whether a leaf is on several devices: then the storages of parts follow those of the leaves."""
        written = dict.fromkeys(source for step in trace.steps for source in step.writes)
        self._written = [source.number for source in written if isinstance(source, Leaf)]
        self.hidden = [_Hidden(storage, Hidden(number) in written) for number, storage in enumerate(hidden)]
        self._simple = _simple(self.results, list(slots.fresh))
        self._writes = bool(written)
        self._news = -1
        """`news` when it was last looked for readers of what is written."""

    def fits(self) -> bool:
        """Whether the tensors that the call used without being seen to reach them are as they were."""
        return all(hidden.fits() for hidden in self.hidden)

    def run(
        self, handles: Sequence[Handle], storages: Sequence[Storage], variables: Sequence[UOp] = ()
    ) -> list[Handle]:
        """Carry the call out; `storages` are those of the leaves, in memory, and `variables` those that the call is
        given.  The handles of the results."""
        moment = None if self._past is None else self._past.begin(storages, variables)
        if self._in_parts:
            storages = with_parts(storages)
        if self._writes:
            buffers = self._write(handles, storages, variables)
        else:
            buffers = self._allocate()
            self._submit(storages, buffers, variables)
        if not self._simple:
            return self._results(handles, storages, buffers, moment, variables)
        made = []
        for number, (model, wanted, leaf, shared) in enumerate(self._simple):
            if variables:
                model = Storage(model.dtype, with_variables(model.shape, variables), model.device)
            made.append(Handle.of(model.twin(buffers[number]), wanted, leaf, shared))
        return made

    def direct(self) -> Callable[[list[int]], Handle] | None:
        """The call as a function of the addresses of its leaves that gives the handle of its one result.

        None where it does anything else, or its device takes no addresses.
        """
        elsewhere = self._writes or self._past or self.hidden or self._drawn or self._bound or self._in_parts
        if elsewhere or self._panels or len(self._simple) != 1 or len(self._lists) != 1:
            return None
        if not self._lists[0][1].takes_addresses:
            return None
        ((submit, launches),), ((model, wanted, leaf, shared),) = self._lists, self._simple
        leaves, given, twin, owner_of = self._leaves, self._given, model.twin, Handle.of
        all_in_order = leaves == [*range(len(self.trace.leaf_devices))]

        def run(addresses: list[int]) -> Handle:
            buffer = given[0]
            if buffer is None or getrefcount(buffer) > _OWN_REFERENCES or buffer.handle is None or buffer.handle.shared:
                buffer = self._allocated(0)
            values = addresses if all_in_order else [addresses[number] for number in leaves]
            values.append(buffer.handle.address)  # type: ignore[union-attr]
            submit(launches, values)
            return owner_of(twin(buffer), wanted, leaf, shared)

        return run

    def _write(self, handles: Sequence[Handle], storages: Sequence[Storage], variables: Sequence[UOp]) -> list[Buffer]:
        """The same where memory is written that is not fresh: who needs its contents has them first."""
        numbers = owners(self._written, storages[: len(handles)]) if self._in_parts else self._written
        written = {handles[number]: storages[number] for number in numbers}
        written |= {hidden.handle(): hidden.storage for hidden in self.hidden if hidden.written}
        if self._news != news():
            readers = readers_of({storage.node() for storage in written.values()}, written)
            if readers:
                preserve(readers)
            self._news = news()
        buffers = self._allocate()
        with uninterrupted():
            try:
                self._submit(storages, buffers, variables)
            except BaseException as error:
                for storage in written.values():
                    storage.failure = f"{type(error).__name__} while a captured function wrote it"
                raise
            for handle, storage in written.items():
                storage.renew()
                handle.renew()
        return buffers

    def _allocate(self) -> list[Buffer]:
        """Memory for the results: what the last replay gave, where nobody holds that any more, else fresh."""
        buffers: list[Buffer] = []
        for buffer in self._given:
            if buffer is None or getrefcount(buffer) > _OWN_REFERENCES or buffer.handle is None or buffer.handle.shared:
                buffer = self._allocated(len(buffers))
            buffers.append(buffer)
        return buffers

    def _allocated(self, number: int) -> Buffer:
        """Fresh memory for a result."""
        device, nbytes, label = self._fresh[number]
        try:
            buffer = Buffer(device, nbytes, label=label or "").allocate()
        except OutOfMemoryError as error:
            error.add_origin(label)
            raise
        if nbytes <= _LARGEST_KEPT:
            self._given[number] = buffer
        return buffer

    def _submit(self, storages: Sequence[Storage], buffers: Sequence[Buffer], variables: Sequence[UOp]) -> None:
        values: list[Any] = []
        for number in self._leaves:
            values.append(storages[number].buffer.handle)  # type: ignore[union-attr]
        for buffer in buffers:
            values.append(buffer.handle)
        if self._drawn:
            key, begin = STREAM.take(self._drawn)
            values += [key if isinstance(word, Seed) else begin + word.offset for word in self._draws]
        for number in self._bound:
            values.append(variables[number].arg[3] & _WORD)
        panels = [panels_of(self._contents(source, storages), filling) for source, filling in self._panels]
        values += [buffer.handle for buffer in panels]
        for submit, launches in self._lists:
            submit(launches, values)

    def _contents(self, source: Source, storages: Sequence[Storage]) -> Storage:
        """The storage that a source outside of the call is now."""
        if isinstance(source, Leaf):
            return storages[source.number]
        if isinstance(source, Hidden):
            return self.hidden[source.number].memory
        raise TypeError(f"{source} is made by the call")

    # --- results --------------------------------------------------------------------------------

    def _results(
        self,
        handles: Sequence[Handle],
        storages: Sequence[Storage],
        buffers: Sequence[Buffer],
        moment: Moment | None,
        variables: Sequence[UOp],
    ) -> list[Handle]:
        made: list[Handle] = []
        owned: dict[Source | Parts, Storage] = {}
        for number, result in enumerate(self.results):
            if isinstance(result, Same):
                made.append(handles[result.leaf])
                continue
            storage, value = None, result.source
            if not isinstance(value, UOp):
                storage = self._storage(result, value, storages, buffers, owned, variables)
                value = storage.node()
                if value.origin is None:
                    value.origin = result.origin
            handle = Handle(
                value, storage if result.owns else None, requires_grad=result.requires_grad, leaf=result.leaf,
                shared=result.shared,
            )  # fmt: skip
            if result.remembers and self._past is not None and moment is not None:
                keep_history(handle.value, self._past.expression(number, moment))
            made.append(handle)
        for handle, result in zip(made, self.results, strict=True):
            if isinstance(result, Result) and result.above:
                handle.ancestors = tuple([
                    (weakref.ref(handles[number] if is_leaf else made[number]), with_variables(region, variables))
                    for is_leaf, number, region in result.above
                ])  # fmt: skip
        return made

    def _storage(
        self, result: Result, source: Source | Parts | Fill, storages: Sequence[Storage], buffers: Sequence[Buffer],
        owned: dict[Source | Parts, Storage], variables: Sequence[UOp],
    ) -> Storage:  # fmt: skip
        """The storage that a result shows."""
        shape = with_variables(result.shape, variables) if variables else result.shape
        if isinstance(source, Fill):
            return Storage(result.dtype, shape, result.device, fill=source.value)
        if isinstance(source, Leaf | Hidden):
            return self._contents(source, storages)
        storage = owned.get(source)
        if storage is None and isinstance(source, Parts):
            storage = owned[source] = self._joined(result, source, shape, storages, buffers)
        if storage is None:
            buffer = buffers[self._fresh_number[source]]  # type: ignore[index]
            storage = owned[source] = Storage(result.dtype, shape, result.device, buffer)
        return storage

    def _joined(
        self, result: Result, source: Parts, shape: tuple[int, ...], storages: Sequence[Storage],
        buffers: Sequence[Buffer],
    ) -> Storage:  # fmt: skip
        """The storage of a result on several devices: a new one, unless it shows that of a tensor which was there."""
        where = result.device
        if not isinstance(where, Placement):
            raise TypeError(f"a value in parts is on several devices, not on {where}")
        parts: list[Storage] = []
        for number, (part, device) in enumerate(zip(source.sources, where.devices, strict=True)):
            facts = replace(result, shape=where.part_shape(shape, number), device=device)
            parts.append(self._storage(facts, part, storages, buffers, {}, ()))
        there = (*storages, *[hidden.storage for hidden in self.hidden])
        known = next((each for each in there if each.parts and each.parts[0] is parts[0]), None)
        return known or Storage(result.dtype, shape, where, parts=tuple(parts))


_LARGEST_KEPT = 1 << 16
"""Results of up to so many bytes are kept to be given again.  Larger ones go through the free list, which costs
little beside computing them, and from where others may have them."""
_WORD = (1 << 64) - 1
_OWN_REFERENCES = 3
"""How often a buffer is referred to that nobody else holds: by the list, by a variable, and by the question."""
_ELSEWHERE = (UOp, Fill, Leaf, Hidden)
"""Where results come from that allocate nothing."""


Facts = tuple[Storage, bool | None, bool, bool]
"""A storage of the layout, and what `Handle.of` takes."""


def _simple(results: Sequence[Same | Result], fresh: Sequence[Source]) -> list[Facts]:
    """The facts of results that are nothing but the owners of the fresh memory, one each; empty where others are."""
    facts: list[Facts] = []
    for result, source in zip(results, fresh, strict=False):
        if isinstance(result, Same) or result.source != source or not result.owns or result.above or result.remembers:
            return []
        model = Storage(result.dtype, result.shape, result.device)
        facts.append((model, result.requires_grad, result.leaf, result.shared))
    return facts if len(results) == len(fresh) else []


def _sources(result: Result) -> Sequence[Source | Fill | UOp]:
    """Where the memory of a result comes from, or that of its parts."""
    return result.source.sources if isinstance(result.source, Parts) else (result.source,)


def _owns(storage: Storage | None, memory: Storage) -> bool:
    return storage is not None and (storage is memory or memory in storage.parts)


class _Hidden:
    """A tensor that the call used without being seen to reach it."""

    def __init__(self, memory: Storage, written: bool) -> None:
        self.memory, self.storage, self.written = memory, memory, written
        owner = next((handle for handle in live_handles() if _owns(handle.storage, memory)), None)
        if owner is not None and owner.storage is not None:
            self.storage = owner.storage
        self._reference = None if owner is None else weakref.ref(owner)

    def handle(self) -> Handle:
        handle = None if self._reference is None else self._reference()
        if handle is None:
            raise LookupError("the tensor is gone")
        return handle

    def fits(self) -> bool:
        """Whether the tensor is still held, with the same memory and nothing pending."""
        handle = None if self._reference is None else self._reference()
        return handle is not None and handle.storage is self.storage and not handle.pending
