import struct

import pytest

from contract.objects import DOUBLE_INTS, kernel
from lazulite.base.settings import Context
from lazulite.runtime import compiled_list as module
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.launch_list import Copy, Exec
from lazulite.runtime.registry import Device

CPU = Device["CPU:5"]
ADD_SCALAR = """
  %memory.word = load i64, ptr %args
  %memory = inttoptr i64 %memory.word to ptr
  %scalar.at = getelementptr i64, ptr %args, i64 1
  %scalar = load i64, ptr %scalar.at
  br label %head
head:
  %i = phi i64 [ %begin, %0 ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
  %at = getelementptr i64, ptr %memory, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, %scalar
  store i64 %new, ptr %at
  store i64 %i, ptr %scratch
  %next = add i64 %i, 1
  br label %head
done:
  ret void
"""
"""Adds the scalar in argument 1 to the elements that it is given, and uses its scratch memory."""


def memory(data):
    buffer = Buffer(CPU, len(data)).allocate()
    buffer.copy_in(memoryview(data))
    return buffer


def words(buffer):
    return list(struct.unpack(f"{buffer.nbytes // 8}q", buffer.tobytes()))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_parallel_kernels_of_a_list_are_shared_among_threads(threads):
    """A24, A31"""
    add = CPU.load(kernel(ADD_SCALAR, scratch_bytes=64, parallel=1000))
    elements = memory(bytes(8000))
    launches = CPU.launch_list([Exec(add, (1, 0)), Exec(add, (1, 2))] * 3, [0, elements.handle, -1], 1)
    with Context(THREADS=threads):
        CPU.queue.submit(launches, [5])
        CPU.queue.submit(launches, [2**62])
    assert [3 * 4 + 3 * 2**62 - 3 - 2**64] * 1000 == words(elements)


def test_the_number_of_threads_and_the_scratch_memory_may_change_between_submissions():
    add = CPU.load(kernel(ADD_SCALAR, scratch_bytes=64, parallel=100))
    elements = memory(bytes(800))
    launches = CPU.launch_list([Exec(add, (0, 1))], [elements.handle, 1], 0)
    for threads in (1, 3, 2):
        with Context(THREADS=threads):
            CPU.queue.submit(launches, [])
        CPU.load(kernel(ADD_SCALAR, scratch_bytes=1 << (10 + threads), parallel=100))
    assert [3] * 100 == words(elements)


def test_without_compiled_code_the_commands_are_carried_out_one_by_one(monkeypatch):
    monkeypatch.setattr(module, "walker", lambda: None)
    double = CPU.load(kernel(DOUBLE_INTS))
    first, second = memory(struct.pack("4i", 1, 2, 3, 4)), memory(bytes(16))
    launches = CPU.launch_list([Exec(double, (0,)), Copy(1, 0, CPU)], [first.handle, None], 1)
    launches.rebind(1, second.handle)
    CPU.queue.submit(launches, [first.handle])
    assert struct.unpack("4i", second.tobytes()) == (2, 4, 6, 8)


def test_a_list_of_many_small_kernels_is_one_call(monkeypatch):
    """A24"""
    add = CPU.load(kernel(ADD_SCALAR, scratch_bytes=64))
    monkeypatch.setattr(type(add), "__call__", None)
    element = memory(bytes(8))
    CPU.queue.submit(CPU.launch_list([Exec(add, (0, 1))] * 300, [element.handle, 2], 0), [])
    assert [600] == words(element)
