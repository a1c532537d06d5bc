"""A line on stderr that shows what takes long: seconds, and how many programs were compiled meanwhile.

It is there only where stderr is a terminal and `tqdm` is installed, and is gone when the work is done.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from lazulite.runtime.counters import GlobalCounters

_EVERY = 0.2
"""Seconds between two looks."""


@contextmanager
def shown(what: str) -> Iterator[None]:
    """Show that something is being done while the block runs.

    >>> with shown("reading"):
    ...     pass
    """
    if not sys.stderr.isatty() or find_spec("tqdm") is None:
        yield
        return
    from tqdm import tqdm

    before, done = GlobalCounters.programs_compiled, threading.Event()
    with tqdm(desc=what, unit=" programs", leave=False, bar_format="{desc}: {elapsed}, {n} programs compiled") as bar:

        def look() -> None:
            while not done.wait(_EVERY):
                bar.n = GlobalCounters.programs_compiled - before
                bar.refresh()

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
