"""Storages: memory that values live in, and the nodes that stand for its contents.

A `Storage` has a number and a version.  Its contents are the node ``BUFFER(number, version)``; a
write makes the next version, and nodes of older versions then stand for contents that are gone.  A
node keeps its storage alive, a storage does not keep its nodes alive.  A storage that holds one
value everywhere needs no memory (`fill`) until somebody writes a part of it.

A storage on several devices has no memory but that of its `parts`, a storage for each device; its own device is
their `Placement`.  Whole and parts are of the same version at all times.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from lazulite.base.errors import DeviceError
from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar
from lazulite.ir.placement import Placement
from lazulite.ir.size import Size, outline, room, sizes_exist
from lazulite.ir.uop import UOp

if TYPE_CHECKING:
    from lazulite.runtime.buffer import Buffer

_numbers = itertools.count()
_layouts: dict[tuple[DType, tuple[Hashable, ...], str | Placement], int] = {}


class Storage:
    """Memory for elements of one type in row-major order, on one device, or in parts on several."""

    __slots__ = (
        "__weakref__",
        "buffer",
        "device",
        "dtype",
        "failure",
        "fill",
        "layout",
        "number",
        "panels",
        "parts",
        "shape",
        "sizes",
        "version",
    )
    buffer: Buffer | None
    device: str | Placement
    layout: int
    """A number for the type, the shape (whatever the variables in it are) and the device together."""
    sizes: tuple[Size, ...]
    """Those of the shape that vary."""
    failure: str | None
    """Why the contents are lost, after a fault during a write."""
    panels: dict[str, Buffer] | None
    """Copies of the contents in other orders, by what made them; None where there are none."""
    parts: tuple[Storage, ...]
    """For several devices the storage of each."""

    def __init__(
        self,
        dtype: DType,
        shape: tuple[int, ...],
        device: str | Placement,
        buffer: Buffer | None = None,
        fill: Scalar | None = None,
        parts: tuple[Storage, ...] = (),
    ) -> None:
        self.number, self.version = next(_numbers), 0
        self.dtype, self.shape, self.device = dtype, shape, device
        self.sizes = tuple([size for size in shape if isinstance(size, Size)]) if sizes_exist() else ()
        form = tuple([outline(s, _bounds) if isinstance(s, Size) else s for s in shape]) if self.sizes else shape
        self.layout = _layouts.setdefault((dtype, form, device), len(_layouts))
        self.buffer, self.fill, self.failure, self.panels, self.parts = buffer, fill, None, None, parts

    def twin(self, buffer: Buffer) -> Storage:
        """Another one of the same layout, over this memory."""
        twin = object.__new__(Storage)
        twin.number, twin.version = next(_numbers), 0
        twin.dtype, twin.shape, twin.device = self.dtype, self.shape, self.device
        twin.sizes, twin.layout = self.sizes, self.layout
        twin.buffer, twin.fill, twin.failure, twin.panels, twin.parts = buffer, None, None, None, ()
        return twin

    @property
    def home(self) -> str:
        """The device, of a storage that is on one."""
        if not isinstance(self.device, str):
            raise TypeError(f"a storage on {self.device} has no memory but that of its parts")
        return self.device

    @property
    def nbytes(self) -> int:
        return room(self.shape) * self.dtype.itemsize

    def require_contents(self, function: str) -> None:
        """Raise, on behalf of a public function, where the contents are lost."""
        failure = self.failure or next((part.failure for part in self.parts if part.failure), None)
        if failure is not None:
            raise DeviceError(function, f"the contents of a tensor are lost: {failure}")

    def node(self) -> UOp:
        """The node of the current contents."""
        node = UOp(ops.BUFFER, self.dtype, (), (self.number, self.version, self.shape, self.device))
        node.memory = self
        return node

    def written(self, buffer: Buffer) -> UOp:
        """Note that the contents are new, and give their node."""
        self.buffer, self.fill, self.failure = buffer, None, None
        self.renew()
        return self.node()

    def renew(self) -> None:
        """Note that the memory, or that of the parts, has new contents."""
        self.version += 1
        self.panels = None
        for part in self.parts:
            part.renew()


def _bounds(leaf: UOp) -> tuple[int, int]:
    return leaf.arg[1], leaf.arg[2]


def next_number() -> int:
    """A number that every storage made from now on exceeds."""
    return next(_numbers)


def storage_of(node: UOp) -> Storage:
    """The storage whose contents a BUFFER stands for, or stood for."""
    storage: Storage = node.memory
    return storage


def with_parts(storages: Sequence[Storage]) -> Sequence[Storage]:
    """The storages, and behind them the parts of those on several devices."""
    parts = [part for storage in storages for part in storage.parts]
    return [*storages, *parts] if parts else storages


def owners(numbers: Iterable[int], storages: Sequence[Storage]) -> Iterable[int]:
    """Which of the storages these of `with_parts(storages)` are, or are parts of."""
    owner = [*range(len(storages)), *[number for number, each in enumerate(storages) for _ in each.parts]]
    return dict.fromkeys([owner[number] for number in numbers])


def parts_of(node: UOp) -> tuple[UOp, ...]:
    """The memory of the parts of a BUFFER on several devices, as of its version."""
    found = []
    for part in storage_of(node).parts:
        own = UOp(ops.BUFFER, part.dtype, (), (part.number, node.arg[1], part.shape, part.device))
        own.memory = part
        found.append(own)
    return tuple(found)


def is_current(node: UOp) -> bool:
    """Whether the contents that a BUFFER stands for are still there."""
    return bool(node.memory.version == node.arg[1])


def fill_of(node: UOp) -> Scalar | None:
    """The value that fills a storage which has no memory yet."""
    storage: Storage = node.memory
    return storage.fill if storage.buffer is None else None


def filled(storage: Storage) -> UOp:
    """The contents of a storage that holds one value everywhere, as a value of no memory."""
    single = UOp.const(storage.dtype, storage.fill or 0)
    return UOp(ops.EXPAND, storage.dtype, (single,), storage.shape) if storage.shape else single
