"""Whether this thread runs a function on behalf of `jit`, which may be carried out again without running it.

Meanwhile no value of a tensor may be looked at: the function would go on by it, and a replay would not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lazulite.base.errors import CaptureError


class _Thread(threading.local):
    function = ""


THREAD = _Thread()
"""`function` is the name of the function that is traced, or empty."""


@contextmanager
def traced(function: str) -> Iterator[None]:
    """This thread runs a function of this name."""
    before, THREAD.function = THREAD.function, function
    try:
        yield
    finally:
        THREAD.function = before


def refuse_reading(method: str, tensor: object) -> None:
    """A CaptureError where the thread is inside of a traced function."""
    if THREAD.function:
        raise CaptureError(
            method, f"{THREAD.function} is captured by jit, and a captured function must not look at values",
            about={"tensor": tensor},
            rule="It runs once or twice; after that its kernels run without it, whatever the values are.",
            hint="return the tensor and look at it outside, or choose with where(...) in the place of an if",
        )  # fmt: skip
