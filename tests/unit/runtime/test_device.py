import pytest

from lazulite.base.errors import DeviceError
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.devices.cpu import CpuDevice
from lazulite.runtime.devices.host import HostDevice
from lazulite.runtime.devices.null import NullDevice
from lazulite.runtime.devices.python import PythonDevice
from lazulite.runtime.memory import Handle


class Remote(HostDevice):
    """A device that the host cannot look into."""

    kind = "REMOTE"
    emitters = ("LLVM", "OTHER")
    map = HostDevice.__mro__[1].map

    def copy_in(self, handle, data):
        handle.owner[:] = data

    def copy_out(self, handle, data):
        data[:] = handle.owner

    def load(self, binary):
        self.refuse("load", "it is only for tests")


def test_devices_that_the_host_cannot_look_into_exchange_memory_through_it():
    first, second = Remote("REMOTE"), Remote("REMOTE:1", "OTHER")
    source, destination = Buffer(first, 4).allocate(), Buffer(second, 4).allocate()
    source.copy_in(memoryview(b"data"))
    second.queue.copy(destination, source)
    assert destination.tobytes() == b"data"
    assert (first.maps, first.emitter, second.emitter) == (False, "LLVM", "OTHER")
    with pytest.raises(DeviceError, match="map: REMOTE cannot do this"):
        source.map()


def test_a_copy_goes_straight_into_memory_that_the_host_reaches():
    host, remote = CpuDevice("CPU"), Remote("REMOTE")
    here, there = Buffer(host, 4).allocate(), Buffer(remote, 4).allocate()
    there.copy_in(memoryview(b"away"))
    host.queue.copy(here, there)
    assert here.tobytes() == b"away"
    here.copy_in(memoryview(b"back"))
    remote.queue.copy(there, here)
    assert there.tobytes() == b"back"


def test_what_a_device_cannot_do_it_refuses_with_a_hint():
    device = NullDevice("NULL")
    with pytest.raises(DeviceError, match="Try: use PYTHON to see values"):
        device.copy_out(device.allocate(4), memoryview(bytearray(4)))
    assert device.target == CpuDevice("CPU").target
    assert PythonDevice("PYTHON").target is None


def test_memory_that_was_freed_cannot_be_looked_at():
    device = CpuDevice("CPU")
    handle = Handle(4)
    with pytest.raises(DeviceError, match="was freed"):
        device.map(handle)
