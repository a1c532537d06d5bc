"""A participant in a process of its own, which stays alive and answers one question at a time.

In one process the thread pools of several libraries get in each other's way long after a call is over;
here a participant computes only while it is asked, and shares nothing with the others but the machine.
Workloads hold functions, which no pipe carries: both sides know them by suite and name, and each makes
the same inputs.
"""

from __future__ import annotations

from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from lazulite.base.errors import LazuliteError
from lazulite.tools.bench.measure import Here, Prepared
from lazulite.tools.bench.participants import Participant
from lazulite.tools.bench.words import Lacks
from lazulite.tools.bench.workload import Workload
from lazulite.tools.bench.workloads import one_addition, workloads


class OwnProcess:
    """A seat whose process ends with the `with` statement."""

    def __init__(self, kind: type[Participant], suite: str, threads: int, quick: bool) -> None:
        context = get_context("spawn")
        self.name = kind.name
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_answer, args=(theirs, kind, suite, threads, quick))
        self._process.start()
        theirs.close()

    def __enter__(self) -> OwnProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join()

    def prepare(self, workload: Workload) -> Prepared:
        answer = self._ask(workload.name)
        if isinstance(answer, Lacks):
            raise answer
        return answer  # type: ignore[no-any-return]

    def seconds(self) -> float:
        return self._ask(None)  # type: ignore[no-any-return]

    def _ask(self, question: str | None) -> Any:
        try:
            self._pipe.send(question)
            return self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            raise LazuliteError("bench", f"the process of {self.name} ended with exit code {code}") from None


def _answer(pipe: Connection, kind: type[Participant], suite: str, threads: int, quick: bool) -> None:
    """The other side: prepares the workload that is named, or times it; ends when nobody listens."""
    known = {workload.name: workload for workload in workloads(suite, quick)}
    seat = Here(kind(threads))
    with suppress(Lacks):  # what a library does at its very first call is no part of that of a workload
        seat.prepare(one_addition(1, 1))
    while True:
        try:
            question = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(seat.seconds() if question is None else seat.prepare(known[question]))
        except Lacks as missing:
            pipe.send(Lacks(str(missing)))
