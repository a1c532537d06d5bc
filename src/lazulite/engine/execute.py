"""Realize handles: gather what must run together, find the plan, bind it, run it, commit.

Everything that can fail for reasons of the program (scheduling, compilation, allocation) happens
before the first launch, and nothing is committed until the last one is done; so a failure leaves
every tensor as it was.  Only a fault during the launches loses contents: those of the storages that
were being written.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType

from lazulite.base.errors import DeviceError, GradientError, LazuliteError, OutOfMemoryError
from lazulite.base.origin import Origin
from lazulite.base.settings import SETTINGS
from lazulite.base.terminal import say
from lazulite.engine import compile as compiled
from lazulite.engine.effects import written_by
from lazulite.engine.handles import Handle, history, keep_history, note_stored, stored, tracked_values, with_company
from lazulite.engine.outputs import Output, Work, outputs_of
from lazulite.engine.storage import Storage, fill_of, is_current, storage_of
from lazulite.ir import ops
from lazulite.ir.dtype import Scalar, by_name
from lazulite.ir.uop import UOp, toposort
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.counters import GlobalCounters
from lazulite.runtime.device import Argument, Program
from lazulite.runtime.forking import renew_after_fork
from lazulite.runtime.registry import Device
from lazulite.schedule.canonical import Fingerprint, fingerprint, folded, nodes_of, rests_on_constants
from lazulite.schedule.plan import Launch, Plan


class _Lock:
    """One lock around realizing; a fork renews it."""

    def __init__(self) -> None:
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self.lock = threading.RLock()


_ONE_AT_A_TIME = _Lock()


OBSERVERS: list[Callable[[Sequence[Output]], None]] = []
"""Called with what a realize is about to compute, before its first launch."""


def realize(handles: Iterable[Handle]) -> None:
    """Compute the values of the handles, and of those that have to go with them."""
    with _ONE_AT_A_TIME.lock:
        asked = list(handles)
        try:
            work, run = _prepared(asked, state=True)
        except Exception:  # pending state that nobody asked for must not stand in the way
            work, run = _prepared(asked, state=False)
        _complete(work, run)


def gathered(handles: Sequence[Handle], *, state: bool) -> Work:
    """What realizing the handles computes; with `state`, pending writes go along."""
    return outputs_of(with_company(handles, written_by, state=state))


def _prepared(handles: Sequence[Handle], *, state: bool) -> tuple[Work, Run | None]:
    """What realizing the handles computes, ready to be launched."""
    work = gathered(handles, state=state)
    work.outputs = [output for output in work.outputs if not _filled(output)]
    return work, _planned(work.outputs) if work.outputs else None


def _filled(output: Output) -> bool:
    """Whether the value turned out to be one constant: then its handles share a storage without memory."""
    value = single_value(output)
    if value is None:
        return False
    place = next((str(n.arg[3]) for n in toposort(output.value) if n.op is ops.BUFFER), Device.DEFAULT)
    storage = Storage(output.value.dtype, output.value.shape, place, fill=value)
    _hand_over(output, storage, storage.node())
    return True


def single_value(output: Output) -> Scalar | None:
    """The one number that a value without a storage of its own is everywhere, where constants alone make it."""
    if output.target is not None or not rests_on_constants(output.value, fill_of):
        return None
    return folded(output.value, fill_of)


def _planned(outputs: Sequence[Output]) -> Run:
    values = [output.value for output in outputs]
    for output in outputs:
        if output.target is not None:  # else the first step of a training would be another program than the second
            materialize(output.target)
    targets = [None if output.target is None else output.target.node() for output in outputs]
    found = fingerprint(values, targets, fill_of, stored)
    _check_contents(found.buffers)
    device = device_of_work(outputs, found)
    plan = compiled.plan_for(values, targets, found, device)
    return _bind(plan, found, device, values, targets)


def _complete(work: Work, run: Run | None) -> None:
    """Launch and commit."""
    keep_together = any(output.target is not None for output in work.outputs)
    with _uninterrupted() if keep_together else nullcontext():
        if run is not None:
            for observe in OBSERVERS:
                observe(work.outputs)
            _submit(run, work.outputs)
            _commit(run, work.outputs)
        work.done()


def materialize(storage: Storage) -> Buffer:
    """The memory of a storage; one that holds a single value everywhere gets its memory now."""
    if storage.buffer is None:
        pattern = storage.dtype.to_bits(storage.fill or 0).to_bytes(storage.dtype.itemsize, "little")
        storage.buffer = Buffer(Device[storage.device], storage.nbytes).allocate()
        storage.buffer.copy_in(memoryview(pattern * (storage.nbytes // len(pattern))))
    return storage.buffer


def _check_contents(buffers: Iterable[UOp]) -> None:
    for node in buffers:
        storage = storage_of(node)
        if storage.failure is not None:
            raise DeviceError("realize", f"the contents of a tensor are lost: {storage.failure}")
        if not is_current(node):
            raise GradientError(
                "realize",
                "a value is needed that a later write has replaced",
                rule="A gradient recomputes what was not kept, and needs the values of that time.",
                hint="take the gradient before the write",
                about={} if node.origin is None else {"the old value": node},
            )


def device_of_work(outputs: Sequence[Output], found: Fingerprint) -> str:
    """The device of the work that names none: that of a target or operand, else the default."""
    for output in outputs:
        if output.target is not None:
            return output.target.device
    for node in found.buffers:
        return str(node.arg[3])
    return Device.DEFAULT


# --- binding -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Run:
    """A plan with everything it needs at hand."""

    plan: Plan
    device: str
    buffers: list[Buffer]
    programs: list[Program | None]
    arguments: list[list[Argument]]
    values: Sequence[UOp]


def _bind(plan: Plan, found: Fingerprint, device: str, values: Sequence[UOp], targets: Sequence[UOp | None]) -> Run:
    def rebuild() -> object:
        return compiled.build_plan(values, targets, device)

    programs = [
        compiled.program_for(launch.kernel, launch.device or device, rebuild) if launch.kernel else None
        for launch in plan.launches
    ]
    buffers = [materialize(storage_of(node)) for node in found.buffers]
    made = [value.origin for value, target in zip(values, targets, strict=True) if target is None]
    buffers += [
        _allocated(f.device or device, _nbytes(f.dtype, f.shape), origin)
        for f, origin in zip(plan.fresh, made, strict=True)
    ]
    arenas = {
        name: Buffer(Device[name or device], size).allocate() for name, size in plan.arena_sizes().items()
    }  # fmt: skip
    buffers += [arenas[t.device].view(t.offset, t.nbytes) for t in plan.temporaries]
    scalars = [by_name(name).to_bits(value) for name, value in zip(plan.scalars, found.scalars, strict=True)]
    arguments = [_arguments(launch, buffers, scalars) for launch in plan.launches]
    return Run(plan, device, buffers, programs, arguments, values)


def _allocated(device: str, nbytes: int, origin: object) -> Buffer:
    """Memory for an output; where there is none, the error shows the line that made the value."""
    line = origin if isinstance(origin, Origin) else None
    try:
        return Buffer(Device[device], nbytes, label=line or "").allocate()
    except OutOfMemoryError as error:
        error.add_origin(line)
        raise


def _nbytes(dtype: str, shape: Sequence[int]) -> int:
    return math.prod(shape) * by_name(dtype).itemsize


def _arguments(launch: Launch, buffers: Sequence[Buffer], scalars: Sequence[int]) -> list[Argument]:
    if not launch.kernel:
        return []
    return [
        scalars[scalar] if buffer < 0 else buffers[buffer].require_handle("realize")
        for buffer, scalar in zip(launch.buffers, launch.scalars, strict=True)
    ]


# --- running -----------------------------------------------------------------------------------


def _submit(run: Run, outputs: Sequence[Output]) -> None:
    started = -1
    try:
        for started, launch in enumerate(run.plan.launches):
            _execute(run, started, launch)
    except BaseException as error:
        _lose(run, outputs, started, error)
        raise


def _execute(run: Run, position: int, launch: Launch) -> None:
    device = Device[launch.device or run.device]
    program = run.programs[position]
    before = time.perf_counter() if SETTINGS.DEBUG >= 2 else 0.0
    if program is None:
        device.queue.copy(run.buffers[launch.buffers[0]], run.buffers[launch.buffers[1]])
    else:
        device.queue.exec(program, run.arguments[position])
    GlobalCounters.global_ops += launch.operations
    GlobalCounters.global_mem += launch.bytes_touched
    if SETTINGS.DEBUG >= 2:
        device.synchronize()
        _report(run, position, launch, time.perf_counter() - before)


def _report(run: Run, position: int, launch: Launch, seconds: float) -> None:
    program = run.programs[position]
    name = "copy" if program is None else program.name
    origin = origin_of_launch(run.values, launch)
    place = "" if origin is None else origin.place
    rates = f"{launch.operations / seconds / 1e9:8.2f} GFLOP/s {launch.bytes_touched / seconds / 1e9:8.2f} GB/s"
    device = launch.device or run.device
    say(f"{device} {GlobalCounters.kernel_count:5d} {name:28s} {seconds * 1e6:10.1f}us {rates} {place}")


def origin_of_launch(values: Sequence[UOp], launch: Launch) -> Origin | None:
    """The user's line of the value that a launch computes."""
    if launch.origin < 0:
        return None
    nodes = nodes_of(values, stored)
    node = nodes[launch.origin] if launch.origin < len(nodes) else None
    return node.origin if node is not None and isinstance(node.origin, Origin) else None


