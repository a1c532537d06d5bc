"""A thread that works while the caller goes on: code generation beside lowering.

`Helper` takes pieces of work, does them one after another, and hands back for each a function that waits
for its result.  Work that lets other threads run, as calls of a library in C do, costs the caller nothing
but what its results wait for.  Invariant: when the `with` statement ends, the thread has ended; what it had
not begun by then is not done.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")
_TURN = 2e-4
"""Seconds after which a thread in Python lets the other go on: a library is called many times for one piece of
work, and after each call the helper waits for its turn."""


class _Result(Generic[T]):
    """A piece of work and what came of it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work, self._done = work, threading.Event()
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._value = self._work()
        except BaseException as error:  # raised where the result is asked for
            self._error = error
        self._done.set()

    def __call__(self) -> T:
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._value


class Helper:
    """One helper thread, which starts with the first piece of work."""

    def __init__(self) -> None:
        self._queue = SimpleQueue[_Result[object] | None]()
        self._thread: threading.Thread | None = None
        self._over = False

    def __enter__(self) -> Helper:
        self._turn = sys.getswitchinterval()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            sys.setswitchinterval(self._turn)

    def submit(self, work: Callable[[], T]) -> Callable[[], T]:
        """The function that waits for the result of this work and gives it, or raises what the work raised."""
        if self._thread is None:
            sys.setswitchinterval(min(self._turn, _TURN))
            self._thread = threading.Thread(target=self._run, name="lazulite-helper", daemon=True)
            self._thread.start()
        result = _Result(work)
        self._queue.put(result)  # type: ignore[arg-type]
        return result

    def _run(self) -> None:
        while not self._over and (result := self._queue.get()) is not None:
            result.run()
