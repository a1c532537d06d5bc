"""What happens once in a process, timed in fresh ones: the first call of a program, and an import.

Lazulite's first call is timed with an empty cache on disk and with the one that this left; torch, where it
is installed, has no such difference.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

import numpy

from lazulite.base.errors import ArgumentError, LazuliteError
from lazulite.tools.bench import first_call
from lazulite.tools.bench.inputs import draw
from lazulite.tools.bench.measure import check
from lazulite.tools.bench.participants import OURS
from lazulite.tools.bench.report import Facts, Report, count_key, rows_of
from lazulite.tools.bench.words_numpy import NumPyWords
from lazulite.tools.bench.workload import Workload, as_list

WARM = f"{OURS}, second process"
_IMPORTS = {OURS: "from lazulite import Tensor"} | {name: f"import {name}" for name in ("numpy", "torch", "jax")}


def first_calls(report: Report, quick: bool, only: Sequence[str] = ()) -> None:
    """Add the rows of programs, and what was compiled; `only` of those with one of these texts in their name."""
    peers = () if quick or find_spec("torch") is None else ("torch",)
    names = first_call.QUICK if quick else tuple(first_call.PROGRAMS)
    chosen = [name for name in names if not only or any(text in name for text in only)]
    if not chosen:
        raise ArgumentError("bench", f"no program has {' or '.join(only)} in its name", hint="; ".join(names))
    for name in chosen:
        program = first_call.PROGRAMS[name]
        exact = [array.astype(numpy.float64) if array.dtype.kind == "f" else array for array in draw(program.inputs)]
        want = as_list((program.meaning or program.formula)(NumPyWords(), *exact))
        times: dict[str, list[float]] = {}
        facts: dict[str, Facts] = {}
        for _ in range(1 if quick else 3):
            for participant, told, error in _one_round(program, want, peers):
                times.setdefault(participant, []).append(told.pop("seconds"))
                facts[participant] = Facts(max(error, facts[participant].max_error if participant in facts else 0.0))
                report.counts[count_key(name, participant)] = told
        report.rows += rows_of(name, times, facts, OURS)


def _one_round(
    program: Workload, want: Sequence[Any], peers: tuple[str, ...]
) -> Iterator[tuple[str, dict[str, Any], float]]:
    """(participant, what its process told, its error) with an empty cache, with a full one, and for each peer."""
    with TemporaryDirectory(prefix="lazulite-bench-") as folder:
        cache = {"LAZULITE_CACHE": "1", "LAZULITE_CACHE_DIR": os.path.join(folder, "cache")}
        file = os.path.join(folder, "results.npz")
        for participant in (OURS, WARM, *peers):
            library = participant.partition(",")[0]
            told = json.loads(python(["-m", first_call.__name__, program.name, library, file], cache))
            with numpy.load(file) as got:
                known = [got[f"arr_{i}"] for i in range(len(want))]
                yield participant, told, check(program.name, library, known, want, program.tolerance)


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