def _lose(run: Run, outputs: Sequence[Output], started: int, error: BaseException) -> None:
    """Mark the storages that the launches so far may have written; name the launch in the error."""
    if started < 0:
        return
    touched = {number for launch in run.plan.launches[: started + 1] for number in launch.writes}
    for output, number in zip(outputs, run.plan.outputs, strict=True):
        if output.target is not None and number in touched:
            output.target.failure = f"{type(error).__name__} while a kernel wrote it"
    if isinstance(error, LazuliteError):
        error.add_origin(origin_of_launch(run.values, run.plan.launches[started]))


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back, so that what launches write together is written, and noted as written, together.

    A mask of this thread would not do: the kernel then gives the signal to another thread, and Python
    still interrupts this one.
    """
    handler = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if not callable(handler):
        yield
        return
    held: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            handler(signal.SIGINT, held[0])


# --- committing --------------------------------------------------------------------------------


def _commit(run: Run, outputs: Sequence[Output]) -> None:
    descending = _descending([output.value for output in outputs], tracked_values())
    for output, number in zip(outputs, run.plan.outputs, strict=True):
        storage = output.target
        if storage is None:
            storage = Storage(output.value.dtype, output.value.shape, run.buffers[number].device.name)
        node = storage.written(run.buffers[number])
        if output.value in descending and not (output.handles and output.handles[0].requires_grad):
            keep_history(node, output.value)
        _hand_over(output, storage, node)


def _hand_over(output: Output, storage: Storage, node: UOp) -> None:
    """Give the handles of an output its stored value; the first of them owns the storage."""
    node.origin = output.value.origin
    note_stored(output.value, node)
    for handle in output.handles[:1]:
        handle.storage = storage
    for handle in output.handles:
        handle.value = node


def _descending(values: Sequence[UOp], tracked: set[UOp]) -> set[UOp]:
    """The nodes of a graph through which a gradient may still be asked."""
    found: set[UOp] = set()
    if not tracked:
        return found
    for node in toposort(*values, enter=lambda node: node.op is not ops.DETACH):
        if node.op is ops.DETACH:
            continue
        if node in tracked or history(node) is not None or not found.isdisjoint(node.src):
            found.add(node)
    return found
