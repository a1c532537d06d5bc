"""What the namespace can do, by the inspection functions of the standard."""

from __future__ import annotations

from typing import Any

from lazulite.interop.array_api.kinds import TYPES, of_kind
from lazulite.ir.dtype import DType, dtypes
from lazulite.runtime.registry import Device


class Info:
    """Capabilities, devices and types."""

    def capabilities(self) -> dict[str, Any]:
        """Masks and shapes that depend on values work; nothing limits the number of axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> str:
        """The device of arrays made without one."""
        return Device.DEFAULT

    def devices(self) -> list[str]:
        """The devices that work here."""
        return [name for name in Device if Device.problem(name) is None]

    def default_dtypes(self, *, device: str | None = None) -> dict[str, DType]:
        """The types of what is made without one; there is none for complex numbers."""
        return {
            "real floating": dtypes.default_float, "integral": dtypes.default_int, "indexing": dtypes.int32,
        }  # fmt: skip

    def dtypes(self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The types of the standard that there are, or those of a kind: no complex ones."""
        return of_kind(TYPES, kind)


def __array_namespace_info__() -> Info:
    """What this namespace can do.

    >>> sorted(__array_namespace_info__().dtypes(kind="real floating"))
    ['float32', 'float64']
    """
    return Info()
