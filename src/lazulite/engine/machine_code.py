"""From a kernel to machine code: its steps are chosen and it is lowered here, a helper thread runs LLVM.

`machine_code` takes a kernel and a target and gives a function that waits for the finished binary.  A fault
of the compiler carries the replay file that repeats it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lazulite.analysis.describe import kernel_name
from lazulite.base.errors import StageError
from lazulite.base.settings import SETTINGS
from lazulite.base.terminal import say
from lazulite.emit.base import Binary
from lazulite.emit.llvm import assemble
from lazulite.engine.helper import Helper
from lazulite.engine.replay import Replay, write
from lazulite.engine.watch import watch
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Step
from lazulite.pipeline import assembly_of, faults_of
from lazulite.runtime.registry import Device


def machine_code(kernel: UOp, target: Target, device: str, key: str, helper: Helper) -> Callable[[], Binary]:
    """Lower the kernel that is kept under `key`; the result waits for its machine code, which the helper makes."""
    before, steps = time.perf_counter(), None
    with _replayed(lambda: Replay(kernel, target, steps)):
        steps = _steps(kernel, target, device, key)
        assembly = assembly_of(kernel, target, steps, watch(), kernel_name(kernel))
    lowering = time.perf_counter() - before

    def work() -> tuple[Binary, float]:
        before = time.perf_counter()
        return assemble(assembly, target), time.perf_counter() - before

    waiting = helper.submit(work)

    def finished() -> Binary:
        with _replayed(lambda: Replay(kernel, target, steps)), faults_of("emit.llvm_object"):
            binary, assembling = waiting()
        _report(binary, steps, lowering, assembling)
        return binary

    return finished


def _steps(kernel: UOp, target: Target, device: str, key: str) -> tuple[Step, ...]:
    with faults_of("kernel.heuristic"):
        steps = choose(kernel, target) if SETTINGS.OPT else ()
    if SETTINGS.BEAM:
        from lazulite.engine.tune import tune

        steps = tune(kernel, target, Device[device], steps, key)
    return steps


@contextmanager
def _replayed(replay: Callable[[], Replay]) -> Iterator[None]:
    """Write a replay file for a fault of the compiler; to stop where the user asks is none."""
    try:
        yield
    except StageError as fault:
        if fault.function != SETTINGS.STOP:
            fault.replay = write(replay())
        raise


def _report(binary: Binary, steps: tuple[Step, ...], lowering: float, assembling: float) -> None:
    if SETTINGS.DEBUG >= 1:
        milliseconds = (lowering + assembling) * 1e3
        say(f"compiled {binary.name} in {milliseconds:.1f} ms, {len(binary.code)} bytes")
    if SETTINGS.DEBUG >= 3:
        say("\n".join(f"  {step}" for step in steps) or "  no steps")
