"""The compiled half of the workers: how threads come together for one kernel without the interpreter.

The functions are LLVM assembly.  They are compiled once, kept on disk like kernels, and loaded like
them; they call nothing but the kernel and the system's futex.

    run(block, job)   run a job with whoever comes along; returns when nobody works on it any more
    serve(block, n)   what a helper thread, the n-th, does until the end: wait, join, wait
    stop(block)       let the helpers return

A job is seven words: address of the kernel, of its arguments, extent, threads, chunks, scratch memory
and the bytes of it for each thread.  The caller publishes it, opens the gate, and takes chunks like
everybody else until none is left.  Then it closes the gate and waits until those inside have left.
Each thread has a share of neighbouring chunks that it takes first, the same one of each job, so what it
left in the caches of its core is what it needs next; whoever is done takes from the others.
A helper that comes late finds no chunk or a closed gate, so a thread that the system does not run
delays nobody.  Who waits spins for a while before sleeping.

Invariant: the words of a job and the memory of its kernel are only touched between the begin and the
end of `run`.  A second caller does not wait: it runs all of its kernel itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

from lazulite.runtime.loader import Image
from lazulite.runtime.support_code import loaded

_SPIN = 200_000
"""Cycles of the time stamp counter before a thread sleeps: 50 us at 4 GHz, 100 us at 2 GHz."""
_LINE = 64
_CALLS, _STOP, _SLEEPERS, _JOB = 0, 4, 8, 16
_GATE, _BUSY, _TAKEN = _LINE, 2 * _LINE, 3 * _LINE
_SHARES = 64
"""The most shares of a job; of more threads some begin with the same one."""
_BLOCK_BYTES = _TAKEN + _SHARES * _LINE
"""Places in the block, a cache line for each thing that several threads write.

The count of calls tells helpers that there is a job; it and the gate are what threads sleep on.
"""
_OPEN, _CALLER_SLEEPS, _COUNT = -(1 << 31), 1 << 30, (1 << 30) - 1
"""The gate: whether a job may be entered, whether its caller sleeps, and how many helpers are inside."""
_FUTEX, _WAIT, _WAKE = 202, 128, 129  # the call's number on x86-64; both operations within one process

_SOURCE = f"""
declare void @llvm.x86.sse2.pause()
declare i64 @llvm.readcyclecounter()

define internal void @futex(ptr %word, i64 %operation, i64 %value) nounwind {{
  %result = call i64 asm sideeffect "syscall",
    "={{rax}},{{rax}},{{rdi}},{{rsi}},{{rdx}},{{r10}},~{{rcx}},~{{r11}},~{{memory}}"
    (i64 {_FUTEX}, ptr %word, i64 %operation, i64 %value, i64 0)
  ret void
}}

; Wait until the word is not %value; it may return before.
define internal void @wait(ptr %word, i32 %value) nounwind {{
  %wide = zext i32 %value to i64
  call void @futex(ptr %word, i64 {_WAIT}, i64 %wide)
  ret void
}}

define internal void @wake(ptr %word) nounwind {{
  call void @futex(ptr %word, i64 {_WAKE}, i64 2147483647)
  ret void
}}

; How many shares a job has.
define internal i64 @shares(ptr %job) nounwind {{
  %threads.at = getelementptr i64, ptr %job, i64 3
  %threads = load i64, ptr %threads.at
  %few = icmp slt i64 %threads, {_SHARES}
  %shares = select i1 %few, i64 %threads, i64 {_SHARES}
  ret i64 %shares
}}

; The counter of the chunks that are taken from a share.
define internal ptr @taken(ptr %block, i64 %share) nounwind {{
  %line = mul i64 %share, {_LINE}
  %place = add i64 %line, {_TAKEN}
  %taken.at = getelementptr i8, ptr %block, i64 %place
  ret ptr %taken.at
}}

