"""The process that measures: `python -m lazulite.tools.bench.worker SUITE FILE [--quick]`.

It is started by `lazulite bench` with an environment in which every library has the same number of
threads.  What it finds goes into the file, as JSON; remarks go to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from lazulite.base.errors import LazuliteError
from lazulite.base.settings import SETTINGS
from lazulite.base.terminal import say
from lazulite.runtime.workers import usable_cores
from lazulite.tools.bench import fresh
from lazulite.tools.bench.machine import machine
from lazulite.tools.bench.measure import FULL, QUICK, measure
from lazulite.tools.bench.own_process import OwnProcess
from lazulite.tools.bench.participants import participants
from lazulite.tools.bench.report import Report
from lazulite.tools.bench.workloads import workloads


def run(suite: str, quick: bool) -> Report:
    """Measure the machine and a suite."""
    threads = SETTINGS.THREADS or usable_cores()
    bind(threads)
    report = Report(machine(threads, quick))
    if suite == "compile":
        fresh.first_calls(report, quick)
        return report
    with ExitStack() as stack:
        seats = [stack.enter_context(OwnProcess(kind, suite, threads, quick)) for kind in participants(suite, quick)]
        for workload in workloads(suite, quick):
            say(f"bench: {workload.name}")
            report.rows += measure(workload, seats, QUICK if quick else FULL)
    if suite == "dispatch":
        fresh.imports(report, quick)
    return report


def bind(threads: int) -> None:
    """Keep this process on as many processors as threads: a library that counts processors then agrees."""
    allowed = sorted(os.sched_getaffinity(0))
    if threads < usable_cores():
        os.sched_setaffinity(0, allowed[:threads])


def main(suite: str, file: str, *options: str) -> None:
    try:
        found = asdict(run(suite, "--quick" in options))
    except LazuliteError as error:
        found = {"error": error.message, "rule": error.rule}
    Path(file).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
