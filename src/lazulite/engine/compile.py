"""Plans and programs: found in memory, else on disk, else made.

`loaded_for` answers a fingerprint with a plan that is ready to run, its programs loaded.  The compiler's
modules (scheduling, lowering, code generation) are imported only when something has to be made, so a
process that finds everything on disk never loads them.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from lazulite.base.cache import disk_cache
from lazulite.base.collector import collector_paused
from lazulite.base.settings import SETTINGS
from lazulite.emit.base import Binary
from lazulite.engine.handles import stored
from lazulite.engine.helper import Helper
from lazulite.engine.loaded import Loaded
from lazulite.engine.storage import fill_of
from lazulite.ir.uop import UOp
from lazulite.runtime.counters import GlobalCounters
from lazulite.runtime.registry import Device
from lazulite.schedule.canonical import Fingerprint
from lazulite.schedule.plan import Plan

if TYPE_CHECKING:
    from lazulite.kernel.packing import Packing
    from lazulite.runtime.device import Program
    from lazulite.schedule.build import Options

_Wanted = tuple[str, str]
"""The key of a kernel, and the device that it is for."""
_loaded: dict[tuple[object, ...], Loaded] = {}
_programs: dict[tuple[str, ...], Program] = {}
_kernels: dict[str, UOp] = {}
"""Kernels that were scheduled in this process and are not compiled yet."""


@cache
def build_identity() -> str:
    """A text that changes with every change of this package, its code generator or the interpreter."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    facts = [sys.version, str(_llvm_version())]
    for folder, _, files in sorted(os.walk(root)):
        for name in sorted(files):
            if name.endswith(".py"):
                status = os.stat(os.path.join(folder, name))
                facts.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _llvm_version() -> str:
    """The installed code generator's version, without importing it."""
    from importlib import metadata

    try:
        return metadata.version("llvmlite")
    except metadata.PackageNotFoundError:
        return "none"


def _target_key(device: str) -> str:
    target = Device[device].target
    return device.partition(":")[0] if target is None else target.key


# --- plans -------------------------------------------------------------------------------------


def loaded_for(
    outputs: Sequence[UOp], targets: Sequence[UOp | None], fingerprint: Fingerprint, device: str,
    still: tuple[int, ...] = (),
) -> Loaded:  # fmt: skip
    """The plan of a graph whose work is on `device` (where it names no other), ready to run; the contents of the
    inputs in `still` are likely to outlast many runs."""
    key = (fingerprint.key, device, SETTINGS.selection, still)
    loaded = _loaded.get(key)
    if loaded is None:

        def rebuild() -> Plan:
            return build_plan(outputs, targets, device, still)

        with collector_paused():
            plan = _plan_for((fingerprint.key, device, _target_key(device), SETTINGS.key, still), rebuild)
            launches = [*[each.filling for each in plan.panels], *plan.launches]
            wanted = [(launch.kernel, launch.device or device) for launch in launches if launch.kernel]
            programs = _programs_for(wanted, rebuild)
            loaded = _loaded[key] = Loaded(plan, device, lambda kernel, on: programs[kernel, on])
    return loaded


def _plan_for(facts: tuple[object, ...], build: Callable[[], Plan]) -> Plan:
    digest = _digest("plan", repr(facts))
    plan = None if SETTINGS.CHECK else _plan_from_disk(digest)
    if plan is None:
        plan = build()
        store_on_disk("plan", digest, plan.to_json())
    return plan


def _digest(kind: str, text: str) -> str:
    return hashlib.sha256(f"{kind} {build_identity()} {text}".encode()).hexdigest()


def _plan_from_disk(digest: str) -> Plan | None:
    disk = disk_cache()
    data = None if disk is None else disk.get("plan", digest)
    if data is None:
        return None
    try:
        return Plan.from_json(data.decode())
    except (ValueError, KeyError, TypeError):
        return None


def store_on_disk(kind: str, key: str, text: str) -> None:
    """Keep an entry for other processes, where the cache is on."""
    disk = disk_cache()
    if disk is not None:
        disk.put(kind, key, text.encode())


