"""What happens once in a process, timed in fresh ones: the first call of a program, and an import.

Lazulite's first call is timed with an empty cache on disk and with the one that this left; torch, where it
is installed, has no such difference.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy

from lazulite.base.errors import LazuliteError
from lazulite.tools.bench import first_call
from lazulite.tools.bench.measure import check
from lazulite.tools.bench.participants import OURS
from lazulite.tools.bench.report import Facts, Report, count_key, rows_of

WARM = f"{OURS}, second process"
_TOLERANCE = 1e-4
_IMPORTS = {OURS: "from lazulite import Tensor"} | {name: f"import {name}" for name in ("numpy", "torch", "jax")}


def first_calls(report: Report, quick: bool) -> None:
    """Add the rows of every program, with what was compiled."""
    peers = () if quick or find_spec("torch") is None else ("torch",)
    for name in first_call.QUICK if quick else first_call.PROGRAMS:
        times: dict[str, list[float]] = {}
        facts: dict[str, Facts] = {}
        for _ in range(1 if quick else 3):
            for participant, told, error in _one_round(name, peers):
                times.setdefault(participant, []).append(told.pop("seconds"))
                facts[participant] = Facts(max(error, facts[participant].max_error if participant in facts else 0.0))
                report.counts[count_key(name, participant)] = told
        report.rows += rows_of(name, times, facts, OURS)


def _one_round(name: str, peers: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any], float]]:
    """(participant, what its process told, its error) with an empty cache, with a full one, and for each peer."""
    with TemporaryDirectory(prefix="lazulite-bench-") as folder:
        cache = {"LAZULITE_CACHE": "1", "LAZULITE_CACHE_DIR": os.path.join(folder, "cache")}
        for participant in (OURS, WARM, *peers):
            library = participant.partition(",")[0]
            yield participant, *_in_a_process(name, library, os.path.join(folder, "results.npz"), cache)


def _in_a_process(name: str, library: str, results: str, variables: Mapping[str, str]) -> tuple[dict[str, Any], float]:
    arguments = ["-m", first_call.__name__, name, library, results]
    told = json.loads(python(arguments, variables))
    program = first_call.PROGRAMS[name]
    want = program.meaning(*[array.astype(numpy.float64) for array in first_call.inputs_of(program)])
    with numpy.load(results) as got:
        error = check(name, library, [got[f"arr_{i}"] for i in range(len(want))], want, _TOLERANCE)
    Path(results).unlink()
    return told, error


def imports(report: Report, quick: bool) -> None:
    """Add the rows of importing each library: processor time beyond that of an empty interpreter."""
    names = (OURS, "numpy") if quick else tuple(_IMPORTS)
    installed = [name for name in names if find_spec(name) is not None]
    times: dict[str, list[float]] = {name: [] for name in installed}
    for _ in range(1 if quick else 5):
        for name in installed:
            times[name].append(float(python(["-c", _TIMED_IMPORT.format(_IMPORTS[name])])))
    report.rows += rows_of("import, processor time", times, dict.fromkeys(installed, Facts()), OURS)


_TIMED_IMPORT = "import time; begin = time.process_time(); {}; print(time.process_time() - begin)"


def python(arguments: list[str], variables: Mapping[str, str] | None = None) -> str:
    """What a Python process prints; LazuliteError with its last words where it fails."""
    environment = os.environ | (variables or {})
    done = subprocess.run([sys.executable, *arguments], check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise LazuliteError("bench", f"a process of its own ended with exit code {done.returncode}: {last}")
    return done.stdout
