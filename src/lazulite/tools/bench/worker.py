"""The process that measures: `python -m lazulite.tools.bench.worker OPTIONS FILE`.

It is started by `lazulite bench`, with its options as JSON and an environment in which every library has the
same number of threads.  What it finds goes into the file, as JSON; remarks go to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from lazulite.base.errors import ArgumentError, LazuliteError
from lazulite.base.settings import SETTINGS
from lazulite.base.terminal import say
from lazulite.runtime.workers import usable_cores
from lazulite.tools.bench import Options, fresh, language
from lazulite.tools.bench.machine import machine
from lazulite.tools.bench.measure import FULL, QUICK, measure
from lazulite.tools.bench.own_process import OwnProcess
from lazulite.tools.bench.participants import participants
from lazulite.tools.bench.report import Report
from lazulite.tools.bench.workloads import workloads


def run(options: Options) -> Report:
    """Measure the machine and a suite."""
    suite, quick = options.suite, options.quick
    chosen = [] if suite in ("compile", "llm") else workloads(suite, quick, tuple(options.only))
    if suite not in ("compile", "llm") and not chosen:
        known = ", ".join([workload.name for workload in workloads(suite, quick)])
        raise ArgumentError("bench", f"no workload of {suite} has {' or '.join(options.only)} in its name", hint=known)
    threads = SETTINGS.THREADS or usable_cores()
    bind(threads)
    report = Report(machine(threads, quick) | {"results": "in used memory" if options.reuse else "as allocated"})
    if suite == "compile":
        fresh.first_calls(report, quick, options.only)
        return report
    if suite == "llm":
        language.measure(report, threads, quick, options.model)
        return report
    with ExitStack() as stack:
        kinds = participants(suite, quick, options.peers)
        seats = [stack.enter_context(OwnProcess(kind, suite, threads, quick)) for kind in kinds]
        for workload in chosen:
            say(f"bench: {workload.name}")
            measure(workload, seats, QUICK if quick else FULL, report)
            say(f"bench:   {report.line(workload.name)}")
    if suite == "dispatch" and not options.only:
        fresh.imports(report, quick)
    return report


def bind(threads: int) -> None:
    """Keep this process on as many processors as threads: a library that counts processors then agrees."""
    allowed = sorted(os.sched_getaffinity(0))
    if threads < usable_cores():
        os.sched_setaffinity(0, allowed[:threads])


def main(options: str, file: str) -> None:
    try:
        found = asdict(run(Options(**json.loads(options))))
    except LazuliteError as error:
        found = {"error": error.message, "rule": error.rule}
    Path(file).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
