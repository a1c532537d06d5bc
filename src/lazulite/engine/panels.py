"""Panels: contents of storages in the order in which kernels read them, kept from run to run.

`still_inputs` says of which inputs of a graph they are worth having, `panels_of` gives those of a storage, filled.
They belong to the storage and go with it, or with its next write; the setting PANELS bounds them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakSet

from lazulite.base.settings import SETTINGS
from lazulite.engine.handles import tracked_values
from lazulite.engine.loaded import Filling
from lazulite.engine.storage import Storage, storage_of
from lazulite.ir.uop import UOp
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.counters import GlobalCounters

_SMALLEST = 1 << 14
"""The bytes below which contents are copied by every launch."""
_kept: WeakSet[Buffer] = WeakSet()


def still_inputs(buffers: Sequence[UOp]) -> tuple[int, ...]:
    """The inputs whose contents are likely to outlast many runs: large ones in memory of our own that no training is
    about to change."""
    if not SETTINGS.PANELS:
        return ()
    large = [n for n, node in enumerate(buffers) if _is_large(storage := storage_of(node)) and _is_ours(storage)]
    if not large:
        return ()
    tracked = tracked_values()
    return tuple([number for number in large if buffers[number] not in tracked])


def _is_large(storage: Storage) -> bool:
    return storage.nbytes >= _SMALLEST


def _is_ours(storage: Storage) -> bool:
    """Whether nobody else can write to the memory."""
    buffer = storage.buffer
    return buffer is not None and not buffer.borrowed and buffer.handle is not None and not buffer.handle.shared


def panels_of(storage: Storage, filling: Filling) -> Buffer:
    """The panels that a filling makes of the contents now."""
    kept = None if storage.panels is None else storage.panels.get(filling.key)
    if kept is not None and _is_ours(storage):
        return kept
    source = storage.buffer
    if source is None:
        raise LookupError("panels are those of contents in memory")
    handle = source.require_handle("realize")
    panels = Buffer(filling.queue.device, filling.nbytes, label="panels of an operand").allocate()
    filling.queue.exec(filling.program, [panels.require_handle("realize"), handle])
    GlobalCounters.global_ops += filling.work[0]
    GlobalCounters.global_mem += filling.work[1]
    if _is_ours(storage) and kept_bytes() + filling.nbytes <= SETTINGS.PANELS << 20:
        storage.panels = {**(storage.panels or {}), filling.key: panels}
        _kept.add(panels)
    return panels


def kept_bytes() -> int:
    """The bytes of all panels that are kept."""
    return sum([panels.nbytes for panels in _kept])
