"""`custom_kernel`: a kernel written by hand, run on tensors.

The function gets a node of memory for each tensor and gives the kernel as a node.  What it reads and writes
follows from its loads and stores.  In the order of the program the call is one write of the tensors that it writes:
they then stand for what it leaves, and what was read of them before stays.  A tensor that has no memory of its
own, or whose old contents somebody still reads, is copied to new memory first; a view is written through to its base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from lazulite.base.errors import ArgumentError, DeviceError, ShapeError
from lazulite.engine.handles import Handle, readers_of
from lazulite.engine.storage import Storage
from lazulite.engine.views import ancestors
from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo, memory_below, touched_slots
from lazulite.ir.size import varies
from lazulite.ir.uop import UOp
from lazulite.tensor.base import Base


class CustomMethods(Base):
    """Kernels written by hand."""

    __slots__ = ()
    _handle: Handle

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
        written = set(touched_slots(body, len(tensors)).writes)
        arguments = [_memory(t) if slot in written else t.uop for slot, t in enumerate(tensors)]
        call = body.call(*arguments, grad_fxn=grad_fxn)
        results: list[Self] = []
        for slot, (tensor, argument) in enumerate(zip(tensors, arguments, strict=True)):
            if slot in written:
                tensor._write(argument.after(call))
            results.append(tensor if slot in written else self._derived(argument.after(call)))
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


def _memory(tensor: Any) -> UOp:
    """Memory that holds what the tensor does, for a kernel to write.

    It is the tensor's own where nobody can look at what was there before, else new memory with a copy.
    """
    handle: Handle = tensor._handle
    value, storage = handle.value, handle.storage
    if storage is not None and value.op in (ops.BUFFER, ops.AFTER) and not ancestors(handle):
        contents = storage.node()
        if memory_below(value) is contents and not readers_of({contents}, [handle]):
            return value
    memory = Storage(tensor.dtype, tensor.shape, tensor.device, fill=0).node()
    return memory.after(memory.store(value))
