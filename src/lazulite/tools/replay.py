"""`lazulite replay FILE`: compile a kernel again from the file that a compiler fault left.

SHOW, STOP, VERIFY and DEBUG act as in any compilation, so the fault can be watched stage by stage.
"""

from __future__ import annotations

import time

from lazulite.analysis.describe import kernel_name
from lazulite.base.terminal import duration
from lazulite.engine.replay import read
from lazulite.engine.watch import watch
from lazulite.kernel.heuristic import choose
from lazulite.pipeline import compile_kernel


def replay(path: str) -> None:
    """Compile what the file describes; its fault is raised again if it is still there."""
    case = read(path)
    before = time.perf_counter()
    steps = choose(case.kernel, case.target) if case.steps is None else case.steps
    binary = compile_kernel(case.kernel, case.target, steps, watch(), kernel_name(case.kernel))
    seconds = time.perf_counter() - before
    print(f"compiled {binary.name} in {duration(seconds)}, {len(binary.code)} bytes; the fault is gone")
