"""What a realize would do, without doing it: kernels, their work, their steps, and every reason.

`explain` takes handles, gathers what realizing them entails and schedules it; nothing runs and nothing
changes.  A `Recorder` explains every realize while it is open.  Lowering happens when the text of a
stage is asked for.  How an `Explanation` reads is in `engine/explain_text.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lazulite.analysis.describe import kernel_name
from lazulite.base.errors import ArgumentError, nearest
from lazulite.base.origin import Origin, user_frame
from lazulite.base.settings import SETTINGS
from lazulite.engine import execute
from lazulite.engine.compile import schedule_options
from lazulite.engine.explain_text import explanation_text, kernel_text
from lazulite.engine.handles import Handle, stored
from lazulite.engine.loaded import Run
from lazulite.engine.outputs import Output, Work
from lazulite.engine.panels import still_inputs
from lazulite.engine.storage import Storage, fill_of, storage_of
from lazulite.ir import ops
from lazulite.ir.canonical import canonical
from lazulite.ir.dtype import Scalar, by_name
from lazulite.ir.target import Target
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp
from lazulite.kernel.heuristic import choose
from lazulite.kernel.steps import Step, text
from lazulite.pipeline import PIPELINE, Stage, lower
from lazulite.rewrite.trace import Trace, recording
from lazulite.runtime.registry import Device
from lazulite.schedule.build import Schedule, build
from lazulite.schedule.canonical import canonical_graph, fingerprint, nodes_of
from lazulite.schedule.reasons import kernel_reasons, reasons

SCHEDULED = "schedule.kernel"
"""The name under which `stage` gives a kernel as the scheduler wrote it, before the pipeline."""
STAGES = (SCHEDULED, *[stage.name for stage in PIPELINE])


@dataclass(frozen=True, slots=True)
class Reason:
    """What was decided about a value, and why: `kind` is stored, kept, fused or recomputed."""

    kind: str
    op: str
    line: str
    reason: str


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory that a kernel reads or writes: what it is, of how many bytes."""

    what: str
    nbytes: int
    kernels: tuple[int, ...] = ()
    """Who else uses an intermediate."""


@dataclass(eq=False)
class KernelReport:
    """One launch: a kernel, or a copy between devices (then `text` is empty)."""

    name: str
    origin: Origin | None
    device: str
    bytes: int
    """Bytes read or written at least once."""
    ops: int
    """Arithmetic operations; a multiply-add is two."""
    schedule: tuple[Step, ...]
    reads: tuple[Memory, ...]
    writes: tuple[Memory, ...]
    reasons: tuple[Reason, ...]
    sink: UOp | None
    target: Target | None

    @property
    def line(self) -> str:
        """The user's line as ``file:line``; empty where none is known."""
        return "" if self.origin is None else self.origin.place

    @property
    def steps(self) -> tuple[str, ...]:
        """The chosen schedule steps, as `kernel/steps.py` spells them."""
        return tuple(text(self.schedule).splitlines())

    @property
    def text(self) -> str:
        """The kernel as the scheduler wrote it."""
        return "" if self.sink is None else to_text(self.sink)

    def stage(self, name: str) -> str:
        """The program after a stage."""
        _check_stage(name)
        if name == SCHEDULED or self.sink is None:
            return self.text
        if self.target is None:
            raise ArgumentError(
                "stage", f"{self.device} interprets the kernel as the scheduler wrote it", hint=f"stage({SCHEDULED!r})"
            )
        return to_text(self._lowered[name])

    def __str__(self) -> str:
        return kernel_text(self)

    @cached_property
    def _lowered(self) -> dict[str, UOp]:
        """The program after each stage."""
        assert self.sink is not None and self.target is not None
        found: dict[str, UOp] = {}

        def keep(stage: Stage, before: UOp, after: UOp) -> None:
            found[stage.name] = after

        lower(self.sink, self.target, self.schedule, keep)
        return found


@dataclass(eq=False)
class Explanation:
    """What one realize does: `str()` tells it, `kernels` holds the parts."""

    kernels: tuple[KernelReport, ...]
    constants: tuple[str, ...]
    """Values that turn out to be one number everywhere, so that no kernel computes them."""
    arena: int
    """Bytes for values that live only during the run."""
    asked: Origin | None
    rules: Trace
    """What the rewrite rules did while the graph was scheduled, one by one; later stages use none."""

    def stage(self, name: str) -> str:
        """The text of a stage of all kernels.

        >>> (Tensor([1.0, 2.0]) * 3).explain().stage("schedule.kernel").splitlines()[0]
        '--- kernel 0: mul_2, after schedule.kernel'
        """
        _check_stage(name)
        parts = [(number, kernel) for number, kernel in enumerate(self.kernels) if kernel.sink is not None]
        return "\n\n".join(f"--- kernel {n}: {kernel.name}, after {name}\n{kernel.stage(name)}" for n, kernel in parts)

    def __str__(self) -> str:
        return explanation_text(self)

    __repr__ = __str__


def _check_stage(name: str) -> None:
    if name not in STAGES:
        raise ArgumentError(
            "explain", f"there is no stage {name}", rule=f"The stages are {', '.join(STAGES)}.",
            hint=nearest(name, STAGES),
        )  # fmt: skip


def explain(handles: Iterable[Handle]) -> Explanation:
    """What realizing the handles would do."""
    asked = list(handles)
    try:
        return explain_outputs(execute.placed(execute.gathered(asked, state=True)).outputs)
    except Exception:  # as in `realize`: pending state that nobody asked for must not stand in the way
        return explain_outputs(execute.placed(execute.gathered(asked, state=False)).outputs)


