import threading
import time

import pytest

from contract.objects import DOUBLE_INTS, kernel
from lazulite.base.errors import DeviceError
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.counters import GlobalCounters
from lazulite.runtime.device import Program
from lazulite.runtime.devices.cpu import CpuDevice
from lazulite.runtime.queue import Signal


class Call(Program):
    """A program that is a Python function."""

    name = "call"

    def __init__(self, function):
        self.function = function

    def __call__(self, arguments):
        self.function(*arguments)


@pytest.fixture
def queue():
    return CpuDevice("CPU").queue


def test_an_error_reaches_the_caller_with_the_name_of_the_program_and_the_device(queue):
    def fail():
        raise ArithmeticError("wrong")

    with pytest.raises(ArithmeticError) as caught:
        queue.exec(Call(fail), [])
    assert caught.value.__notes__ == ["call on CPU"]


def test_an_interrupt_leaves_the_queue_usable(queue):
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        queue.exec(Call(interrupt), [])
    data = Buffer(queue.device, 16).allocate()
    data.copy_in(memoryview(bytes([1, 0, 0, 0] * 4)))
    other = threading.Thread(target=lambda: queue.exec(queue.device.load(kernel(DOUBLE_INTS)), [data.handle]))
    other.start()
    other.join()
    assert data.tobytes() == bytes([2, 0, 0, 0] * 4)


def test_programs_of_several_threads_run_one_after_another(queue):
    inside, most = [], []

    def work():
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.001)
        inside.pop()

    threads = [threading.Thread(target=lambda: [queue.exec(Call(work), []) for _ in range(5)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 15


def test_programs_that_ran_are_counted(queue):
    before = GlobalCounters.kernel_count
    queue.exec(Call(lambda number: None), [7])
    queue.exec(Call(lambda: None), [])
    assert GlobalCounters.kernel_count == before + 2


def test_a_copy_between_buffers_of_different_sizes_is_refused(queue):
    big, small = (Buffer(queue.device, size).allocate() for size in (8, 4))
    with pytest.raises(DeviceError, match="8 bytes"):
        queue.copy(big, small)


def test_a_wait_ends_when_another_queue_sets_the_signal(queue):
    """A28"""
    signal = Signal()
    timer = threading.Timer(0.02, lambda: CpuDevice("CPU:1").queue.signal(signal, 5))
    timer.start()
    queue.wait(signal, 5, timeout=10)
    timer.join()
    assert signal.value == 5


def test_progress_resets_the_time_of_a_wait(queue):
    """A29: each step comes within the time-out, all together take longer."""
    signal = Signal()

    def advance():
        for value in range(1, 6):
            time.sleep(0.25)
            signal.set(value)

    other = threading.Thread(target=advance)
    other.start()
    queue.wait(signal, 5, timeout=1)
    other.join()
    with pytest.raises(DeviceError, match=r"no progress for 0\.01 s: the signal is at 5, awaited is 6"):
        queue.wait(signal, 6, timeout=0.01)