; Take chunks as long as there are any, those of one's own share first.  %place is the number of this thread.
define internal void @work(ptr %block, ptr %job, i64 %place) nounwind {{
entry:
  %kernel = load ptr, ptr %job
  %args.at = getelementptr i64, ptr %job, i64 1
  %args = load ptr, ptr %args.at
  %extent.at = getelementptr i64, ptr %job, i64 2
  %extent = load i64, ptr %extent.at
  %chunks.at = getelementptr i64, ptr %job, i64 4
  %chunks = load i64, ptr %chunks.at
  %memory.at = getelementptr i64, ptr %job, i64 5
  %memory = load ptr, ptr %memory.at
  %each.at = getelementptr i64, ptr %job, i64 6
  %each = load i64, ptr %each.at
  %offset = mul i64 %each, %place
  %scratch = getelementptr i8, ptr %memory, i64 %offset
  %shares = call i64 @shares(ptr %job)
  br label %look
look:
  %seen = phi i64 [ 0, %entry ], [ %others, %used ]
  %nearest = add i64 %place, %seen
  %share = urem i64 %nearest, %shares
  %taken.at = call ptr @taken(ptr %block, i64 %share)
  %before = mul i64 %chunks, %share
  %first = udiv i64 %before, %shares
  %upto = add i64 %before, %chunks
  %last = udiv i64 %upto, %shares
  br label %take
take:
  %taken = atomicrmw add ptr %taken.at, i64 1 seq_cst
  %chunk = add i64 %first, %taken
  %some = icmp slt i64 %chunk, %last
  br i1 %some, label %run, label %used
run:
  %low = mul i64 %extent, %chunk
  %begin = udiv i64 %low, %chunks
  %high = add i64 %low, %extent
  %end = udiv i64 %high, %chunks
  call void %kernel(ptr %args, i64 %begin, i64 %end, ptr %scratch)
  br label %take
used:
  %others = add i64 %seen, 1
  %more = icmp slt i64 %others, %shares
  br i1 %more, label %look, label %none
none:
  ret void
}}

; Return when no helper is inside; the gate is closed.
define internal void @empty(ptr %gate) nounwind {{
entry:
  %start = call i64 @llvm.readcyclecounter()
  br label %spin
spin:
  %seen = load atomic i32, ptr %gate seq_cst, align 4
  %inside = and i32 %seen, {_COUNT}
  %nobody = icmp eq i32 %inside, 0
  br i1 %nobody, label %done, label %look
look:
  call void @llvm.x86.sse2.pause()
  %now = call i64 @llvm.readcyclecounter()
  %time = sub i64 %now, %start
  %more = icmp ult i64 %time, {_SPIN}
  br i1 %more, label %spin, label %sleep
sleep:
  %before = atomicrmw or ptr %gate, i32 {_CALLER_SLEEPS} seq_cst
  %left = and i32 %before, {_COUNT}
  %gone = icmp eq i32 %left, 0
  br i1 %gone, label %awake, label %rest
rest:
  %value = or i32 %before, {_CALLER_SLEEPS}
  call void @wait(ptr %gate, i32 %value)
  br label %sleep
awake:
  %last = atomicrmw and ptr %gate, i32 {~_CALLER_SLEEPS} seq_cst
  ret void
done:
  ret void
}}

define void @run(ptr %block, ptr %job) nounwind {{
entry:
  %busy.at = getelementptr i8, ptr %block, i64 {_BUSY}
  %busy = atomicrmw xchg ptr %busy.at, i32 1 seq_cst
  %free = icmp eq i32 %busy, 0
  br i1 %free, label %together, label %alone
alone:
  %kernel = load ptr, ptr %job
  %args.at = getelementptr i64, ptr %job, i64 1
  %args = load ptr, ptr %args.at
  %extent.at = getelementptr i64, ptr %job, i64 2
  %extent = load i64, ptr %extent.at
  %scratch.at = getelementptr i64, ptr %job, i64 5
  %scratch = load ptr, ptr %scratch.at
  call void %kernel(ptr %args, i64 0, i64 %extent, ptr %scratch)
  ret void
together:
  %job.at = getelementptr i8, ptr %block, i64 {_JOB}
  store ptr %job, ptr %job.at
  %shares = call i64 @shares(ptr %job)
  br label %fill
fill:
  %share = phi i64 [ 0, %together ], [ %after, %fill ]
  %taken.at = call ptr @taken(ptr %block, i64 %share)
  store i64 0, ptr %taken.at
  %after = add i64 %share, 1
  %unfilled = icmp slt i64 %after, %shares
  br i1 %unfilled, label %fill, label %publish
publish:
  %gate = getelementptr i8, ptr %block, i64 {_GATE}
  %closed = atomicrmw or ptr %gate, i32 {_OPEN} seq_cst
  %calls = atomicrmw add ptr %block, i32 1 seq_cst
  %sleepers.at = getelementptr i8, ptr %block, i64 {_SLEEPERS}
  %sleepers = load atomic i32, ptr %sleepers.at seq_cst, align 4
  %asleep = icmp ne i32 %sleepers, 0
  br i1 %asleep, label %call, label %begin
call:
  call void @wake(ptr %block)
  br label %begin
begin:
  call void @work(ptr %block, ptr %job, i64 0)
  %open = atomicrmw and ptr %gate, i32 {~_OPEN} seq_cst
  call void @empty(ptr %gate)
  store atomic i32 0, ptr %busy.at seq_cst, align 4
  ret void
}}

