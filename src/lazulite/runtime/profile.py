"""Profiles: when each kernel ran, in the format of Chrome's trace viewer and Perfetto.

A profile belongs to a file.  ``with profile("t.json")`` gathers what runs inside and writes the file at its end; with
the setting PROFILE everything counts, and the file is written when the process ends.  Kernels are waited for one by
one while somebody profiles; nobody pays while nobody does.
"""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lazulite.base.settings import SETTINGS, Context


@dataclass(slots=True)
class Profile:
    """The events of one file; also a way to look at them without it."""

    path: str
    events: list[dict[str, Any]] = field(default_factory=list)
    devices: dict[str, int] = field(default_factory=dict)
    """The row of each device."""

    def add(self, name: str, device: str, begin: int, end: int, facts: dict[str, Any]) -> None:
        """A range on a device from one time to another, in nanoseconds."""
        row = self.devices.setdefault(device, len(self.devices))
        times = {"ts": begin / 1e3, "dur": (end - begin) / 1e3}
        self.events.append(
            {"name": name, "cat": "kernel", "ph": "X", "pid": os.getpid(), "tid": row, "args": facts} | times
        )

    def write(self) -> None:
        """Write the file."""
        names = [
            {"name": "thread_name", "ph": "M", "pid": os.getpid(), "tid": row, "args": {"name": device}}
            for device, row in self.devices.items()
        ]
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": [*names, *self.events], "displayTimeUnit": "ns"}, file)


_open: dict[str, Profile] = {}


def current() -> Profile | None:
    """The profile that the setting PROFILE asks for."""
    path = SETTINGS.PROFILE
    if not path:
        return None
    if path not in _open:
        _open[path] = Profile(path)
        if len(_open) == 1:
            atexit.register(_write_all)
    return _open[path]


def _write_all() -> None:
    while _open:
        _open.popitem()[1].write()


@contextmanager
def profile(path: str | os.PathLike[str]) -> Iterator[Profile]:
    """Write the times of all kernels that run inside to a file in Chrome's trace format.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file, profile(file.name) as seen:
    ...     seen.events
    []
    """
    seen = Profile(os.fspath(path))
    outer = _open.get(seen.path)
    _open[seen.path] = seen
    try:
        with Context(PROFILE=seen.path):
            yield seen
    finally:
        del _open[seen.path]
        if outer is not None:
            _open[seen.path] = outer
        seen.write()
