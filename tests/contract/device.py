"""What every device promises.  A device's test is a subclass that names the device.

`never` says which abilities the device lacks for good and why, `notyet` which are still to come; where
a test needs one of them it must raise `DeviceError` instead, and fails once it works.
"""

import functools
import struct

import pytest

from lazulite.base.errors import DeviceError, LazuliteError, OutOfMemoryError
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.counters import GlobalCounters
from lazulite.runtime.launch_list import Copy, Exec
from lazulite.runtime.memory import Options
from lazulite.runtime.queue import Signal
from lazulite.runtime.registry import Device

DATA = bytes(range(48))


def needs(*abilities):
    """Mark a test as using these abilities of a device."""

    def wrap(test):
        @functools.wraps(test)
        def run(self):
            missing = [a for a in abilities if a in self.never or a in self.notyet]
            if not missing:
                return test(self)
            with pytest.raises(DeviceError, match=missing[0]):
                test(self)
            return None

        return run

    return wrap


class DeviceContract:
    """Inherit it, name the `device`, and give a `double_ints` binary where programs run."""

    device = ""
    never: dict[str, str] = {}
    notyet: dict[str, str] = {}

    def double_ints(self):
        """A binary that doubles the four int32 of its argument 0."""
        raise NotImplementedError

    def buffer(self, data=DATA, **facts):
        buffer = Buffer(Device[self.device], len(data), **facts).allocate()
        buffer.copy_in(memoryview(data))
        return buffer

    # --- memory ---------------------------------------------------------------------------------

    @needs("copy_out")
    def test_bytes_come_back_as_they_went_in(self):
        assert self.buffer().tobytes() == DATA

    def test_memory_is_aligned_to_what_the_options_ask_for(self):
        for alignment in (64, 256, 4096):
            handles = [Device[self.device].allocate(n, Options(alignment)) for n in (1, 1000, 200_000, 5_000_000)]
            assert [0] * 4 == [handle.address % alignment for handle in handles]

    def test_an_empty_buffer_is_allowed(self):
        assert self.buffer(b"").is_allocated

    def test_sizes_must_agree(self):
        with pytest.raises(DeviceError, match="48 bytes"):
            self.buffer().copy_in(memoryview(bytes(5)))

    def test_a_buffer_without_memory_says_so(self):
        with pytest.raises(DeviceError, match="has no memory"):
            Buffer(Device[self.device], 4).copy_in(memoryview(bytes(4)))

    @needs("copy_out")
    def test_views_see_writes_through_the_base_and_the_other_way_round(self):
        """A25"""
        base = self.buffer()
        view = base.view(8, 16).view(4, 4)
        base.view(12, 4).copy_in(memoryview(b"base"))
        assert view.tobytes() == b"base"
        view.copy_in(memoryview(b"view"))
        assert base.tobytes() == DATA[:12] + b"view" + DATA[16:]

    def test_freeing_the_base_takes_the_memory_from_its_views(self):
        """A25"""
        base = self.buffer()
        view = base.view(4, 4)
        base.free()
        assert (base.is_allocated, view.is_allocated) == (False, False)
        view.allocate()
        assert (base.is_allocated, view.is_allocated) == (True, True)

    def test_freed_memory_is_used_again_for_the_same_size_and_options(self):
        """A26"""
        device = Device[self.device]
        device.allocator.cached_limit = max(device.allocator.cached_limit, 1 << 20)
        first = device.allocate(12_345)
        device.free(first)
        assert device.allocate(12_345, Options(alignment=128)) is not first
        assert device.allocate(12_345) is first

    @needs("map")
    def test_a_host_view_is_the_memory_itself_and_outlives_the_buffer(self):
        """A25"""
        buffer = self.buffer()
        view = buffer.map()
        view[:4] = b"host"
        assert buffer.tobytes() == b"host" + DATA[4:]
        del buffer
        other = self.buffer(bytes(48))
        assert view.tobytes() == b"host" + DATA[4:]
        assert other.tobytes() == bytes(48)

    @needs("wrap")
    def test_memory_of_the_host_is_used_in_place_and_never_enters_a_free_list(self):
        """A25"""
        device, host = Device[self.device], bytearray(DATA)
        buffer = Buffer.wrap(device, memoryview(host))
        buffer.copy_in(memoryview(DATA[::-1]))
        assert host == DATA[::-1]
        cached, handle = device.allocator.cached, buffer.handle
        buffer.free()
        assert device.allocator.cached == cached
        assert device.allocate(len(host)).address != handle.address

    def test_a_full_device_names_sizes_and_the_largest_buffers(self):
        """A26"""
        device = Device[self.device]
        allocator, limit = device.allocator, device.allocator.limit
        allocator.relieve()
        held = self.buffer(bytes(30_000), label="weights of layer 1")
        allocator.limit = allocator.in_use + 10_000
        try:
            device.free(device.allocate(9_000))
            kept = device.allocate(10_000)  # fits only once the 9000 that are merely cached are given up
            with pytest.raises(OutOfMemoryError) as caught:
                device.allocate(20_000)
        finally:
            allocator.limit = limit
        assert (held.is_allocated, kept.size) == (True, 10_000)
        for part in (self.device, "20.00 KB", "in use", "30.00 KB weights of layer 1"):
            assert part in str(caught.value)

    # --- copies between devices -----------------------------------------------------------------

    @needs("copy_out")
    def test_memory_can_be_copied_to_and_from_the_processor(self):
        host, there, back = Buffer(Device["CPU"], 48), self.buffer(bytes(48)), Buffer(Device["CPU"], 48)
        host.allocate().copy_in(memoryview(DATA))
        Device[self.device].queue.copy(there, host)
        Device["CPU"].queue.copy(back.allocate(), there)
        assert back.tobytes() == DATA

    @needs("copy_out")
    def test_memory_can_be_copied_within_the_device(self):
        destination = self.buffer(bytes(48))
        Device[self.device].queue.copy(destination, self.buffer())
        assert destination.tobytes() == DATA

    # --- programs and queue ---------------------------------------------------------------------

    @needs("load", "copy_out")
    def test_a_program_computes_on_the_memory(self):
        device, buffer = Device[self.device], self.buffer(struct.pack("4i", 1, -2, 3, 1 << 30))
        device.queue.exec(device.load(self.double_ints()), [buffer.handle])
        device.synchronize()
        assert struct.unpack("4i", buffer.tobytes()) == (2, -4, 6, -(1 << 31))

    @needs("load")
    def test_a_binary_for_something_else_is_refused(self):
        binary = self.double_ints()
        Device[self.device].load(binary)
        wrong = type(binary)("kernel", b"\x7fnot this", "text" if binary.kind == "elf" else "elf")
        with pytest.raises(LazuliteError):
            Device[self.device].load(wrong)

    @needs("load", "copy_out")
    def test_a_launch_list_does_its_commands_in_order_with_the_values_of_each_submission(self):
        """A24, A28"""
        device, ints = Device[self.device], struct.Struct("4i")
        double = device.load(self.double_ints())
        commands = [Exec(double, (0,)), Copy(1, 0, device), Exec(double, (1,))]
        kept = [self.buffer(bytes(16)) for _ in range(2)]
        launches = device.launch_list(commands, [kept[0].handle] * 2, 1)
        launches.rebind(1, kept[1].handle)
        counted = GlobalCounters.kernel_count
        for first in (3, 5):
            given = self.buffer(ints.pack(first, -2, 0, 1))
            device.queue.submit(launches, [given.handle])
            device.synchronize()
            assert ints.unpack(given.tobytes()) == (2 * first, -4, 0, 2)
            assert ints.unpack(kept[1].tobytes()) == (4 * first, -8, 0, 4)
        assert (GlobalCounters.kernel_count - counted, kept[0].tobytes()) == (4, bytes(16))

    @needs("copy_out")
    def test_a_launch_list_copies_from_other_devices(self):
        device, host = Device[self.device], Buffer(Device["CPU:7"], 48).allocate()
        host.copy_in(memoryview(DATA))
        into = self.buffer(bytes(48))
        launches = device.launch_list([Copy(1, 0, host.device)], [host.handle, into.handle], 0)
        device.queue.submit(launches, [])
        device.synchronize()
        assert into.tobytes() == DATA

    @needs("load")
    def test_an_empty_launch_list_does_nothing(self):
        device = Device[self.device]
        device.queue.submit(device.launch_list([], [], 0), [])
        device.load(self.double_ints())

    def test_signals_order_queues_and_carry_the_time(self):
        """A28"""
        queue, signal = Device[self.device].queue, Signal()
        queue.signal(signal, 3)
        queue.wait(signal, 2)
        queue.timestamp(signal)
        before = signal.timestamp
        queue.barrier()
        queue.timestamp(signal)
        assert (signal.value, 0 < before <= signal.timestamp) == (3, True)

    def test_a_wait_that_nobody_ends_is_an_error(self):
        with pytest.raises(DeviceError, match="awaited is 1"):
            Device[self.device].queue.wait(Signal(), 1, timeout=0.01)
