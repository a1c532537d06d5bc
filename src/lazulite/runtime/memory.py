"""What a device's memory is called by: `Handle`, and the `Options` it was asked for with."""

from __future__ import annotations

from typing import NamedTuple

from lazulite.base.origin import Origin


class Options(NamedTuple):
    """How memory has to be; together with the size the key of a free list."""

    alignment: int = 64
    reusable: bool = True
    """Freed memory goes to the free list; otherwise straight back to the system."""


DEFAULT_OPTIONS = Options()


class Handle:
    """Memory of one device.

    `owner` keeps it alive and means something to its device only.  `shared` memory belongs to somebody
    else, or somebody else may still look at it: it never enters a free list.
    """

    __slots__ = ("__weakref__", "address", "label", "live", "options", "owner", "shared", "size")
    live: bool
    """Whether its allocator has given it out; what came from no allocator never is."""
    label: str | Origin
    """What it holds, for the report of a full device."""

    def __init__(
        self, size: int, address: int = 0, owner: object = None, options: Options = DEFAULT_OPTIONS, *,
        shared: bool = False,
    ) -> None:  # fmt: skip
        self.size, self.address, self.owner, self.options = size, address, owner, options
        self.shared, self.live, self.label = shared, False, ""

    def __index__(self) -> int:
        """The address: what a launch list of machine code takes."""
        return self.address

    def __repr__(self) -> str:
        return f"<Handle {self.size} bytes at {self.address:#x}>"