define void @serve(ptr %block, i64 %place) nounwind {{
entry:
  %stop.at = getelementptr i8, ptr %block, i64 {_STOP}
  %gate = getelementptr i8, ptr %block, i64 {_GATE}
  %job.at = getelementptr i8, ptr %block, i64 {_JOB}
  %sleepers.at = getelementptr i8, ptr %block, i64 {_SLEEPERS}
  br label %attend
attend:
  %seen = load atomic i32, ptr %block seq_cst, align 4
  %stop = load atomic i32, ptr %stop.at seq_cst, align 4
  %on = icmp eq i32 %stop, 0
  br i1 %on, label %enter, label %end
enter:
  %before = atomicrmw add ptr %gate, i32 1 seq_cst
  %open = icmp slt i32 %before, 0
  br i1 %open, label %join, label %leave
join:
  %job = load ptr, ptr %job.at
  %threads.at = getelementptr i64, ptr %job, i64 3
  %threads = load i64, ptr %threads.at
  %wanted = icmp slt i64 %place, %threads
  br i1 %wanted, label %help, label %leave
help:
  call void @work(ptr %block, ptr %job, i64 %place)
  br label %leave
leave:
  %inside = atomicrmw sub ptr %gate, i32 1 seq_cst
  %last = icmp eq i32 %inside, {_CALLER_SLEEPS + 1}
  br i1 %last, label %tell, label %idle
tell:
  call void @wake(ptr %gate)
  br label %idle
idle:
  %start = call i64 @llvm.readcyclecounter()
  br label %spin
spin:
  %now = load atomic i32, ptr %block seq_cst, align 4
  %same = icmp eq i32 %now, %seen
  br i1 %same, label %look, label %attend
look:
  call void @llvm.x86.sse2.pause()
  %cycles = call i64 @llvm.readcyclecounter()
  %time = sub i64 %cycles, %start
  %more = icmp ult i64 %time, {_SPIN}
  br i1 %more, label %spin, label %sleep
sleep:
  %one = atomicrmw add ptr %sleepers.at, i32 1 seq_cst
  call void @wait(ptr %block, i32 %seen)
  %less = atomicrmw sub ptr %sleepers.at, i32 1 seq_cst
  %then = load atomic i32, ptr %block seq_cst, align 4
  %still = icmp eq i32 %then, %seen
  br i1 %still, label %sleep, label %attend
end:
  ret void
}}

define void @stop(ptr %block) nounwind {{
  %stop.at = getelementptr i8, ptr %block, i64 {_STOP}
  store atomic i32 1, ptr %stop.at seq_cst, align 4
  %calls = atomicrmw add ptr %block, i32 1 seq_cst
  call void @wake(ptr %block)
  ret void
}}
"""


class Block:
    """What the threads of one pool share; `pointer` is the first argument of each function."""

    def __init__(self) -> None:
        self._memory = bytearray(_BLOCK_BYTES + _LINE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.pointer = ctypes.c_void_p(address + -address % _LINE)


class ForkJoin:
    """The functions, loaded."""

    def __init__(self, image: Image) -> None:
        self.run: Callable[..., None] = image.function("run")
        self.serve: Callable[..., None] = image.function("serve")
        self.stop: Callable[..., None] = image.function("stop")
        self.run_address = image.functions["run"]


@cache
def fork_join() -> ForkJoin | None:
    """The functions, from disk or compiled now; None where they are not on disk and LLVM is not installed."""
    image = loaded("workers", _SOURCE)
    return None if image is None else ForkJoin(image)
