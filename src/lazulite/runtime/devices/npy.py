"""Memory of NumPy arrays as memory of a device, without copies.

`from_array` makes an array's memory a handle and `as_array` shows any handle as an array; both share
the memory.  The device only stores: it runs no program, and what is to be computed is copied to
another device, which reads and writes the arrays directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lazulite.base.errors import DeviceError
from lazulite.emit.base import Binary
from lazulite.runtime.device import Capacity, Program
from lazulite.runtime.devices.host import HostDevice, memory_limit
from lazulite.runtime.memory import Handle

if TYPE_CHECKING:
    import numpy as np


class NpyDevice(HostDevice):
    """Arrays as storage."""

    kind = "NPY"
    emitters = ()

    def capacity(self) -> Capacity:
        return Capacity(memory_limit(), 0)

    def load(self, binary: Binary) -> Program:
        self.refuse("load", "it stores arrays and runs no program", hint="copy the values to CPU")

    def from_array(self, array: np.ndarray[Any, Any]) -> Handle:
        """The memory of an array, for `Buffer.external`; writes through either are seen by both."""
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise DeviceError(
                "from_array",
                "the array must be contiguous and writable",
                about={"array": array},
                hint="numpy.array(array, order='C'), which copies it",
            )
        return self.wrap(array.reshape(-1).view("uint8").data)

    def as_array(self, handle: Handle) -> np.ndarray[Any, Any]:
        """The memory as an array of bytes."""
        import numpy as np

        return np.frombuffer(self.map(handle), np.uint8)