def explain_outputs(outputs: Sequence[Output]) -> Explanation:
    """What computing and storing the outputs does."""
    constants = [(output, execute.single_value(output)) for output in outputs]
    computed = [output for output, single in constants if single is None]
    known = tuple(_constant_text(output, single) for output, single in constants if single is not None)
    if not computed:
        return Explanation((), known, 0, user_frame(), Trace())
    return _Scheduler(computed).explanation(known)


def _constant_text(output: Output, single: Scalar) -> str:
    shape = f"{output.value.shape} {output.value.dtype.name}"
    origin = output.value.origin
    place = f" of {origin.place}" if isinstance(origin, Origin) else ""
    return f"the {shape}{place} is {single} everywhere"


class _Scheduler:
    """Schedules outputs and names the parts of the plan in the user's terms."""

    def __init__(self, outputs: Sequence[Output]) -> None:
        self.values = [output.value for output in outputs]
        targets = [None if output.target is None else output.target.node() for output in outputs]
        written = {output.target for output in outputs}

        def fill(node: UOp) -> Scalar | None:  # realizing gives what is written its memory first
            return None if storage_of(node) in written else fill_of(node)

        found = fingerprint(self.values, targets, fill, stored)
        self.outputs, self.buffers = outputs, found.buffers
        self.device, self.trace = execute.device_of_work(outputs, found), Trace()
        with recording(self.trace):
            graph = canonical_graph(self.values, targets, fill, stored)
            options = schedule_options(self.device, still_inputs(found.buffers))
            self.schedule: Schedule = build(
                graph.outputs, graph.targets, graph.scalars, graph.positions, lambda sink, device: "kernel", options
            )
        self.plan, self.nodes = self.schedule.plan, nodes_of(self.values, stored)

    def explanation(self, constants: tuple[str, ...]) -> Explanation:
        kernels = tuple(self._reports())
        return Explanation(kernels, constants, sum(self.plan.arena_sizes().values()), user_frame(), self.trace)

    def _reports(self) -> Iterator[KernelReport]:
        decisions = reasons(self.schedule.fusion)
        for kernel, launch in zip(self.schedule.kernels, self.plan.launches, strict=True):
            device = launch.device or self.device
            target = Device[device].target
            sink = canonical(kernel.sink) if launch.kernel else None
            steps = choose(sink, target) if sink is not None and target is not None and SETTINGS.OPT else ()
            why = [
                Reason(d.kind, _name(d.node), self._place(self.schedule.position(d.node)), d.reason)
                for d in kernel_reasons(kernel, decisions)
            ]
            yield KernelReport(
                "copy" if sink is None else kernel_name(sink), self._origin(launch.origin), device,
                launch.bytes_touched, launch.operations, steps,
                tuple(self._memory(number) for number in launch.reads),
                tuple(self._memory(number) for number in launch.writes), tuple(why), sink, target,
            )  # fmt: skip

    def _origin(self, position: int) -> Origin | None:
        origin = self.nodes[position].origin if 0 <= position < len(self.nodes) else None
        return origin if isinstance(origin, Origin) else None

    def _place(self, position: int) -> str:
        origin = self._origin(position)
        return "" if origin is None else origin.place

    def _memory(self, number: int) -> Memory:
        """A buffer of the plan in the user's terms."""
        plan = self.plan
        if number < plan.inputs:
            return _tensor_memory(self.buffers[number], storage_of(self.buffers[number]))
        if number < plan.inputs + len(plan.fresh):
            fresh = plan.fresh[number - plan.inputs]
            size = by_name(fresh.dtype).itemsize
            for extent in fresh.shape:
                size *= extent
            return Memory(f"new memory for a result, {fresh.shape} {fresh.dtype}", size)
        number_of_own = number - plan.inputs - len(plan.fresh)
        if number_of_own >= len(plan.temporaries):
            panels = plan.panels[number_of_own - len(plan.temporaries)]
            return Memory(f"panels of {self._memory(panels.source).what}", panels.nbytes)
        temporary = plan.temporaries[number_of_own]
        users = tuple(k for k, launch in enumerate(plan.launches) if number in (*launch.reads, *launch.writes))
        return Memory(f"arena at byte {temporary.offset}", temporary.nbytes, users)


def _name(node: UOp) -> str:
    """What a user calls the operation of a node."""
    name: str = node.arg[0].name if node.op is ops.REDUCE else node.op.name
    return {"add": "sum", "mul": "prod"}.get(name, name) if node.op is ops.REDUCE else name


def _tensor_memory(node: UOp, storage: Storage) -> Memory:
    origin = node.origin
    made = f", made at {origin.place}" if isinstance(origin, Origin) else ""
    return Memory(f"memory of a tensor, {storage.shape} {storage.dtype.name}{made}", storage.nbytes)


# --- every realize of a program ------------------------------------------------------------------


@dataclass(eq=False)
class Recorder:
    """Explains each realize that runs while it is open; equal ones once, with how often they ran."""

    explanations: list[Explanation] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    _known: dict[object, int] = field(default_factory=dict)

    def __enter__(self) -> Recorder:
        execute.OBSERVERS.append(self._observe)
        return self

    def __exit__(self, *failure: object) -> None:
        execute.OBSERVERS.remove(self._observe)

    def _observe(self, run: Run, work: Work) -> None:
        outputs = work.outputs
        targets = [None if output.target is None else output.target.node() for output in outputs]
        key = fingerprint([output.value for output in outputs], targets, fill_of, stored).key
        number = self._known.setdefault(key, len(self.counts))
        if number == len(self.counts):
            self.explanations.append(explain_outputs(outputs))
            self.counts.append(0)
        self.counts[number] += 1
