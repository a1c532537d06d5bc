"""Realize handles: gather what must run together, find the plan, bind it, run it, commit.

Everything that can fail for reasons of the program (scheduling, compilation, allocation) happens
before the first launch, and nothing is committed until the last one is done; so a failure leaves
every tensor as it was.  Only a fault during the launches loses contents: those of the storages that
were being written.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

from lazulite.base.errors import GradientError, LazuliteError
from lazulite.base.settings import SETTINGS
from lazulite.engine import compile as compiled
from lazulite.engine.effects import written_by
from lazulite.engine.handles import (
    Handle,
    history,
    keep_history,
    lazy_writes,
    note_stored,
    stored,
    tracked_values,
    with_company,
)
from lazulite.engine.inspection import issue_watched, origin_of
from lazulite.engine.loaded import Run, bind, issue
from lazulite.engine.outputs import Output, Work, outputs_of
from lazulite.engine.panels import panels_of, still_inputs
from lazulite.engine.spread import in_parts, joined
from lazulite.engine.storage import Storage, fill_of, filled, storage_of
from lazulite.ir import ops
from lazulite.ir.dtype import Scalar
from lazulite.ir.placement import placements_exist
from lazulite.ir.uop import UOp, toposort
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.forking import renew_after_fork
from lazulite.runtime.registry import Device
from lazulite.schedule.canonical import Fingerprint, fingerprint, folded, rests_on_constants
from lazulite.schedule.plan import Plan


class _Lock:
    """One lock around realizing; a fork renews it."""

    def __init__(self) -> None:
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        self.lock = threading.RLock()


ONE_AT_A_TIME = _Lock()
"""A thread holds its `lock` while it realizes, or does something else that no realize may come between."""


OBSERVERS: list[Callable[[Run, Work], None]] = []
"""Called with what a realize is about to run, and what it then has computed, before its first launch."""


def realize(handles: Iterable[Handle]) -> None:
    """Compute the values of the handles, and of those that have to go with them."""
    with ONE_AT_A_TIME.lock:
        asked = list(handles)
        try:
            work, run = _prepared(asked, state=True)
        except Exception:  # pending state that nobody asked for must not stand in the way
            work, run = _prepared(asked, state=False)
        _complete(work, run)


def preserve(handles: Sequence[Handle]) -> None:
    """Give each of these handles, which show or need contents that are about to be replaced, memory of its own."""
    work = placed(outputs_of(handles))
    _complete(work, _planned(work.outputs))


def placed(work: Work) -> Work:
    """The work with what lies on several devices in parts."""
    return in_parts(work) if placements_exist() else work


def gathered(handles: Sequence[Handle], *, state: bool) -> Work:
    """What realizing the handles computes; with `state`, pending writes go along."""
    work = outputs_of(with_company(handles, written_by, state=state))
    lazily = lazy_writes() if state else []
    if lazily and (unasked := {*lazily} - {*handles}):
        for output in work.outputs:
            output.keeps_history = output.target is None and not unasked.isdisjoint(output.handles)
    return work


def _prepared(handles: Sequence[Handle], *, state: bool) -> tuple[Work, Run | None]:
    """What realizing the handles computes, ready to be launched."""
    work = gathered(handles, state=state)
    work.outputs = [output for output in work.outputs if not _filled(output)]
    work = placed(work)
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
    values: list[UOp] = []
    targets: list[UOp | None] = []
    made: list[object] = []
    for output in outputs:
        values.append(output.value)
        if output.target is None:
            targets.append(None)
            made.append(output.value.origin)
        else:
            materialize(output.target)  # else the first step of a training would be another program than the second
            targets.append(output.target.node())
    found = fingerprint(values, targets, fill_of, stored)
    inputs = [_contents(node) for node in found.buffers]
    loaded = compiled.loaded_for(values, targets, found, device_of_work(outputs, found), still_inputs(found.buffers))
    panels = [panels_of(storage_of(found.buffers[filling.source]), filling) for filling in loaded.fillings]
    return bind(loaded, inputs, panels, found.scalars, made, found.variables)


def _complete(work: Work, run: Run | None) -> None:
    """Launch and commit; writes of storages together."""
    for output in work.outputs:
        if output.target is not None:
            with uninterrupted():
                _launch_and_commit(work, run)
            return
    _launch_and_commit(work, run)


def _launch_and_commit(work: Work, run: Run | None) -> None:
    if run is not None:
        for observe in OBSERVERS:
            observe(run, work)
        _submit(run, work.outputs)
        _commit(run, work)
    work.done()


def materialize(storage: Storage) -> Buffer:
    """The memory of a storage; one that holds a single value everywhere gets its memory now."""
    if storage.buffer is None:
        pattern = storage.dtype.to_bits(storage.fill or 0).to_bytes(storage.dtype.itemsize, "little")
        storage.buffer = Buffer(Device[storage.home], storage.nbytes).allocate()
        storage.buffer.copy_in(memoryview(pattern * (storage.nbytes // len(pattern))))
    return storage.buffer


def _contents(node: UOp) -> Buffer:
    """The memory of an operand, which still has to hold what the node stands for."""
    storage = storage_of(node)
    storage.require_contents("realize")
    if storage.version != node.arg[1]:
        raise GradientError(
            "realize",
            "a value is needed that a later write has replaced",
            rule="A gradient recomputes what was not kept, and needs the values of that time.",
            hint="take the gradient before the write",
            about={"the old value": node, "replaced by": storage.node()},
        )
    return storage.buffer or materialize(storage)


def device_of_work(outputs: Sequence[Output], found: Fingerprint) -> str:
    """The device of the work that names none: that of a target or operand, else the default."""
    for output in outputs:
        if output.target is not None:
            return output.target.home
    for node in found.buffers:
        return str(node.arg[3])
    return Device.DEFAULT


# --- running -----------------------------------------------------------------------------------


def _submit(run: Run, outputs: Sequence[Output]) -> None:
    begun, watched = 0, SETTINGS.watched
    try:
        for command in run.loaded.commands:
            begun += 1
            if watched:
                issue_watched(run, command, outputs)
            else:
                issue(run, command)
    except BaseException as error:
        if begun:
            _lose(outputs, run.loaded.plan, begun, error)
        raise


def _lose(outputs: Sequence[Output], plan: Plan, begun: int, error: BaseException) -> None:
    """Mark the storages that the first `begun` launches may have written; name the last of these in the error."""
    touched = {number for launch in plan.launches[:begun] for number in launch.writes}
    for output, number in zip(outputs, plan.outputs, strict=True):
        if output.target is not None and number in touched:
            output.target.failure = f"{type(error).__name__} while a kernel wrote it"
    if isinstance(error, LazuliteError):
        error.add_origin(origin_of(plan.launches[begun - 1], outputs))


_HANDLERS = import_module("_signal")
"""What `signal` is made of: without giving numbers the names of signals, which takes ten times as long."""


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back, so that what launches write together is written, and noted as written, together.

    A mask of this thread would not do: the kernel then gives the signal to another thread, and Python
    still interrupts this one.
    """
    handler = _HANDLERS.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if not callable(handler):
        yield
        return
    held: list[FrameType | None] = []
    _HANDLERS.signal(signal.SIGINT, lambda number, frame: held.append(frame))
    try:
        yield
    finally:
        _HANDLERS.signal(signal.SIGINT, handler)
        if held:
            handler(signal.SIGINT, held[0])


