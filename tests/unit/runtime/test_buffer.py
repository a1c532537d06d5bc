import gc
import sys

import pytest

from lazulite.base.errors import DeviceError, OutOfMemoryError
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.devices.cpu import CpuDevice
from lazulite.runtime.devices.host import external_memory


@pytest.fixture
def device():
    return CpuDevice("CPU")


def test_a_buffer_has_memory_from_allocate_to_free(device):
    buffer = Buffer(device, 16)
    assert (buffer.is_allocated, device.allocator.in_use) == (False, 0)
    assert repr(buffer) == "<Buffer CPU 16 bytes, no memory>"
    assert (buffer.allocate().is_allocated, device.allocator.in_use) == (True, 16)
    assert buffer.allocate().handle is buffer.handle
    buffer.free()
    buffer.free()
    assert (buffer.is_allocated, device.allocator.in_use, device.allocator.cached) == (False, 0, 16)


def test_the_end_of_a_buffer_returns_its_memory_but_not_while_a_view_lives(device):
    buffer = Buffer(device, 16).allocate()
    view = buffer.view(4, 4)
    del buffer
    view.copy_in(memoryview(b"view"))
    assert device.allocator.in_use == 16
    del view
    assert device.allocator.in_use == 0


def test_a_view_made_before_the_memory_gets_it_with_the_base(device):
    base = Buffer(device, 16)
    view = base.view(4, 8).view(2, 3)
    assert not view.is_allocated
    view.allocate().copy_in(memoryview(b"abc"))
    assert (base.tobytes()[6:9], view.handle.address) == (b"abc", base.handle.address + 6)


def test_freeing_a_view_leaves_the_base_alone(device):
    base = Buffer(device, 16).allocate()
    view = base.view(4, 4)
    view.free()
    assert (view.is_allocated, base.is_allocated, device.allocator.in_use) == (False, True, 16)
    view.allocate().copy_in(memoryview(b"back"))
    assert base.tobytes()[4:8] == b"back"


@pytest.mark.parametrize(("offset", "size"), [(-1, 2), (0, 17), (16, 1), (3, -1)])
def test_a_view_has_to_lie_in_its_buffer(device, offset, size):
    with pytest.raises(DeviceError, match="do not lie in 16 bytes"):
        Buffer(device, 16).view(offset, size)


def test_memory_that_is_mapped_through_a_view_is_not_reused(device):
    """A25"""
    buffer = Buffer(device, 16).allocate()
    mapped = buffer.view(0, 4).map()
    buffer.free()
    assert (device.allocator.cached, len(mapped)) == (0, 4)


def test_external_memory_is_used_at_its_address_and_kept_alive(device):
    """A25"""

    class Owner(bytearray):
        alive = True

        def __del__(self):
            Owner.alive = False

    owner = Owner(b"external")
    address = device.wrap(memoryview(owner)).address
    buffer = Buffer.external(device, external_memory(address, 8, owner))
    owner[:2] = b"EX"
    assert (buffer.tobytes(), buffer.handle.address) == (b"EXternal", address)
    del owner
    assert Owner.alive
    buffer.free()
    gc.collect()
    assert (Owner.alive, device.allocator.cached) == (False, 0)


@pytest.mark.parametrize("data", [memoryview(b"read only"), memoryview(bytearray(8))[::2]])
def test_memory_that_cannot_be_written_in_place_is_refused(device, data):
    with pytest.raises(DeviceError, match="writable and contiguous"):
        Buffer.wrap(device, data)


def test_host_memory_of_any_simple_type_can_be_copied(device):
    buffer = Buffer(device, 16).allocate()
    buffer.copy_in(memoryview(bytearray(b"0123456789abcdef")).cast("I"))
    into = bytearray(16)
    buffer.copy_out(memoryview(into).cast("d"))
    assert into == b"0123456789abcdef"
    with pytest.raises(DeviceError, match="contiguous"):
        buffer.copy_in(memoryview(bytes(32))[::2])


def test_a_buffer_half_made_ends_in_silence(device):
    """A54"""
    raised = []
    hook, sys.unraisablehook = sys.unraisablehook, raised.append
    try:
        Buffer.__new__(Buffer)
        with pytest.raises(DeviceError):
            Buffer(device, -1)
        device.allocator.limit = 10
        with pytest.raises(OutOfMemoryError):
            Buffer(device, 100).allocate()
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert raised == []


def test_empty_memory_of_any_shape_can_be_copied(device):
    np = pytest.importorskip("numpy")
    buffer = Buffer(device, 0).allocate()
    buffer.copy_in(memoryview(np.zeros((0, 3))))
    assert Buffer.wrap(device, memoryview(bytearray())).tobytes() == b""
    assert (buffer.tobytes(), buffer.view(0, 0).tobytes()) == (b"", b"")
