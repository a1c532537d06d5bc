import ctypes
import struct

import pytest

from contract.objects import DOUBLE_INTS, kernel
from lazulite.base.errors import DeviceError
from lazulite.base.settings import Context
from lazulite.emit.base import Binary
from lazulite.ir.target import target
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.devices import cpu
from lazulite.runtime.devices.cpu import CpuDevice

NUMBER_ARGUMENTS = """
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %word = getelementptr i64, ptr %args, i64 %i
  %address = load i64, ptr %word
  %memory = inttoptr i64 %address to ptr
  store i64 %i, ptr %memory
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, 150
  br i1 %more, label %loop, label %done
done:
  ret void
"""
STORE_SCALAR = """
  %address = load i64, ptr %args
  %memory = inttoptr i64 %address to ptr
  %word = getelementptr i64, ptr %args, i64 1
  %bits = load i64, ptr %word
  store i64 %bits, ptr %memory
  ret void
"""
SQUARES_THROUGH_SCRATCH = """
entry:
  %address = load i64, ptr %args
  %memory = inttoptr i64 %address to ptr
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %private = getelementptr i64, ptr %scratch, i64 %i
  %square = mul i64 %i, %i
  store i64 %square, ptr %private
  %again = load i64, ptr %private
  %place = getelementptr i64, ptr %memory, i64 %i
  store i64 %again, ptr %place
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
"""


@pytest.fixture
def device():
    return CpuDevice("CPU")


def test_a_kernel_may_have_any_number_of_arguments(device):
    """A31"""
    buffers = [Buffer(device, 8).allocate() for _ in range(150)]
    device.queue.exec(device.load(kernel(NUMBER_ARGUMENTS)), [buffer.handle for buffer in buffers])
    assert [int.from_bytes(buffer.tobytes(), "little") for buffer in buffers] == list(range(150))


@pytest.mark.parametrize("bits", [0, 7, -1, 2**63 - 1, -(2**63), 2**64 - 1])
def test_a_scalar_is_passed_as_its_bits(device, bits):
    result = Buffer(device, 8).allocate()
    device.queue.exec(device.load(kernel(STORE_SCALAR)), [result.handle, bits])
    assert struct.unpack("Q", result.tobytes())[0] == bits % 2**64


def test_the_number_of_arguments_may_change_from_call_to_call(device):
    program, memory = device.load(kernel(DOUBLE_INTS)), Buffer(device, 16).allocate()
    memory.copy_in(memoryview(struct.pack("4i", 1, 2, 3, 4)))
    for more in ([], [1, 2], [9]):
        device.queue.exec(program, [memory.handle, *more])
    assert struct.unpack("4i", memory.tobytes()) == (8, 16, 24, 32)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_results_are_the_same_for_every_number_of_threads(device, threads):
    """A31"""
    memory = Buffer(device, 8 * 100).allocate()
    program = device.load(kernel(SQUARES_THROUGH_SCRATCH, scratch_bytes=800, parallel=100))
    with Context(THREADS=threads):
        device.queue.exec(program, [memory.handle])
    assert struct.unpack("100q", memory.tobytes()) == tuple(i * i for i in range(100))


def test_scratch_memory_that_grows_later_is_seen_by_programs_loaded_before(device):
    memory = Buffer(device, 8 * 100).allocate()
    program = device.load(kernel(SQUARES_THROUGH_SCRATCH, scratch_bytes=800, parallel=100))
    for larger in (1 << 16, 1 << 20):
        device.load(kernel(DOUBLE_INTS, scratch_bytes=larger))
        memory.copy_in(memoryview(bytes(800)))
        with Context(THREADS=1):
            device.queue.exec(program, [memory.handle])
        assert struct.unpack("100q", memory.tobytes()) == tuple(i * i for i in range(100))


def test_only_machine_code_is_loaded(device):
    with pytest.raises(DeviceError, match="k is text, not machine code"):
        device.load(Binary("k", b"kernel", "text"))


def test_large_memory_is_writable_to_its_last_byte(device):
    for size in (1, 127 << 10, 128 << 10, (4 << 20) - 1, 4 << 20, (4 << 20) + 12345):
        handle = device.allocate(size)
        ctypes.memset(handle.address, 255, size)
        assert (handle.address % 64, device.map(handle)[-1], len(device.map(handle))) == (0, 255, size)


def test_the_target_follows_the_settings(device):
    with Context(THREADS=3, CPU_FEATURES="-avx512f,-avx2,-avx"):
        assert (device.target.threads, device.target.vector_bytes) == (3, 16)


def test_a_setting_keeps_vector_code(device, monkeypatch):
    monkeypatch.setattr(cpu, "host", lambda *settings: target("CPU:LLVM", ("amx-tile", "amx-int8")))
    with Context(MATRIX_UNITS=0):
        assert () == device.target.matrix
    assert device.target.matrix
