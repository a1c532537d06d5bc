"""Runs of one kernel with steps that are tried: over memory of its own, filled at random.

No tensor is read or written.  The contents are positive, so that no result is small beside what was added up, and
what a kernel stores to is put back before results are compared.  The reference is the program without any steps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.dtype import EIGHT_BITS, DType, dtypes
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp, toposort
from lazulite.kernel.steps import Step
from lazulite.pipeline import compile_kernel
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.device import Argument, Device, Program

_RUNS, _ENOUGH = 10, 0.03
"""Runs of a candidate: at most so many, and no more once they took so many seconds."""
_FEW = 3
"""How many runs show that a candidate is not as fast as the limit."""
_MOST_SCRATCH = 4
"""Scratch memory, in sizes of the second cache."""
_TOLERANCES = {dtypes.float64: 1e-10, dtypes.float32: 1e-4}
_NARROW = 2e-2
"""The largest difference that another order of additions makes, relative to the largest result."""


class Trial:
    """Programs of a kernel on a device, and what they compute."""

    def __init__(self, kernel: UOp, target: Target, device: Device) -> None:
        self.kernel, self.target, self.device = kernel, target, device
        nodes = toposort(kernel)
        self.stored = {store.src[0].arg[0]: store.src[0].dtype for store in kernel.src if store.src[0].op is ops.PARAM}
        self.contents = _contents([node for node in nodes if node.op is ops.PARAM])
        self.memory = {slot: Buffer(device, data.nbytes).allocate() for slot, data in self.contents.items()}
        scalars = {node.arg[0]: _scalar(node) for node in nodes if node.op is ops.SCALAR}
        handles = {slot: buffer.require_handle("tune") for slot, buffer in self.memory.items()}
        slots: dict[int, Argument] = {**scalars, **handles}
        self.arguments = [slots.get(slot, 0) for slot in range(max(slots) + 1)]
        self._restore(self.memory)
        self._programs: dict[tuple[Step, ...], Program] = {}

    def seconds(self, steps: tuple[Step, ...], limit: float) -> float:
        """The shortest of several runs after one that is not counted; infinity once it is clearly above the limit."""
        program = self._program(steps)
        if self._once(program) > _FEW * limit:
            return math.inf
        times: list[float] = []
        while len(times) < _RUNS and sum(times) < _ENOUGH:
            times.append(self._once(program))
            if len(times) == _FEW and min(times) > limit:
                return math.inf
        return min(times)

    def agrees(self, steps: tuple[Step, ...]) -> bool:
        """Whether what is stored is what the program without steps stores."""
        results = self._results(steps)
        return all(_close(results[slot], want, self.stored[slot]) for slot, want in self._reference.items())

    @cached_property
    def _reference(self) -> dict[int, Any]:
        return self._results(())

    def _results(self, steps: tuple[Step, ...]) -> dict[int, Any]:
        self._restore(self.stored)
        self._once(self._program(steps))
        found = {
            slot: numpy.frombuffer(self.memory[slot].tobytes(), _stored_type(t)) for slot, t in self.stored.items()
        }
        self._restore(self.stored)
        return {slot: _widened(values, self.stored[slot]) for slot, values in found.items()}

    def _restore(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self.memory[slot].copy_in(memoryview(self.contents[slot]).cast("B"))

    def _program(self, steps: tuple[Step, ...]) -> Program:
        if steps not in self._programs:
            self._programs[steps] = self._compiled(steps)
        return self._programs[steps]

    def _compiled(self, steps: tuple[Step, ...]) -> Program:
        binary = compile_kernel(self.kernel, self.target, steps, name="tried")
        if binary.scratch_bytes > _MOST_SCRATCH * self.target.l2:
            raise StageError("kernel.steps", f"{binary.scratch_bytes} bytes of scratch memory are too many to try")
        return self.device.load(binary)

    def _once(self, program: Program) -> float:
        with self.device.queue.lock:
            begin = time.perf_counter()
            program(self.arguments)
            self.device.wait()
            return time.perf_counter() - begin


def _contents(memory: Sequence[UOp]) -> dict[int, Any]:
    """What the memory of each slot holds; integers are places in the largest of them as far as their type goes."""
    generator = numpy.random.default_rng(5)
    largest = max([node.arg[1][0] for node in memory], default=1)
    found: dict[int, Any] = {}
    for node in memory:
        slot, (size,), _ = node.arg
        dtype = node.dtype
        if dtype.is_float:
            drawn = generator.random(size, numpy.float32) * numpy.float32(0.75) + numpy.float32(0.25)
            found[slot] = _narrowed(drawn, dtype)
        else:
            most = 2 if dtype is dtypes.bool else min(largest, 1 << dtype.bits - 1)
            found[slot] = generator.integers(0, most, size).astype(_stored_type(dtype))
    return found


def _stored_type(dtype: DType) -> str:
    """NumPy's name for the memory of a type; it has neither bfloat16 nor floats of 8 bits."""
    if dtype is dtypes.bfloat16 or dtype in EIGHT_BITS:
        return f"uint{dtype.bits}"
    return "bool" if dtype is dtypes.bool else f"{dtype.kind}{dtype.bits}"


def _narrowed(values: Any, dtype: DType) -> Any:
    if dtype is dtypes.bfloat16:
        return (values.view(numpy.uint32) >> 16).astype(numpy.uint16)
    if dtype in EIGHT_BITS:
        return numpy.array([dtype.to_bits(dtype.round(value)) for value in values.tolist()], numpy.uint8)
    return values.astype(_stored_type(dtype))


def _widened(values: Any, dtype: DType) -> Any:
    if dtype is dtypes.bfloat16:
        return (values.astype(numpy.uint32) << 16).view(numpy.float32)
    if dtype in EIGHT_BITS:
        return numpy.array([dtype.from_bits(code) for code in range(256)], numpy.float32)[values]
    return values


def _scalar(node: UOp) -> int:
    """The bits of an argument: as large as it may be, where that is known."""
    high = node.arg[2]
    value = high if high is not None else 0.5 if node.dtype.is_float else 1
    return int(value) if node.dtype is dtypes.index else node.dtype.to_bits(value)


def _close(got: Any, want: Any, dtype: DType) -> bool:
    """Equal, floats up to the order of additions; what is not finite must be the same."""
    if not dtype.is_float:
        return bool(numpy.array_equal(got, want))
    finite = numpy.isfinite(want)
    if not numpy.array_equal(got[~finite], want[~finite], equal_nan=True):
        return False
    got, want = got[finite].astype(numpy.float64), want[finite].astype(numpy.float64)
    most = float(numpy.max(numpy.abs(want), initial=0.0)) * _TOLERANCES.get(dtype, _NARROW)
    return bool(numpy.all(numpy.abs(got - want) <= most))
