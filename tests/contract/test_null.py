import pytest

from contract.device import DeviceContract
from lazulite.emit.base import Binary
from lazulite.runtime.registry import Device


class TestNull(DeviceContract):
    device = "NULL"
    never = {
        "copy_out": "the null device keeps no data",
        "map": "the null device keeps no data",
        "wrap": "the null device keeps no data",
    }

    def double_ints(self):
        return Binary("kernel", b"", "elf")

    @pytest.mark.parametrize("kind", ["elf", "text"])
    def test_a_binary_for_something_else_is_refused(self, kind):
        """Nothing is for something else here: every program is accepted, and does nothing."""
        device = Device[self.device]
        device.queue.exec(device.load(Binary("kernel", b"anything", kind)), [device.allocate(4), 5])
