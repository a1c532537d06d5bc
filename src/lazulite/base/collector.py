"""The garbage collector, out of the way of work that makes many objects and no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """The garbage collector off inside; nested and concurrent uses leave it as the outermost found it.

    Rewriting and scheduling allocate many tuples and no cycles, so collections would only cost time.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
