"""Storages: memory that values live in, and the nodes that stand for its contents.

A `Storage` has a number and a version.  Its contents are the node ``BUFFER(number, version)``; a
write makes the next version, and nodes of older versions then stand for contents that are gone.  A
node keeps its storage alive, a storage does not keep its nodes alive.  A storage that holds one
value everywhere needs no memory (`fill`) until somebody writes a part of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import TYPE_CHECKING

from lazulite.base.errors import DeviceError
from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar
from lazulite.ir.size import Size, outline, room, sizes_exist
from lazulite.ir.uop import UOp

if TYPE_CHECKING:
    from lazulite.runtime.buffer import Buffer

_numbers = itertools.count()
_layouts: dict[tuple[DType, tuple[Hashable, ...], str], int] = {}


class Storage:
    """Memory for elements of one type in row-major order, on one device."""

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
        "shape",
        "sizes",
        "version",
    )
    buffer: Buffer | None
    layout: int
    """A number for the type, the shape (whatever the variables in it are) and the device together."""
    sizes: tuple[Size, ...]
    """Those of the shape that vary."""
    failure: str | None
    """Why the contents are lost, after a fault during a write."""
    panels: dict[str, Buffer] | None
    """Copies of the contents in other orders, by what made them; None where there are none."""

    def __init__(
        self,
        dtype: DType,
        shape: tuple[int, ...],
        device: str,
        buffer: Buffer | None = None,
        fill: Scalar | None = None,
    ) -> None:
        self.number, self.version = next(_numbers), 0
        self.dtype, self.shape, self.device = dtype, shape, device
        self.sizes = tuple([size for size in shape if isinstance(size, Size)]) if sizes_exist() else ()
        form = tuple([outline(s, _bounds) if isinstance(s, Size) else s for s in shape]) if self.sizes else shape
        self.layout = _layouts.setdefault((dtype, form, device), len(_layouts))
        self.buffer, self.fill, self.failure, self.panels = buffer, fill, None, None

    def twin(self, buffer: Buffer) -> Storage:
        """Another one of the same layout, over this memory."""
        twin = object.__new__(Storage)
        twin.number, twin.version = next(_numbers), 0
        twin.dtype, twin.shape, twin.device = self.dtype, self.shape, self.device
        twin.sizes, twin.layout = self.sizes, self.layout
        twin.buffer, twin.fill, twin.failure, twin.panels = buffer, None, None, None
        return twin

    @property
    def nbytes(self) -> int:
        return room(self.shape) * self.dtype.itemsize

    def require_contents(self, function: str) -> None:
        """Raise, on behalf of a public function, where the contents are lost."""
        if self.failure is not None:
            raise DeviceError(function, f"the contents of a tensor are lost: {self.failure}")

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
        """Note that the memory has new contents."""
        self.version += 1
        self.panels = None


def _bounds(leaf: UOp) -> tuple[int, int]:
    return leaf.arg[1], leaf.arg[2]


def next_number() -> int:
    """A number that every storage made from now on exceeds."""
    return next(_numbers)


def storage_of(node: UOp) -> Storage:
    """The storage whose contents a BUFFER stands for, or stood for."""
    storage: Storage = node.memory
    return storage


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