def build_plan(outputs: Sequence[UOp], targets: Sequence[UOp | None], device: str, still: tuple[int, ...] = ()) -> Plan:
    """Schedule a graph; its kernels are then ready to be compiled."""
    from lazulite.schedule.build import build
    from lazulite.schedule.canonical import canonical_graph

    graph = canonical_graph(outputs, targets, fill_of, stored)
    options = schedule_options(device, still)
    schedule = build(graph.outputs, graph.targets, graph.scalars, graph.positions, _enter_kernel(device), options)
    GlobalCounters.schedules_built += 1
    return schedule.plan


def schedule_options(device: str, still: Iterable[int] = ()) -> Options:
    """The settings and the facts about a device that decide how a graph is cut."""
    from lazulite.schedule.build import Options

    options = Options(fuse=bool(SETTINGS.FUSE) and "nan" not in SETTINGS.CHECK, plan_memory=bool(SETTINGS.PLAN_MEMORY))
    target = Device[device].target
    return (
        options
        if target is None
        else replace(options, cache=target.l2, still=frozenset(still), layout=partial(_layout, device))
    )


def _layout(default_device: str, kernel: UOp, device: str, still: frozenset[int]) -> Packing | None:
    """How a kernel wants an operand in memory."""
    from lazulite.kernel.packing import packing

    target = Device[device or default_device].target
    return None if target is None else packing(kernel, target, still)


def _enter_kernel(default_device: str) -> Callable[[UOp, str], str]:
    from lazulite.ir.canonical import canonical
    from lazulite.ir.text import to_text

    def enter(sink: UOp, device: str) -> str:
        kernel = canonical(sink)  # steps name ranges as the text does
        target = _target_key(device or default_device)
        key = _digest("kernel", f"{target} {SETTINGS.key} {to_text(kernel)}")
        _kernels[key] = kernel
        if SETTINGS.CHECK:
            _note_checked(key, kernel)
        return key

    return enter


def _note_checked(key: str, kernel: UOp) -> None:
    from lazulite.engine.checks import CHECKED

    CHECKED[key] = kernel
    if "bounds" in SETTINGS.CHECK:
        from lazulite.analysis.index_bounds import check_bounds

        check_bounds(kernel)


# --- programs ----------------------------------------------------------------------------------


def _programs_for(wanted: Sequence[_Wanted], rebuild: Callable[[], object]) -> dict[_Wanted, Program]:
    """The loaded programs of kernels; `rebuild` schedules again where a binary is lost.

    Kernels are lowered here one after another, while a helper thread makes machine code of those before.
    """
    shown = SETTINGS.SHOW, SETTINGS.STOP
    with Helper() as helper:
        made: dict[_Wanted, Callable[[], Binary]] = {}
        for key, device in wanted:
            if (key, device) in made or (key, device, *shown) in _programs:
                continue
            binary = None if any(shown) else _binary_from_disk(key)
            if binary is None and key not in _kernels:
                rebuild()
            made[key, device] = partial(_found, binary) if binary else _compile(_kernels.pop(key), device, key, helper)
        for (key, device), result in made.items():
            binary = result()
            program = _programs[key, device, *shown] = Device[device].load(binary)
            program.binary = binary
    return {each: _programs[(*each, *shown)] for each in wanted}


def _found(binary: Binary) -> Binary:
    return binary


def _binary_from_disk(key: str) -> Binary | None:
    disk = disk_cache()
    data = None if disk is None else disk.get("binary", key)
    if data is None:
        return None
    try:
        binary = Binary.from_json(json.loads(data))
    except ValueError:
        return None
    GlobalCounters.programs_from_disk += 1
    return binary


def _compile(kernel: UOp, device: str, key: str, helper: Helper) -> Callable[[], Binary]:
    """Begin to compile a kernel; the result waits for its binary and keeps it on disk."""
    target = Device[device].target
    if target is None:
        from lazulite.analysis.describe import kernel_name
        from lazulite.ir.text import to_text

        finish: Callable[[], Binary] = partial(Binary, kernel_name(kernel), to_text(kernel).encode(), "text")
    else:
        from lazulite.engine.machine_code import machine_code

        finish = machine_code(kernel, target, device, key, helper)

    def finished() -> Binary:
        binary = finish()
        GlobalCounters.programs_compiled += 1
        store_on_disk("binary", key, json.dumps(binary.to_json()))
        return binary

    return finished
