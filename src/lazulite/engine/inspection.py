"""What is done around each launch while somebody watches: the settings DEBUG=2, CHECK and PROFILE.

`issue_watched` hands a command to its device as `engine.loaded.issue` does, waits for it, and tells, times or checks
it.  A run that nobody watches never comes here.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lazulite.base.origin import Origin
from lazulite.base.settings import SETTINGS
from lazulite.base.terminal import say
from lazulite.engine.handles import stored
from lazulite.engine.loaded import Command, Run, issue
from lazulite.ir.uop import UOp
from lazulite.runtime.counters import GlobalCounters
from lazulite.runtime.profile import current
from lazulite.schedule.canonical import nodes_of
from lazulite.schedule.plan import Launch

if TYPE_CHECKING:
    from lazulite.engine.outputs import Output


def issue_watched(run: Run, command: Command, outputs: Sequence[Output]) -> None:
    """Run one command to its end, and do what the settings ask for."""
    checks = _checks(run, command, outputs) if SETTINGS.CHECK else []
    command.queue.synchronize()
    begin = time.perf_counter_ns()
    issue(run, command)
    command.queue.synchronize()
    end = time.perf_counter_ns()
    seen, origin = current(), origin_of(command.launch, outputs)
    if seen is not None:
        facts = {"bytes": command.launch.bytes_touched, "operations": command.launch.operations}
        line = {} if origin is None else {"line": origin.place}
        seen.add(_name(command), command.queue.device.name, begin, end, facts | line)
    if SETTINGS.DEBUG >= 2:
        _report(command, origin, (end - begin) / 1e9)
    for check in checks:
        check.after()


def _checks(run: Run, command: Command, outputs: Sequence[Output]) -> list[Check]:
    from lazulite.engine.checks import checks_of

    return checks_of(run, command, lambda: node_of(command.launch, outputs))


if TYPE_CHECKING:
    from lazulite.engine.checks import Check


def _name(command: Command) -> str:
    return "copy" if command.program is None else command.program.name


def _report(command: Command, origin: Origin | None, seconds: float) -> None:
    launch, device, name = command.launch, command.queue.device.name, _name(command)
    place = "" if origin is None else origin.place
    rates = f"{launch.operations / seconds / 1e9:8.2f} GFLOP/s {launch.bytes_touched / seconds / 1e9:8.2f} GB/s"
    say(f"{device} {GlobalCounters.kernel_count:5d} {name:28s} {seconds * 1e6:10.1f}us {rates} {place}")


def node_of(launch: Launch, outputs: Sequence[Output]) -> UOp | None:
    """The value that a launch computes."""
    if launch.origin < 0:
        return None
    nodes = nodes_of([output.value for output in outputs], stored)
    return nodes[launch.origin] if launch.origin < len(nodes) else None


def origin_of(launch: Launch, outputs: Sequence[Output]) -> Origin | None:
    """The user's line of the value that a launch computes."""
    node = node_of(launch, outputs)
    return node.origin if node is not None and isinstance(node.origin, Origin) else None
