"""`custom_kernel`: a kernel written by hand, run on tensors.

The function gets a node of memory for each tensor and gives the kernel as a node.  What it reads and writes
follows from its loads and stores.  In the order of the program the call is one write of the tensors that it writes,
like `assign`: its results are values like all others, so the scheduler may run it in the memory of the tensor, or in
other memory and copy what it left, as whoever reads the old contents needs it.  A view is written through to its base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from lazulite.base.errors import ArgumentError, DeviceError, EffectError, ShapeError
from lazulite.engine.effects import results_of
from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo, touched_slots
from lazulite.ir.size import varies
from lazulite.ir.uop import UOp
from lazulite.tensor.base import Base


class CustomMethods(Base):
    """Kernels written by hand."""

    __slots__ = ()

    def _write(self, value: UOp) -> None:
        raise NotImplementedError

    def custom_kernel(
        self, *others: Self, fxn: Callable[..., UOp], grad_fxn: Callable[..., Any] | None = None
    ) -> list[Self]:
        """Run a kernel on this tensor and others; gives them as they are afterwards.

        `fxn` gets a node of memory for each and gives the kernel: a store, or several in a ``UOp.sink``, to which
        ``arg=KernelInfo(name)`` gives a name.  `grad_fxn(upstream.., call)` gives a gradient, or None, for each
        tensor; `upstream` is what reaches those that the kernel writes.  These hold the result from here on.

        >>> def double(out, x):
        ...     i = UOp.range(3, 0)
        ...     return out[i].store(x[i] * 2)
        >>> out = Tensor([0, 0, 0])
        >>> out.custom_kernel(Tensor([1, 2, 3]), fxn=double)[0].tolist(), out.tolist()
        ([2, 4, 6], [2, 4, 6])
        """
        tensors = [self, *others]
        for each in others:
            if each.device != self.device:
                raise DeviceError(
                    "custom_kernel", f"its tensors are on different devices, {self.device} and {each.device}",
                    about={"first": self, "other": each}, hint=f"move one of them: other.to({self.device!r})",
                )  # fmt: skip
        body = _kernel(fxn, tensors)
        _refuse_two_writes(body, tensors)
        left = results_of(body, [tensor.uop for tensor in tensors], grad_fxn)
        results: list[Self] = []
        for slot, tensor in enumerate(tensors):
            if slot in left:
                tensor._write(left[slot])
            results.append(tensor if slot in left else self._derived(tensor.uop))
        return results


def _kernel(fxn: Callable[..., UOp], tensors: Sequence[Base]) -> UOp:
    """What the function makes of memory in the shapes of the tensors, as a SINK."""
    if not callable(fxn):
        raise ArgumentError("custom_kernel", f"fxn is a function that gives a kernel, got {fxn!r}")
    for each in tensors:
        if varies(each.shape):
            raise ShapeError("custom_kernel", "a kernel takes memory of sizes that do not vary", about={"tensor": each})
    memory = [UOp(ops.PARAM, t.dtype, (), (slot, t.shape, t.device)) for slot, t in enumerate(tensors)]
    body = fxn(*memory)
    if not isinstance(body, UOp) or body.op not in (ops.STORE, ops.SINK):
        raise ArgumentError("custom_kernel", f"fxn gives a STORE or a SINK of them, got {body!r}")
    sink = body if body.op is ops.SINK else UOp.sink(body)
    if sink.arg is not None and not (isinstance(sink.arg, KernelInfo) and sink.arg.name.isidentifier()):
        raise ArgumentError("custom_kernel", f"the arg of a kernel is a KernelInfo with a name, got {sink.arg!r}")
    return sink


def _refuse_two_writes(body: UOp, tensors: Sequence[Base]) -> None:
    """One tensor in two slots that are written would be left with two values."""
    written = touched_slots(body, len(tensors)).writes
    for slot in written:
        if any(tensors[slot] is tensors[other] for other in written if other < slot):
            raise EffectError(
                "custom_kernel", "the kernel writes one tensor in two of its slots", about={"tensor": tensors[slot]},
                hint="pass the tensor once, and write its memory there",
            )  # fmt: skip
