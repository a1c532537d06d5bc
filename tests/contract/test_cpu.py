from contract.device import DeviceContract
from contract.objects import DOUBLE_INTS, kernel


class TestCpu(DeviceContract):
    device = "CPU"

    def double_ints(self):
        return kernel(DOUBLE_INTS)


class TestSecondCpu(TestCpu):
    device = "CPU:1"
