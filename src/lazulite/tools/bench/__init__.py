"""`lazulite bench`: Lazulite beside NumPy, torch and jax, as JSON and as a table.

`workloads` says what is timed, `participants` who takes part, `measure` how, `own_process` where, `fresh`
and `first_call` what happens once in a process, `machine` what the machine can do, `report` how it is told.
All of it runs below a process of its own (`worker`), whose environment gives every library the same number
of threads and has nothing in it that slows one down.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import lazulite
from lazulite.base.errors import ArgumentError, LazuliteError
from lazulite.base.settings import SETTINGS
from lazulite.runtime.workers import usable_cores
from lazulite.tools.bench.report import Report, Row

NAMES = ("ops", "compile", "kernels", "dispatch")
_DROPPED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_DEBUG_CPU_TYPE", "NVPL_BLAS_DEBUG_CPU_TYPE")
"""Variables that make a library choose other kernels than it would by itself."""
_THREADS = ("LAZULITE_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def bench(suite: str, json_file: str | None = None, quick: bool = False) -> Report:
    """Run a suite in a process of its own, print its table, and write its JSON where wanted."""
    if json_file is not None:
        _require_writable(json_file)
    report = run(suite, quick)
    print(report.to_markdown())
    if json_file is not None:
        Path(json_file).write_text(json.dumps(report.to_json(), indent=1) + "\n", encoding="utf-8")
    return report


def run(suite: str, quick: bool = False) -> Report:
    """What the measuring process finds; LazuliteError where a result was wrong or the process failed."""
    with TemporaryDirectory(prefix="lazulite-bench-") as folder:
        file = Path(folder, "report.json")
        command = [sys.executable, "-m", "lazulite.tools.bench.worker", suite, str(file), *["--quick"] * quick]
        done = subprocess.run(command, check=False, env=environment(os.environ, SETTINGS.THREADS or usable_cores()))
        if done.returncode:
            raise LazuliteError("bench", f"the measuring process ended with exit code {done.returncode}")
        return report_of(file)


def report_of(file: Path) -> Report:
    """What the measuring process wrote; the error that it met is raised."""
    found = json.loads(file.read_text(encoding="utf-8"))
    if "error" in found:
        raise LazuliteError("bench", found["error"], rule=found["rule"])
    return Report(found["machine"], [Row(**row) for row in found["rows"]], found["counts"])


def environment(variables: Mapping[str, str], threads: int) -> dict[str, str]:
    """Variables for the measuring process.

    >>> environment({"OPENBLAS_CORETYPE": "PRESCOTT", "HOME": "/"}, 2)["OMP_NUM_THREADS"]
    '2'
    """
    kept = {name: value for name, value in variables.items() if name not in _DROPPED}
    root = Path(lazulite.__file__).parents[1]
    if root.name == "src":  # a source tree, which a relative PYTHONPATH may not find from here
        kept["PYTHONPATH"] = os.pathsep.join([str(root), *filter(None, [variables.get("PYTHONPATH")])])
    return kept | dict.fromkeys(_THREADS, str(threads))


def _require_writable(name: str) -> None:
    """Fail before the measurement instead of after it."""
    folder = Path(name).absolute().parent
    if Path(name).is_dir() or not os.access(folder, os.W_OK):
        raise ArgumentError("bench", f"--json {name}: no file can be written there")