# --- committing --------------------------------------------------------------------------------


def _commit(run: Run, work: Work) -> None:
    tracked = tracked_values()
    descending = _descending(work, tracked) if tracked else tracked
    for output, number in zip(work.outputs, run.loaded.plan.outputs, strict=True):
        storage = output.target
        if storage is None:
            storage = Storage(output.value.dtype, output.value.shape, run.buffers[number].device.name)
        if storage.fill is not None and tracked:
            keep_history(storage.node(), filled(storage))
        _store(output, storage, storage.written(run.buffers[number]), descending)
    for each in work.spread:
        storage = joined(each)
        _store(each.output, storage, storage.node(), descending)


def _store(output: Output, storage: Storage, node: UOp, descending: set[UOp]) -> None:
    """Note that a storage has the value of an output from now on."""
    tracks = output.value in descending and not (output.handles and output.handles[0].requires_grad)
    if tracks or output.keeps_history:
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


def _descending(work: Work, tracked: set[UOp]) -> set[UOp]:
    """The nodes of what was computed through which a gradient may still be asked."""
    found: set[UOp] = set()
    values = [output.value for output in (*work.outputs, *[each.output for each in work.spread])]
    for node in toposort(*values, enter=lambda node: node.op is not ops.DETACH):
        below = node.op is not ops.DETACH and (history(node) is not None or not found.isdisjoint(node.src))
        if node in tracked or below:
            found.add(node)
    return found
