"""``CHECK=nan`` and ``CHECK=reference``: what each launch wrote, held against what it should have written.

With `nan` every operation is a kernel of its own (results are the same), so the first one that makes a value
that is not finite out of finite ones can be named.  With `reference` small kernels run in the interpreter
too.  The kernels of a checked plan are kept by key (`CHECKED`); such a plan never comes from disk.  A check that
fails is a fault of the launch: what it wrote is lost.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any

from lazulite.base.errors import CheckError
from lazulite.base.settings import SETTINGS
from lazulite.base.terminal import say
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp, toposort

if TYPE_CHECKING:
    from lazulite.engine.loaded import Command, Run

CHECKED: dict[str, UOp] = {}
"""The kernels of plans that were made under CHECK."""
MOST_WORK = 1 << 18
"""The interpreter is asked about kernels of so many operations and loads."""
NodeOf = Callable[[], UOp | None]


class Check(ABC):
    """One look at a launch: made before it runs, asked after."""

    def __init__(self, run: Run, command: Command, kernel: UOp, node_of: NodeOf) -> None:
        self.run, self.launch, self.kernel, self.node_of = run, command.launch, kernel, node_of
        self.name = "" if command.program is None else command.program.name
        nodes = toposort(kernel)
        self.types: dict[int, DType] = {n.arg[0]: n.dtype for n in nodes if n.op is ops.PARAM}
        self.read = {n.src[0].arg[0] for n in nodes if n.op is ops.LOAD and n.src[0].op is ops.PARAM}
        self.written = {n.src[0].arg[0] for n in nodes if n.op is ops.STORE and n.src[0].op is ops.PARAM}

    @abstractmethod
    def after(self) -> None:
        """Raise a CheckError if the launch did what it must not."""

    def contents(self, slot: int) -> MutableSequence[Any]:
        """A copy of what lies in the memory of a slot."""
        from lazulite.runtime.devices.python import elements

        data = bytearray(self.run.buffers[self.launch.buffers[slot]].tobytes())
        return elements(memoryview(data), self.types[slot])


class NanCheck(Check):
    """The first value that is not finite although all that it was made of is."""

    def __init__(self, run: Run, command: Command, kernel: UOp, node_of: NodeOf) -> None:
        super().__init__(run, command, kernel, node_of)
        constants = [n.value for n in toposort(kernel) if n.op is ops.CONST and n.dtype.is_float]
        given = all(map(math.isfinite, constants)) and all(map(math.isfinite, _scalars(run, command, kernel).values()))
        self.innocent = given and all(self.first_odd(slot) is None for slot in self.read)
        partly = any(n.op is ops.RANGE and n.src[0].op is not ops.CONST for n in toposort(kernel))
        self.before = {slot: self.contents(slot) for slot in self.written} if self.innocent and partly else {}
        """What was in memory of which the launch writes as much as there is now: behind that it stays."""

    def first_odd(self, slot: int, before: Sequence[Any] = ()) -> int | None:
        """The place of the first element that is not finite, and was not so before."""
        if not self.types[slot].is_float:
            return None
        places = enumerate(self.contents(slot))
        return next((i for i, v in places if not (math.isfinite(v) or (before and not math.isfinite(before[i])))), None)

    def after(self) -> None:
        if not self.innocent:
            return
        for slot in self.written:
            place = self.first_odd(slot, self.before.get(slot, ()))
            if place is not None:
                values, node = self.contents(slot), self.node_of()
                name = self.name if node is None else node.op.name
                raise CheckError(
                    "CHECK=nan", f"{name} made {values[place]} of finite values, at element {place}",
                    about={} if node is None else {"the result": node},
                )  # fmt: skip


class ReferenceCheck(Check):
    """What the interpreter makes of the same memory."""

    def __init__(self, run: Run, command: Command, kernel: UOp, node_of: NodeOf) -> None:
        super().__init__(run, command, kernel, node_of)
        self.memory = {slot: self.contents(slot) for slot in self.types}
        self.scalars = _scalars(run, command, kernel)

    def after(self) -> None:
        from lazulite.ir.evaluate import run_kernel

        scale = max([abs(v) for s in self.read for v in self.memory[s] if math.isfinite(v)], default=0)
        run_kernel(self.kernel, self.memory, self.scalars)
        for slot in self.written:
            dtype, expected = self.types[slot], self.memory[slot]
            allowed = _tolerance(self.kernel, dtype)
            for place, (right, found) in enumerate(zip(expected, self.contents(slot), strict=True)):
                if not _alike(right, found, allowed * max(abs(right), scale)):
                    node = self.node_of()
                    raise CheckError(
                        "CHECK=reference", f"{self.name} stores {found} at element {place}, the interpreter {right}",
                        about={} if node is None else {"the result": node},
                        hint="OPT=0 and FUSE=0 tell whether the steps or the fusion are at fault",
                    )  # fmt: skip


def checks_of(run: Run, command: Command, node_of: NodeOf) -> list[Check]:
    """The checks that the settings ask of a launch; copies between devices are taken as right."""
    kernel = CHECKED.get(command.launch.kernel)
    if kernel is None:
        return []
    wanted = SETTINGS.CHECK.split(",")
    checks: list[Check] = [NanCheck(run, command, kernel, node_of)] if "nan" in wanted else []
    if "reference" in wanted and command.queue.device.target is not None:
        if _work(kernel) <= MOST_WORK:
            checks.append(ReferenceCheck(run, command, kernel, node_of))
        else:
            say(
                f"CHECK=reference: {command.program.name if command.program else 'copy'} is too large to be interpreted"
            )
    return checks


def _work(kernel: UOp) -> int:
    from lazulite.analysis.cost import estimate

    work = estimate(kernel)
    return work.operations + work.bytes_loaded + work.bytes_stored


def _scalars(run: Run, command: Command, kernel: UOp) -> dict[int, Any]:
    """The by-value arguments of a launch, by slot."""
    found = {}
    for node in toposort(kernel):
        if node.op is ops.SCALAR:
            bits = run.words[command.words[node.arg[0]]]
            assert isinstance(bits, int)
            dtype = dtypes.int64 if node.dtype is dtypes.index else node.dtype
            found[node.arg[0]] = dtype.from_bits(bits & ((1 << 8 * dtype.itemsize) - 1))
    return found


def _tolerance(kernel: UOp, dtype: DType) -> float:
    """How far a result may be from the interpreter's, for each unit of the largest operand."""
    if not dtype.is_float:
        return 0.0
    sums = [math.prod(int(r.vmax) + 1 for r in n.src[1:]) for n in toposort(kernel) if n.op is ops.REDUCE]
    longest = max(sums, default=1)
    return (1 + math.log2(longest)) * math.sqrt(longest) * 32.0 / float(1 << dtype.mantissa_bits)


def _alike(right: Any, found: Any, allowed: float) -> bool:
    if right == found or (right != right and found != found):
        return True
    return math.isfinite(right) and math.isfinite(found) and abs(right - found) <= allowed
