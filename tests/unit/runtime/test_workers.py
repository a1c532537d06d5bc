import ctypes
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.objects import compile_ir, kernel
from lazulite.base.settings import Context
from lazulite.runtime import workers as workers_module
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.devices.cpu import CpuDevice
from lazulite.runtime.loader import load_object
from lazulite.runtime.workers import Job, Scratch, Workers, usable_cores

MEET = """
declare void @llvm.x86.sse2.pause()
declare i64 @llvm.readcyclecounter()
define void @kernel(ptr %args, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %address = load i64, ptr %args
  %count = inttoptr i64 %address to ptr
  %before = atomicrmw add ptr %count, i64 1 seq_cst
  %start = call i64 @llvm.readcyclecounter()
  br label %wait
wait:
  %now = load atomic i64, ptr %count seq_cst, align 8
  %met = icmp sge i64 %now, 2
  %turn = call i64 @llvm.readcyclecounter()
  %time = sub i64 %turn, %start
  %late = icmp ugt i64 %time, 60000000000
  %stop = or i1 %met, %late
  br i1 %stop, label %linger, label %wait
linger:
  %cycles.at = getelementptr i64, ptr %args, i64 1
  %cycles = load i64, ptr %cycles.at
  %own = mul i64 %cycles, %before
  %since = call i64 @llvm.readcyclecounter()
  br label %stay
stay:
  call void @llvm.x86.sse2.pause()
  %then = call i64 @llvm.readcyclecounter()
  %spent = sub i64 %then, %since
  %more = icmp ult i64 %spent, %own
  br i1 %more, label %stay, label %leave
leave:
  %place = getelementptr i64, ptr %count, i64 %end
  %flag = zext i1 %met to i64
  store i64 %flag, ptr %place
  ret void
}
"""
"""Each chunk waits until the other has arrived, and notes that they met at the place of its end.

The one that comes second stays inside for as many cycles as argument 1 says.
"""
COUNT = """
entry:
  %address = load i64, ptr %args
  %memory = inttoptr i64 %address to ptr
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %place = getelementptr i64, ptr %memory, i64 %i
  %old = load i64, ptr %place
  store i64 %old, ptr %scratch
  %kept = load i64, ptr %scratch
  %new = add i64 %kept, 1
  store i64 %new, ptr %place
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
"""
"""Adds 1 to each of the words that argument 0 points to, through scratch memory."""


class Words:
    """A compiled job over int64 words."""

    def __init__(self, code, extent, count, *scalars):
        self.memory = (ctypes.c_int64 * count)()
        self.args = (ctypes.c_int64 * (1 + len(scalars)))(ctypes.addressof(self.memory), *scalars)
        scratch = Scratch()
        scratch.reserve(8)
        function = load_object(code).function("kernel")
        self.job = Job(function, ctypes.c_void_p(ctypes.addressof(self.args)), extent, scratch)


def meeting(cycles=0):
    """A job whose two chunks have to run at once."""
    return Words(compile_ir(MEET), 2, 3, cycles)


def counting(extent):
    return Words(kernel(COUNT).code, extent, extent)


