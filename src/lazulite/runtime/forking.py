"""What has to be made anew in the child of a fork: locks that another thread held, threads that are gone.

An object that owns such things calls `renew_after_fork(self)` once; in every child its `after_fork`
runs before any other code.  Objects are held weakly.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Owns locks or threads."""

    def after_fork(self) -> None:
        """Replace them; the calling thread is the only one."""


_owners: WeakSet[Forkable] = WeakSet()


def renew_after_fork(owner: Forkable) -> None:
    """Have `owner.after_fork()` called in every child process."""
    _owners.add(owner)


def _renew_all() -> None:
    for owner in list(_owners):
        owner.after_fork()


os.register_at_fork(after_in_child=_renew_all)
