"""`lazulite tune script.py`: run a program with a search for the steps of each kernel, and tell what that brought.

The outcome is on disk afterwards: the same program with the same BEAM starts with it and searches nothing.
"""

from __future__ import annotations

from lazulite.base.settings import SETTINGS, Context
from lazulite.base.terminal import columns, duration
from lazulite.engine.tune import Tuned, tuned
from lazulite.runtime.counters import GlobalCounters
from lazulite.tools.script import refusal, run_script

_WIDTH = 4


def tune(script: str, arguments: list[str], width: int, seconds: int, show_steps: bool) -> None:
    """Run a program and print a line for each kernel that was searched."""
    begin, known = len(tuned), GlobalCounters.programs_from_disk
    with Context(BEAM=width or SETTINGS.BEAM or _WIDTH, BEAM_SECONDS=seconds or SETTINGS.BEAM_SECONDS):
        failure = run_script(script, arguments)
    found = tuned[begin:]
    if found:
        print(*columns([("kernel", "before", "after", "ratio", "tried"), *map(_row, found)]), sep="\n")
    print(f"{len(found)} kernels tuned, {GlobalCounters.programs_from_disk - known} were already")
    for each in found if show_steps else ():
        print("", each.kernel, each.steps or "no steps", sep="\n")
    if failure is not None:
        raise refusal("script", failure)


def _row(each: Tuned) -> tuple[str, ...]:
    ratio = f"{each.before / each.after:.2f}"
    return each.kernel, duration(each.before), duration(each.after), ratio, str(each.tried)
