"""Every stage of a kernel's compilation, in order, as one value.

`assembly_of` runs the `PIPELINE` over a `KERNEL` and hands the resulting list to the emitter; `compile_kernel`
also makes the machine code.  What happens between stages (showing, stopping, verifying) is the caller's: it
passes a `Watch`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lazulite.base.errors import LazuliteError, StageError
from lazulite.emit.base import Binary
from lazulite.emit.llvm import Assembly, assemble, write
from lazulite.emit.llvm_compute import native
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp
from lazulite.kernel.apply import apply
from lazulite.kernel.blocks import block_statements
from lazulite.kernel.borders import regroup
from lazulite.kernel.flatten import flatten
from lazulite.kernel.statements import close_loops, each_statement, has_statements
from lazulite.kernel.steps import Step, within
from lazulite.lower.accumulate import accumulate
from lazulite.lower.addresses import split_addresses
from lazulite.lower.decompose import decompose
from lazulite.lower.decompose_reduce import decompose_reductions
from lazulite.lower.epilogue import loop_epilogues
from lazulite.lower.group_sums import group_sums
from lazulite.lower.hints import mark
from lazulite.lower.linear import order
from lazulite.lower.loops import build
from lazulite.lower.stage_memory import stage_memory

KERNEL, LOOP, LINEAR = "KERNEL", "LOOP", "LINEAR"


@dataclass(frozen=True)
class Request:
    """What is compiled for what, and with which steps."""

    target: Target
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Stage:
    """One step of compilation: its name is `layer.file`, it reads and writes a language."""

    name: str
    run: Callable[[UOp, Request], UOp]
    reads: str
    writes: str


def _reductions(root: UOp, request: Request) -> UOp:
    return root if has_statements(root) else decompose_reductions(root, native(request.target))


def _steps(root: UOp, request: Request) -> UOp:
    """Statements get their steps when their loops are built: before, they have one store each."""
    return root if has_statements(root) else apply(root, request.steps)


def _loops(root: UOp, request: Request) -> UOp:
    """Staging frees ranges from the gates that kept them apart, so they are flattened once more."""

    def loops(kernel: UOp, number: int) -> UOp:
        steps = within(request.steps, number)
        scheduled = kernel if number < 0 else apply(decompose_reductions(kernel, native(request.target)), steps)
        staged = mark(stage_memory(scheduled, steps), steps)
        looped = loop_epilogues(accumulate(staged), steps)
        return build(group_sums(flatten(looped)), request.target)

    return close_loops(each_statement(root, loops))


PIPELINE = (
    Stage("kernel.blocks", lambda root, r: block_statements(root, r.steps), reads=KERNEL, writes=KERNEL),
    Stage(
        "kernel.borders", lambda root, _: root if has_statements(root) else regroup(root), reads=KERNEL, writes=KERNEL
    ),
    Stage("lower.decompose_reduce", _reductions, reads=KERNEL, writes=KERNEL),
    Stage("kernel.apply", _steps, reads=KERNEL, writes=KERNEL),
    Stage("lower.loops", _loops, reads=KERNEL, writes=LOOP),
    Stage("lower.decompose", lambda root, request: decompose(root, native(request.target)), reads=LOOP, writes=LOOP),
    Stage("lower.addresses", lambda root, request: split_addresses(root), reads=LOOP, writes=LOOP),
    Stage("lower.linear", lambda root, request: order(root), reads=LOOP, writes=LINEAR),
)

Watch = Callable[[Stage, UOp, UOp], None]
"""Called after each stage with what it read and what it wrote; it may raise to end there."""


def lower(kernel: UOp, target: Target, steps: tuple[Step, ...] = (), watch: Watch | None = None) -> UOp:
    """The kernel as a list for the emitter."""
    request, root = Request(target, steps), kernel
    for stage in PIPELINE:
        with faults_of(stage.name):
            before, root = root, stage.run(root, request)
        if watch is not None:
            watch(stage, before, root)
    return root


def assembly_of(
    kernel: UOp, target: Target, steps: tuple[Step, ...] = (), watch: Watch | None = None, name: str = "kernel"
) -> Assembly:
    """The kernel as text for the code generator; without steps it is plain loops."""
    linear = lower(kernel, target, steps, watch)
    with faults_of("emit.llvm"):
        return write(linear, name)


def compile_kernel(
    kernel: UOp, target: Target, steps: tuple[Step, ...] = (), watch: Watch | None = None, name: str = "kernel"
) -> Binary:
    """The finished program."""
    assembly = assembly_of(kernel, target, steps, watch, name)
    with faults_of("emit.llvm_object"):
        return assemble(assembly, target)


class faults_of:
    """Turn an exception that is none of ours into the fault of a stage."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, LazuliteError):
            raise StageError(self.stage, f"{type(error).__name__}: {error}") from error
