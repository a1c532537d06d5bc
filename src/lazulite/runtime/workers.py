"""Threads that share the work of parallel kernels.

`Workers.run` cuts the outermost range of a kernel into chunks, which the calling thread and helpers
take one after another inside compiled code (`runtime/fork_join.py`).  Helpers are daemon threads that
enter that code once; they are started when first needed, and anew after a fork.  Results do not depend
on the number of threads: it only decides where the cuts are.  While the helpers serve another thread,
and where there is no compiled code for them, the caller simply does everything itself.

Invariant: when `run` returns, no helper touches the memory of that kernel.  An interrupt that arrives
meanwhile is delivered after that, as `run` is one call of compiled code.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from lazulite.base.settings import SETTINGS
from lazulite.runtime.fork_join import Block, ForkJoin, fork_join
from lazulite.runtime.forking import renew_after_fork

Kernel = Callable[..., object]
"""A ctypes function, called with (arguments, begin, end, scratch) as ctypes values."""
_SCRATCH_ALIGNMENT = 64
_LIBRARY = ctypes.PyDLL(None)
_CHUNKS_PER_THREAD = 4
"""More than one, so that a thread which comes late or is slow gets less to do."""


class Scratch:
    """Memory that kernels use while they run, as much for each thread; `pointer` is the first thread's."""

    def __init__(self) -> None:
        self.pointer = ctypes.c_void_p(0)
        self.size = self.threads = 0
        self.moves = 0
        """How often the memory was replaced by a larger one."""
        self._memory = bytearray()

    def reserve(self, size: int, threads: int = 1) -> None:
        """Have at least `size` bytes for each thread.  Not while a kernel uses the memory."""
        if size > self.size or threads > self.threads:
            size = max(self.size, size + -size % _SCRATCH_ALIGNMENT)
            threads = max(self.threads, threads)
            self._memory = bytearray(size * threads + _SCRATCH_ALIGNMENT)
            address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
            self.pointer.value = address + -address % _SCRATCH_ALIGNMENT
            self.size, self.threads = size, threads
            self.moves += 1


def threads_for(extent: int, threads: int, scratch: Scratch) -> list[ctypes.c_int64 | int]:
    """The last four words of a job over 0..extent: threads, chunks, scratch memory, bytes of it for each thread."""
    threads = min(threads, extent)
    return [threads, min(extent, threads * _CHUNKS_PER_THREAD), scratch.pointer.value or 0, scratch.size]


class Job:
    """A kernel over 0..extent with its arguments, which are read anew at each run."""

    def __init__(self, kernel: Kernel, arguments: ctypes.c_void_p, extent: int, scratch: Scratch) -> None:
        self.extent = extent
        self._kernel, self._arguments, self._scratch = kernel, arguments, scratch
        address = ctypes.cast(kernel, ctypes.c_void_p)  # type: ignore[arg-type]
        self.words = (ctypes.c_int64 * 7)(address.value or 0, arguments.value or 0, extent)
        """As compiled code reads them: see `runtime/fork_join.py`."""

    def share(self, threads: int) -> None:
        """Prepare for a number of threads."""
        scratch = self._scratch
        scratch.reserve(scratch.size, threads)
        self.words[3:] = threads_for(self.extent, threads, scratch)

    def run_alone(self) -> None:
        self._kernel(self._arguments, ctypes.c_int64(0), ctypes.c_int64(self.extent), self._scratch.pointer)


class Workers:
    """A pool of helpers.  The number of threads is the setting THREADS at each call."""

    def __init__(self) -> None:
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._block, self._helpers, self._lock = Block(), list[threading.Thread](), threading.Lock()
        self._kept_free = -1

    def run(self, job: Job) -> None:
        """Run all of a job.  The same job, or another with its scratch memory, must not run meanwhile."""
        threads = min(SETTINGS.THREADS or usable_cores(), job.extent)
        code = fork_join() if threads > 1 else None
        if code is None:
            job.run_alone()
            return
        block = self.assembled(code, threads)  # kept until the call returns
        job.share(threads)
        code.run(block.pointer, job.words)

    def assembled(self, code: ForkJoin, threads: int) -> Block:
        """Have the helpers for a number of threads; what they and the caller of a parallel kernel share."""
        if len(self._helpers) < threads - 1:
            self._start(code, threads - 1)
        self._keep_apart()
        return self._block

    def _keep_apart(self) -> None:
        """Let no helper run on the caller's processor: the system likes to wake it exactly there, and then both
        take turns on one core while another is idle."""
        here = current_processor()
        if here == self._kept_free:
            return
        self._kept_free = here
        others = os.sched_getaffinity(0) - {here}
        for helper in self._helpers if others else ():
            with suppress(OSError, TypeError):  # it has ended, or has not begun
                os.sched_setaffinity(helper.native_id, others)  # type: ignore[arg-type]

    def stop(self) -> None:
        """End the threads; the next parallel kernel starts new ones."""
        with self._lock:
            block, helpers = self._block, self._helpers
            self._block, self._helpers = Block(), []
        code = fork_join() if helpers else None
        if code is not None:
            code.stop(block.pointer)
        for helper in helpers:
            helper.join()

    def _start(self, code: ForkJoin, count: int) -> None:
        """Have as many helpers; fewer are no harm, so what cannot be started is left out."""
        with self._lock:
            while len(self._helpers) < count:
                number = len(self._helpers) + 1
                helper = threading.Thread(
                    target=_serve, args=(code, self._block, number), name=f"lazulite-{number}", daemon=True
                )
                try:
                    helper.start()
                except RuntimeError:  # the system has no more threads, or the process is ending
                    return
                self._helpers.append(helper)
                self._kept_free = -1


def _serve(code: ForkJoin, block: Block, number: int) -> None:
    code.serve(block.pointer, ctypes.c_int64(number))


def current_processor() -> int:
    """The number of the processor that this thread runs on now."""
    return int(_LIBRARY.sched_getcpu())


@cache
def usable_cores() -> int:
    """Physical cores that this process may run on.

    Two hardware threads of a core share its arithmetic units, so the second would only get in the way.
    """
    cores = set()
    for number in os.sched_getaffinity(0):
        try:
            with open(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list") as file:
                cores.add(file.read().strip())
        except OSError:  # not told: it counts as a core of its own
            cores.add(str(number))
    return max(len(cores), 1)


WORKERS = Workers()
"""The helpers of this process; all CPU devices share them."""
atexit.register(WORKERS.stop)
