"""What this machine can do, measured with kernels of our own: the ceilings beside which times are read.

Three kernels in text form go through the compiler like any other: multiply-adds in registers whose
operands stay in the nearest cache, a sum over memory, and stores to memory.  Rates are of the
shortest of several runs.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import lazulite
from lazulite.base.settings import Context
from lazulite.ir.parse import parse
from lazulite.ir.target import Target
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Step
from lazulite.kernel.steps import parse as parse_steps
from lazulite.pipeline import compile_kernel
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.device import Device as OneDevice
from lazulite.runtime.registry import Device

_FLOAT = 4
_VECTORS = 2
_LIBRARIES = ("numpy", "torch", "jax", "llvmlite")


def machine(threads: int, quick: bool) -> dict[str, Any]:
    """Facts and ceilings of this machine."""
    target = Device["CPU"].target
    assert target is not None
    turns, size, runs = (16, 1 << 12, 2) if quick else (1024, 1 << 26, 200)
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": threads,
        "vector_bytes": target.vector_bytes,
        "multiply_add_gflops": multiply_adds(target, turns, runs),
        "multiply_add_gflops_one_thread": _alone(target, turns, runs),
        "read_gb_s": reads(target, size, min(runs, 10)),
        "write_gb_s": writes(target, size, min(runs, 10)),
        "python": platform.python_version(),
        "lazulite": lazulite.__version__,
    } | {name: version for name in _LIBRARIES if (version := _version(name))}


def processor() -> str:
    """The name that the processor gives itself."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


# --- ceilings ------------------------------------------------------------------------------------


def _alone(target: Target, turns: int, runs: int) -> float:
    with Context(THREADS=1):
        return multiply_adds(target, turns, runs)


def multiply_adds(target: Target, turns: int, runs: int, depth: int = 192) -> float:
    """float32 operations a second, in billions, of a register tile that multiplies and adds.

    The tile is as large as the registers allow; its two operands together fit the nearest cache, and one
    of them moves by an element at each turn so that no turn is like the one before.
    """
    lanes = target.vector_bytes // _FLOAT
    rows, width = (target.registers - 4) // _VECTORS, _VECTORS * lanes
    kernel = f"""
        kernel
        param p0 float32[{turns * rows * width}]
        param p1 float32[{turns + rows * depth}]
        param p2 float32[{depth * width}]
        loop r0 in 0..{turns}
        loop r1 in 0..{rows}
        loop r2 in 0..{width}
        loop r3 in 0..{depth}
        p0[r0*{rows * width} + r1*{width} + r2] = sum(p1[r0 + r1*{depth} + r3] * p2[r3*{width} + r2] for r3)
        """
    steps = parse_steps(f"tile 1\nsplit 2 {lanes}\ntile 2.0\nvectorize 2.1\nparallel 0\n")
    sizes = (turns * rows * width, turns + rows * depth, depth * width)
    return _rate(2 * rows * width * depth * turns, shortest(kernel, sizes, target, runs, steps))


def reads(target: Target, size: int, runs: int) -> float:
    """Bytes a second, in billions, that a sum of float32 reads."""
    kernel = f"""
        kernel
        param p0 float32[64]
        param p1 float32[{size}]
        loop r0 in 0..64
        loop r1 in 0..{size // 64}
        p0[r0] = sum(p1[r0*{size // 64} + r1] for r1)
        """
    return _rate(_FLOAT * size, shortest(kernel, (64, size), target, runs))


def writes(target: Target, size: int, runs: int) -> float:
    """Bytes a second, in billions, that a kernel stores."""
    kernel = f"""
        kernel
        param p0 float32[{size}]
        loop r0 in 0..{size}
        p0[r0] = 1.0
        """
    return _rate(_FLOAT * size, shortest(kernel, (size,), target, runs))


def _rate(amount: int, seconds: float) -> float:
    """Billions a second, to three digits."""
    return float(f"{amount / seconds / 1e9:.3g}")


def shortest(
    kernel: str, sizes: Sequence[int], target: Target, runs: int, steps: tuple[Step, ...] | None = None
) -> float:
    """Seconds of the fastest run of a kernel over float32 memories that hold ones."""
    sink, device = parse(kernel), Device["CPU"]
    chosen = choose(sink, target) if steps is None else steps
    program = device.load(compile_kernel(sink, target, chosen, name="ceiling"))
    buffers = [_ones(device, size) for size in sizes]
    arguments = [buffer.require_handle("bench") for buffer in buffers]
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        device.queue.exec(program, arguments)
        times.append(time.perf_counter() - begin)
    return min(times)


def _ones(device: OneDevice, size: int) -> Buffer:
    buffer = Buffer(device, _FLOAT * size).allocate()
    one = 0x3F800000
    buffer.copy_in(memoryview(one.to_bytes(_FLOAT, sys.byteorder) * size))
    return buffer
