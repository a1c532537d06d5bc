"""What a CALL and a LAUNCH mean: their body run on the contents of their arguments.

`run_call` changes the contents that it is given, one flat list for each slot; `launched` gives what one
memory of a LAUNCH holds afterwards.  Whole values inside a body are computed by the caller's `tensors`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lazulite.ir import ops
from lazulite.ir.calls import arguments_of, memory_below, parsed, touched_slots
from lazulite.ir.evaluate_kernel import run_kernel
from lazulite.ir.uop import UOp, toposort

Values = list[Any]
Tensors = Callable[[Sequence[UOp], Mapping[UOp, Values]], list[Values]]


def run_call(body: UOp, memory: list[Values], tensors: Tensors) -> None:
    """Run a body on the contents of its slots.  Recursion goes as deep as lists of calls hold lists."""
    if body.op is ops.COPY:
        (source,) = touched_slots(body, len(memory)).reads
        memory[0][:] = memory[source]
    elif body.op is ops.PROGRAM:
        run_call(body.src[0], memory, tensors)
    elif body.op is ops.LINEAR and all(node.op is ops.CALL for node in body.src):
        for call in body.src:
            run_call(call.src[0], [_inner(argument, memory, tensors) for argument in arguments_of(call)], tensors)
    elif any(node.op in (ops.RANGE, ops.LOAD) or len(node.src) > 2 for node in body.src):
        run_kernel(body, dict(enumerate(memory)), {})
    else:
        _run_stores(body, memory, tensors)


def _inner(argument: UOp, memory: list[Values], tensors: Tensors) -> Values:
    """The contents that an argument of a nested call stands for."""
    if argument.op is ops.PARAM:
        return memory[argument.arg[0]]
    return tensors([argument], _contents([argument], memory))[0]


def _run_stores(body: UOp, memory: list[Values], tensors: Tensors) -> None:
    written = {memory_below(store.src[0]) for store in toposort(body) if store.op is ops.STORE}
    params = [param for param in written if param is not None and param.op is ops.PARAM]
    after = tensors([param.after(body) for param in params], _contents([body], memory))
    for param, values in zip(params, after, strict=True):
        memory[param.arg[0]][:] = values


def _contents(roots: Sequence[UOp], memory: list[Values]) -> dict[UOp, Values]:
    return {node: memory[node.arg[0]] for node in toposort(*roots) if node.op is ops.PARAM}


def launched(launch: UOp, held: list[Values]) -> Values:
    """The contents of the memory that a LAUNCH gives, from what its sources held."""
    run = launch.arg
    for i, bound in enumerate(run.bindings):
        if bound >= 0:
            held[i] = held[bound]
    for i in run.fresh:
        held[i] = [None] * len(held[i])
    run_kernel(parsed(run.kernel), dict(zip(run.slots, held, strict=True)), {})
    return held[run.result]
