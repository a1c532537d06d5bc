"""What the setting BEAM does: a search for the steps of a kernel on its device, whose outcome is kept on disk."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from lazulite.analysis.describe import kernel_name
from lazulite.base.cache import disk_cache
from lazulite.base.errors import FormatError
from lazulite.base.settings import SETTINGS
from lazulite.base.terminal import duration, say
from lazulite.engine.trial import Trial
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp
from lazulite.kernel.search import Found, is_searchable, search
from lazulite.kernel.steps import Step, parse, text
from lazulite.runtime.device import Device


@dataclass(frozen=True)
class Tuned:
    """What a search found for a kernel."""

    kernel: str
    steps: str
    before: float
    """Seconds with the steps of the heuristic."""
    after: float
    tried: int


tuned: list[Tuned] = []
"""Every kernel for which this process searched or found the outcome of a search, in order."""


def tune(kernel: UOp, target: Target, device: Device, start: tuple[Step, ...], key: str) -> tuple[Step, ...]:
    """The fastest steps known for a kernel; `key` stands for it, its target, the settings and this build.

    A kernel whose schedule may not change keeps the steps it has.
    """
    if not is_searchable(kernel, target):
        return start
    known = _from_disk(key)
    if known is None:
        known = _search(kernel, target, device, start)
        store = disk_cache()
        if store is not None:
            store.put("steps", key, json.dumps(vars(known)).encode())
    tuned.append(known)
    return parse(known.steps)


def _from_disk(key: str) -> Tuned | None:
    store = disk_cache()
    data = None if store is None else store.get("steps", key)
    try:
        known = None if data is None else Tuned(**json.loads(data))
        if known is not None:
            parse(known.steps)
        return known
    except (ValueError, TypeError, FormatError):
        return None


def _search(kernel: UOp, target: Target, device: Device, start: tuple[Step, ...]) -> Tuned:
    name, end = kernel_name(kernel), time.monotonic() + SETTINGS.BEAM_SECONDS
    trial = Trial(kernel, target, device)
    found = search(kernel, target, start, SETTINGS.BEAM, trial, lambda: time.monotonic() > end, _tell)
    if SETTINGS.DEBUG >= 1:
        say(f"tuned {name}: {_summary(found)}")
    return Tuned(name, text(found.steps), found.before, found.seconds, found.tried)


def _summary(found: Found) -> str:
    return (
        f"{duration(found.before)} -> {duration(found.seconds)}, {found.tried} tried, {found.refused} refused, "
        f"{found.wrong} wrong"
    )


def _tell(steps: tuple[Step, ...], seconds: float) -> None:
    if SETTINGS.DEBUG >= 3:
        say(f"  {'out' if seconds == float('inf') else duration(seconds):>10}  {'; '.join(text(steps).splitlines())}")
