"""`lazulite bench`: Lazulite beside other libraries, as tables, as JSON and as a picture.

`workloads` and `models` say what is timed, `words` how a library is asked for it, `participants` who takes part,
`measure` how, `own_process` where, `fresh` and `first_call` what happens once in a process, `language` how fast
a language model is, `machine` what the machine can do, `report` and `picture` how it is told.
All of it runs below a process of its own (`worker`), whose environment gives every library the same number
of threads and has nothing in it that slows one down.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import lazulite
from lazulite.base.errors import ArgumentError, LazuliteError
from lazulite.base.settings import SETTINGS
from lazulite.runtime.workers import usable_cores
from lazulite.tools.bench.participants import OURS
from lazulite.tools.bench.picture import draw_ratios, require_matplotlib
from lazulite.tools.bench.report import Report, Row

NAMES = ("ops", "compile", "kernels", "dispatch", "llm")
_DROPPED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_DEBUG_CPU_TYPE", "NVPL_BLAS_DEBUG_CPU_TYPE")
"""Variables that make a library choose other kernels than it would by itself."""
_THREADS = ("LAZULITE_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUM_CPU_THREADS")
_CACHES = {"LAZULITE_CACHE_DIR": "lazulite", "TORCHINDUCTOR_CACHE_DIR": "inductor", "CACHEDB": "tinygrad.db"}
"""Where libraries keep what they compiled: in a new folder, so that each first call is one."""
_KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 28)}
"""The C library then gives no memory back, and a result lies where an earlier one was."""


@dataclass(frozen=True)
class Options:
    """What a run measures: `only` workloads with one of these texts in their name, `peers` instead of all that
    are installed, `threads` for everybody (0: as the setting says), with `reuse` results in memory used before."""

    suite: str
    quick: bool = False
    only: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    threads: int = 0
    reuse: bool = False
    model: str = ""
    """The file of the suite llm."""


def bench(
    suite: str, json_file: str | None = None, quick: bool = False, *, plot_file: str | None = None,
    only: Sequence[str] = (), peers: Sequence[str] = (), threads: int = 0, reuse: bool = False,
    model: str = "",
) -> Report:  # fmt: skip
    """Run a suite in a process of its own, print its tables, and write its JSON and its picture where wanted.

    LazuliteError, after all that, where a result of Lazulite is wrong.
    """
    for name, file in (("--json", json_file), ("--plot", plot_file)):
        if file is not None:
            _require_writable(name, file)
    if plot_file is not None:
        require_matplotlib()
    report = run(Options(suite, quick, tuple(only), tuple(peers), threads, reuse, model))
    print(report.to_markdown())
    if json_file is not None:
        Path(json_file).write_text(json.dumps(report.to_json(), indent=1) + "\n", encoding="utf-8")
    if plot_file is not None:
        draw_ratios(report, plot_file, OURS)
    if report.faults:
        raise LazuliteError("bench", "; ".join(report.faults))
    return report


def run(options: Options) -> Report:
    """What the measuring process finds; LazuliteError where it failed."""
    with TemporaryDirectory(prefix="lazulite-bench-") as folder:
        file = Path(folder, "report.json")
        command = [sys.executable, "-m", "lazulite.tools.bench.worker", json.dumps(asdict(options)), str(file)]
        threads = options.threads or SETTINGS.THREADS or usable_cores()
        variables = environment(os.environ, threads) | {name: f"{folder}/{part}" for name, part in _CACHES.items()}
        done = subprocess.run(command, check=False, env=variables | (_KEPT if options.reuse else {}))
        if done.returncode:
            raise LazuliteError("bench", f"the measuring process ended with exit code {done.returncode}")
        return report_of(file)


def report_of(file: Path) -> Report:
    """What the measuring process wrote; the error that it met is raised."""
    found = json.loads(file.read_text(encoding="utf-8"))
    if "error" in found:
        raise LazuliteError("bench", found["error"], rule=found["rule"])
    rows, missing = [Row(**row) for row in found["rows"]], [tuple(each) for each in found["missing"]]
    return Report(found["machine"], rows, found["counts"], missing, found["faults"])


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


def _require_writable(option: str, file: str) -> None:
    """Fail before the measurement instead of after it."""
    if Path(file).is_dir() or not os.access(Path(file).absolute().parent, os.W_OK):
        raise ArgumentError("bench", f"{option} {file}: no file can be written there")