def called(function, extent, scratch=None):
    """A job that calls a Python function with (begin, end, address of the scratch memory)."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    native = kind(lambda _, begin, end, place: function(begin, end, place))
    return Job(native, ctypes.c_void_p(0), extent, scratch or Scratch())


@pytest.fixture
def workers():
    pool = Workers()
    yield pool
    pool.stop()


def test_two_chunks_of_one_kernel_run_at_the_same_time(workers):
    """A31"""
    for pause in (0, 0, 0.01, 0):  # helpers spin, or sleep already
        time.sleep(pause)
        met = meeting()
        with Context(THREADS=2):
            workers.run(met.job)
        assert list(met.memory) == [2, 1, 1]


@pytest.mark.parametrize("cycles", [0, 10_000, 1_000_000])
def test_a_run_ends_when_the_last_chunk_has(workers, cycles):
    """The caller spins or sleeps meanwhile, whichever of the two chunks it had."""
    for _ in range(20):
        met = meeting(cycles)
        with Context(THREADS=2):
            workers.run(met.job)
        assert list(met.memory) == [2, 1, 1]


@given(extent=st.integers(1, 100), threads=st.integers(1, 5))
def test_chunks_cover_the_range_once_for_every_number_of_threads(extent, threads):
    pool, seen = Workers(), []
    with Context(THREADS=threads):
        pool.run(called(lambda begin, end, _: seen.extend(range(begin, end)), extent))
    pool.stop()
    assert sorted(seen) == list(range(extent))


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_many_short_kernels_lose_and_repeat_nothing(workers, threads):
    """A31"""
    work, chance = counting(37), random.Random(threads)
    with Context(THREADS=threads):
        for _ in range(2000):
            workers.run(work.job)
            if chance.random() < 0.02:
                time.sleep(chance.random() * 5e-4)  # about as long as helpers spin
    assert list(work.memory) == [2000] * 37


def test_the_number_of_threads_may_change_from_run_to_run(workers):
    work, chance = counting(37), random.Random(0)
    for _ in range(500):
        with Context(THREADS=chance.randint(1, 5)):
            workers.run(work.job)
    assert list(work.memory) == [500] * 37


def test_several_threads_may_run_kernels_at_once(workers):
    works = [counting(29) for _ in range(4)]

    def submit(work):
        with Context(THREADS=2):
            for _ in range(1000):
                workers.run(work.job)

    threads = [threading.Thread(target=submit, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [list(work.memory) for work in works] == [[1000] * 29] * 4


def test_one_thread_starts_no_helper(workers):
    before = threading.active_count()
    with Context(THREADS=1):
        workers.run(called(lambda *chunk: None, 10))
    assert threading.active_count() == before


def test_every_thread_has_scratch_memory_of_its_own(workers):
    inside, places, scratch = threading.Barrier(3), [], Scratch()
    scratch.reserve(1000)

    def work(begin, end, place):
        places.append(place)
        inside.wait(30)

    with Context(THREADS=3):
        workers.run(called(work, 3, scratch))
    assert [place % 64 for place in places] == [0, 0, 0]
    first, second, third = sorted(places)
    assert second - first >= 1000 and third - second >= 1000


def test_a_thread_begins_each_kernel_with_the_same_share(workers):
    """What it left in the caches of its core is what it needs next."""
    for _ in range(5):
        inside, firsts = threading.Barrier(2), {}

        def work(begin, end, _, inside=inside, firsts=firsts):
            if firsts.setdefault(threading.current_thread(), begin) == begin:
                inside.wait(30)

        with Context(THREADS=2):
            workers.run(called(work, 8))
        assert 0 == firsts.pop(threading.current_thread())
        assert [4] == list(firsts.values())


def test_more_threads_than_shares_lose_and_repeat_nothing(workers):
    work = counting(150)
    with Context(THREADS=70):
        for _ in range(5):
            workers.run(work.job)
    assert list(work.memory) == [5] * 150


def test_scratch_memory_grows_and_its_pointer_follows():
    scratch = Scratch()
    pointer = scratch.pointer
    for size, threads in ((1, 1), (5000, 1), (100, 3), (10, 2)):
        scratch.reserve(size, threads)
        ctypes.memset(pointer, 1, size * threads)
    assert (scratch.size >= 5000, scratch.threads, pointer.value % 64, scratch.size % 64) == (True, 3, 0, 0)


def test_a_pool_that_serves_another_thread_lets_the_caller_work_alone(workers):
    begun, go_on, alone = threading.Event(), threading.Event(), []

    def hold(*chunk):
        begun.set()
        go_on.wait(10)

    def submit():
        with Context(THREADS=2):
            workers.run(called(hold, 2))

    other = threading.Thread(target=submit)
    other.start()
    begun.wait(10)
    with Context(THREADS=2):
        workers.run(called(lambda begin, end, _: alone.append((begin, end)), 4))
    go_on.set()
    other.join()
    assert alone == [(0, 4)]


def test_stopped_helpers_are_gone_and_the_next_kernel_starts_new_ones(workers):
    before = threading.active_count()
    for _ in range(3):
        met = meeting()
        with Context(THREADS=2):
            workers.run(met.job)
        assert threading.active_count() == before + 1
        workers.stop()
        assert (threading.active_count(), list(met.memory)) == (before, [2, 1, 1])


def test_without_compiled_code_or_threads_the_caller_does_everything(workers, monkeypatch):
    def no_thread(thread):
        raise RuntimeError("can't start new thread")

    work = counting(10)
    with Context(THREADS=3), monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        workers.run(work.job)
        patch.setattr(workers_module, "fork_join", lambda: None)
        workers.run(work.job)
    assert list(work.memory) == [2] * 10


def test_an_interrupt_is_delivered_when_no_helper_is_at_work_any_more(workers):
    met, after = meeting(400_000_000), counting(9)
    timer = threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGINT))
    with Context(THREADS=2):
        workers.run(after.job)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            workers.run(met.job)
            timer.join(10)
        assert list(met.memory) == [2, 1, 1]
        workers.run(after.job)
    assert list(after.memory) == [2] * 9


PROGRAM = """
import ctypes, os, sys, threading
from lazulite.base.settings import Context
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.registry import Device
from lazulite.runtime.workers import WORKERS, Job, Scratch

kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

def parallel():
    inside = threading.Barrier(3)
    seen = []
    def work(arguments, begin, end, scratch):
        seen.append(begin)
        inside.wait(30)
    with Context(THREADS=3):
        WORKERS.run(Job(kind(work), ctypes.c_void_p(0), 3, Scratch()))
    return sorted(seen) == [0, 1, 2]

kept = Buffer(Device["CPU"], 1 << 20).allocate()
kept.copy_in(memoryview(bytes(1 << 20)))
assert parallel()
child = os.fork()
kept.copy_in(memoryview(bytes([1 if child else 2]) * (1 << 20)))
assert parallel()
Buffer(Device["CPU"], 1 << 20).allocate()
assert set(kept.tobytes()) == {1 if child else 2}
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_threads_and_memory_work_in_the_child_of_a_fork_and_at_the_end_of_the_process():
    """A54"""
    result = subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM], capture_output=True,
                            text=True, timeout=60, check=False)  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")


def test_kernels_of_the_device_are_shared_among_threads():
    """A31"""
    device = CpuDevice("CPU")
    memory = Buffer(device, 8 * 1000).allocate()
    memory.copy_in(memoryview(bytes(8000)))
    program = device.load(kernel(COUNT, scratch_bytes=8, parallel=1000))
    for threads in range(1, 5):
        with Context(THREADS=threads):
            device.queue.exec(program, [memory.handle])
    assert memory.map().cast("q").tolist() == [4] * 1000


def test_a_core_of_which_nothing_is_known_counts_as_one(monkeypatch):
    def no_file(name):
        raise OSError(name)

    monkeypatch.setattr(workers_module, "open", no_file, raising=False)
    assert usable_cores.__wrapped__() == len(os.sched_getaffinity(0))


def test_usable_cores_are_no_more_than_the_process_may_run_on():
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))


def test_no_helper_runs_where_the_caller_does(monkeypatch):
    """A31."""
    processors = os.sched_getaffinity(0)
    if len(processors) < 2:
        pytest.skip("never: one processor has room for one thread")
    pool, scratch = Workers(), Scratch()
    scratch.reserve(64)
    words = (ctypes.c_int64 * 1)()
    function = load_object(kernel("ret void").code).function("kernel")
    job = Job(function, ctypes.c_void_p(ctypes.addressof(words)), 8, scratch)
    try:
        for here in sorted(processors)[:2]:
            monkeypatch.setattr(workers_module, "current_processor", lambda here=here: here)
            with Context(THREADS=2):
                pool.run(job)
            (helper,) = pool._helpers
            assert os.sched_getaffinity(helper.native_id) == processors - {here}
    finally:
        pool.stop()
