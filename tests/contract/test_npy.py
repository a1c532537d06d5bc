import numpy as np
import pytest

from contract.device import DeviceContract
from lazulite.base.errors import DeviceError
from lazulite.emit.base import Binary
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.registry import Device


class TestNpy(DeviceContract):
    device = "NPY"
    never = {"load": "arrays are storage; programs run on CPU"}

    def double_ints(self):
        return Binary("kernel", b"", "elf")

    def test_an_array_is_used_without_a_copy(self):
        """A42"""
        device, array = Device["NPY"], np.arange(6, dtype=np.float32).reshape(2, 3)
        buffer = Buffer.external(device, device.from_array(array))
        device.as_array(buffer.handle).view(np.float32)[4] = 40
        there = Buffer(Device["CPU"], 24).allocate()
        Device["CPU"].queue.copy(there, buffer)
        assert array[1, 1] == 40
        assert np.frombuffer(there.tobytes(), np.float32).tolist() == [0, 1, 2, 3, 40, 5]

    def test_an_array_that_cannot_be_shared_is_refused_with_what_it_was(self):
        with pytest.raises(DeviceError, match="contiguous and writable"):
            Device["NPY"].from_array(np.zeros((4, 4))[:, 1])
