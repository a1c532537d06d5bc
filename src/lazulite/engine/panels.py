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
    large = [
        number
        for number, node in enumerate(buffers)
        if (buffer := storage_of(node).buffer) is not None and buffer.nbytes >= _SMALLEST and _is_ours(buffer)
    ]
    if not large or not SETTINGS.PANELS:
        return ()
    tracked = tracked_values()
    return tuple([number for number in large if buffers[number] not in tracked])


def _is_ours(buffer: Buffer) -> bool:
    """Whether nobody else can write to the memory."""
    return not buffer.borrowed and buffer.handle is not None and not buffer.handle.shared


def panels_of(storage: Storage, filling: Filling) -> Buffer:
    """The panels that a filling makes of the contents now."""
    source = storage.buffer
    if source is None:
        raise LookupError("panels are those of contents in memory")
    kept = None if storage.panels is None else storage.panels.get(filling.key)
    if kept is not None and _is_ours(source):
        return kept
    handle = source.require_handle("realize")
    panels = Buffer(filling.queue.device, filling.nbytes, label="panels of an operand").allocate()
    filling.queue.exec(filling.program, [panels.require_handle("realize"), handle])
    GlobalCounters.global_ops += filling.work[0]
    GlobalCounters.global_mem += filling.work[1]
    if _is_ours(source) and kept_bytes() + filling.nbytes <= SETTINGS.PANELS << 20:
        storage.panels = {**(storage.panels or {}), filling.key: panels}
        _kept.add(panels)
    return panels


def kept_bytes() -> int:
    """The bytes of all panels that are kept."""
    return sum([panels.nbytes for panels in _kept])
