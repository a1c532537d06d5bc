"""The compiled loop that carries out a launch list of the processor.

`walk(list)` is LLVM assembly, compiled once and kept on disk like the functions of `runtime/fork_join.py`.
A list is five words: how many records, the address of the first, that of the table of slots, and what
parallel kernels need: the block of the helpers and the address of `run`.  A record is ten words:

    0..6  the job: kernel, arguments, extent, threads, chunks, scratch memory, bytes of it for each thread
    7     how many arguments
    8     the address of the slots' numbers, one for each argument
    9     bytes to copy from the second slot to the first, where the kernel is 0

The arguments of a record are gathered from the table just before it runs, so whoever changes a slot
writes one word.  Invariant: nothing is touched outside the words that the list leads to.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

from lazulite.runtime.loader import Image
from lazulite.runtime.support_code import loaded

RECORD = 10
"""Words of a record."""

_SOURCE = f"""
define internal void @gather(ptr %record, ptr %table) nounwind {{
entry:
  %args.at = getelementptr i64, ptr %record, i64 1
  %args = load ptr, ptr %args.at
  %count.at = getelementptr i64, ptr %record, i64 7
  %count = load i64, ptr %count.at
  %numbers.at = getelementptr i64, ptr %record, i64 8
  %numbers = load ptr, ptr %numbers.at
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %number.at = getelementptr i64, ptr %numbers, i64 %i
  %number = load i64, ptr %number.at
  %word.at = getelementptr i64, ptr %table, i64 %number
  %word = load i64, ptr %word.at
  %arg.at = getelementptr i64, ptr %args, i64 %i
  store i64 %word, ptr %arg.at
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}}

define internal void @copy(ptr %record) nounwind {{
  %args.at = getelementptr i64, ptr %record, i64 1
  %args = load ptr, ptr %args.at
  %into = load ptr, ptr %args
  %source.at = getelementptr i64, ptr %args, i64 1
  %source = load ptr, ptr %source.at
  %bytes.at = getelementptr i64, ptr %record, i64 9
  %bytes = load i64, ptr %bytes.at
  %moved = call {{ ptr, ptr, i64 }} asm sideeffect "rep movsb",
    "={{rdi}},={{rsi}},={{rcx}},0,1,2,~{{memory}}"(ptr %into, ptr %source, i64 %bytes)
  ret void
}}

define void @walk(ptr %list) nounwind {{
entry:
  %count = load i64, ptr %list
  %records.at = getelementptr i64, ptr %list, i64 1
  %records = load ptr, ptr %records.at
  %table.at = getelementptr i64, ptr %list, i64 2
  %table = load ptr, ptr %table.at
  %block.at = getelementptr i64, ptr %list, i64 3
  %block = load ptr, ptr %block.at
  %run.at = getelementptr i64, ptr %list, i64 4
  %run = load ptr, ptr %run.at
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %tail ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %offset = mul i64 %i, {RECORD}
  %record = getelementptr i64, ptr %records, i64 %offset
  call void @gather(ptr %record, ptr %table)
  %kernel = load ptr, ptr %record
  %none = icmp eq ptr %kernel, null
  br i1 %none, label %move, label %compute
move:
  call void @copy(ptr %record)
  br label %tail
compute:
  %threads.at = getelementptr i64, ptr %record, i64 3
  %threads = load i64, ptr %threads.at
  %several = icmp sgt i64 %threads, 1
  br i1 %several, label %share, label %alone
share:
  call void %run(ptr %block, ptr %record)
  br label %tail
alone:
  %args.at = getelementptr i64, ptr %record, i64 1
  %args = load ptr, ptr %args.at
  %extent.at = getelementptr i64, ptr %record, i64 2
  %extent = load i64, ptr %extent.at
  %scratch.at = getelementptr i64, ptr %record, i64 5
  %scratch = load ptr, ptr %scratch.at
  call void %kernel(ptr %args, i64 0, i64 %extent, ptr %scratch)
  br label %tail
tail:
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}}
"""


@cache
def walker() -> Callable[[ctypes.c_void_p], None] | None:
    """The function, from disk or compiled now; None where it is not on disk and LLVM is not installed."""
    image: Image | None = loaded("walk", _SOURCE)
    return None if image is None else image.function("walk")
