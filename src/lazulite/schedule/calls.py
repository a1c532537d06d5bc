"""The bodies of calls: taken apart into stores where they can be, else run as the kernels they are.

`inlined` gives the effects that a call of a SINK of whole stores, a LINEAR of calls or a COPY stands
for; `run_of` describes the call of a kernel as the plain data of a LAUNCH; `launch_kernel` writes the
kernel of such a LAUNCH over the memories of the schedule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

from lazulite.base.errors import DTypeError, EffectError, ShapeError
from lazulite.ir import ops
from lazulite.ir.calls import Run, arguments_of, gradient_of, memory_below, parsed, touched_slots
from lazulite.ir.dtype import DType
from lazulite.ir.launches import in_turn, read_in_passing
from lazulite.ir.size import varies
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp, substitute, toposort
from lazulite.schedule.fusion import Fusion
from lazulite.schedule.groups import Group, element_count, place_of_argument
from lazulite.schedule.kernels import Builder, Kernel, Memory, memory_of
from lazulite.schedule.versions import in_place_conflict
from lazulite.simplify.normal import normalise

# --- taking calls apart ------------------------------------------------------------------------


def inlined(call: UOp) -> tuple[UOp, ...] | None:
    """The effects that a call stands for, over the nodes of its caller; None for a kernel."""
    body, arguments = call.src[0], arguments_of(call)
    touched_slots(body, len(arguments))
    if body.op is ops.COPY:
        copied = UOp(ops.COPY, body.dtype, (_source_of_copy(body, arguments),), body.arg)
        return (arguments[0].store(copied),)
    if body.op is ops.LINEAR and all(node.op is ops.CALL for node in body.src):
        return _in_order(body, arguments)
    if body.op is ops.SINK and _is_whole(body):
        return tuple([e for e in _applied(body.src, arguments) if e.op in (ops.STORE, ops.CALL, ops.SINK)])
    return None


def _is_whole(body: UOp) -> bool:
    """Whether a SINK stores whole values: it is no kernel."""
    nodes = toposort(*body.src, enter=lambda n: n.op is not ops.CALL)
    return not any(n.op in (ops.RANGE, ops.LOAD) or (n.op is ops.STORE and len(n.src) > 2) for n in nodes)


def _source_of_copy(body: UOp, arguments: tuple[UOp, ...]) -> UOp:
    source = memory_below(body.src[0])
    if source is None or source.op is not ops.PARAM or source.arg[0] == 0:
        return arguments[1]
    return _applied(body.src, arguments)[0]


def _in_order(body: UOp, arguments: tuple[UOp, ...]) -> tuple[UOp, ...]:
    """The calls of a list, each after the one before it."""
    last: UOp | None = None
    for call in body.src:
        inner = _applied(arguments_of(call), arguments)
        if last is not None:
            inner = [a.after(last) if memory_below(a) is not None else a for a in inner]
        last = UOp(ops.CALL, call.dtype, (call.src[0], *inner, *call.src[1 + call.arg :]), call.arg)
    return () if last is None else (last,)


def _applied(nodes: tuple[UOp, ...], arguments: tuple[UOp, ...]) -> list[UOp]:
    """Nodes with their PARAMs replaced by arguments."""
    params = [n for n in toposort(*nodes, enter=lambda n: n.op is not ops.CALL) if n.op is ops.PARAM]
    return _substituted(nodes, {param: _fitted(param, arguments[param.arg[0]]) for param in params})


def _substituted(nodes: tuple[UOp, ...], table: dict[UOp, UOp]) -> list[UOp]:
    """As `substitute`, but the bodies of calls, which have PARAMs of their own, stay."""
    calls = [n for n in toposort(*nodes, enter=lambda n: n.op is not ops.CALL) if n.op is ops.CALL]
    bodies = [body for call in calls for body in (call.src[0], *call.src[1 + call.arg :])]
    return substitute(nodes, table | {body: body for body in bodies})


def _fitted(param: UOp, argument: UOp) -> UOp:
    """An argument in the shape that the body knows."""
    if argument.dtype is not param.dtype:
        raise DTypeError("call", f"the body takes {param.dtype.name} in slot {param.arg[0]}, got {argument.dtype.name}")
    if argument.shape == param.shape:
        return argument
    if math.prod(argument.shape) != math.prod(param.shape):
        raise ShapeError("call", f"the body takes {param.shape} in slot {param.arg[0]}, got {argument.shape}")
    return UOp(ops.RESHAPE, argument.dtype, (argument,), param.shape)


# --- kernels -----------------------------------------------------------------------------------


def run_of(call: UOp) -> Run:
    """A call of a kernel as data."""
    body, arguments = _kernel_of(call.src[0]), arguments_of(call)
    call.call_access()  # refuses programs whose arguments alias
    touched, gradient = touched_slots(call.src[0], len(arguments)), gradient_of(call)
    for param in toposort(body):
        if param.op is ops.SCALAR:
            raise EffectError("call", "the kernel of a CALL takes memory only, no scalar arguments")
        if param.op is ops.PARAM:
            _check_kernel_argument(param, arguments[param.arg[0]])
    wanted = {*touched.reads, *touched.writes, *(range(len(arguments)) if gradient is not None else ())}
    slots = tuple(sorted(wanted))
    reads, writes = ([i for i, slot in enumerate(slots) if slot in part] for part in (touched.reads, touched.writes))
    run = Run(to_text(_placeless(body), "KERNEL"), slots, tuple(reads), tuple(writes))
    return run if gradient is None else run._replace(gradient=to_text(gradient, "TENSOR"), wrt=gradient.arg)


def _kernel_of(body: UOp) -> UOp:
    """The kernel that a body runs."""
    if body.op is ops.SINK:
        return body
    if body.op is ops.PROGRAM and body.src and body.src[0].op is ops.SINK:
        return body.src[0]
    raise EffectError("call", f"a body of {body.op!r} cannot be run here: it holds no kernel as a SINK")


def _placeless(kernel: UOp) -> UOp:
    """The kernel with flat memory on no device: it runs where its arguments are."""
    params = [node for node in toposort(kernel) if node.op is ops.PARAM]
    flat = {p: UOp(ops.PARAM, p.dtype, (), (p.arg[0], (element_count(p.shape),), "")) for p in params}
    return substitute([kernel], flat)[0]


def _check_kernel_argument(param: UOp, argument: UOp) -> None:
    if argument.dtype is not param.dtype:
        name, given = param.dtype.name, argument.dtype.name
        raise DTypeError("call", f"the kernel takes {name} in slot {param.arg[0]}, got {given}")
    if varies(argument.shape):
        raise ShapeError("call", f"a kernel takes memory of sizes that do not vary, got {argument.shape}")
    if element_count(argument.shape) < element_count(param.shape):
        raise ShapeError("call", f"slot {param.arg[0]} of the kernel has the shape {param.shape}, got {argument.shape}")


@cache
def reads_what_it_writes(kernel: str) -> bool:
    """Whether a hand-written kernel reads, of some memory, other elements than the one that it is about to write."""
    (sink,) = normalise(parsed(kernel))
    written = {store.src[0].arg[0] for store in sink.src if store.src[0].op is ops.PARAM}
    return in_place_conflict(sink, sorted(written))


def launch_kernel(fusion: Fusion, group: Group) -> Kernel:
    """The kernel of a group of LAUNCHes (the results of one call), with its slots bound to memory and expressions."""
    run: Run = group.root.arg
    results = {node.arg.result: fusion.destinations[node][0] for node in group.stored}
    kernel, builder = parsed(run.kernel), Builder.of(fusion, group)
    table, memories = dict[UOp, UOp](), dict[int, Memory]()
    for i, (slot, source) in enumerate(zip(run.slots, group.root.src, strict=True)):
        bound, place = run.bindings[i], place_of_argument(group, group.root, i)
        if place is not None and bound < 0:
            table[read_in_passing(run.kernel)[slot]] = builder.read(source, place)
        else:
            memories[slot] = memory_of(fusion, source) if bound < 0 else results[bound].number
    read = frozenset(memories[run.slots[i]] for i in run.reads if run.slots[i] in memories)
    table |= _bound(kernel, memories, builder)
    (sink,) = normalise(builder.with_variables(*substitute([kernel], table)))
    writes = tuple([(d.number, d.sequence) for d in results.values()])
    return Kernel(group, sink, tuple(builder.arguments), read | builder.loaded, writes)


def lost_turns(kernel: Kernel) -> bool:
    """Whether memory of a hand-written kernel is not taken in turn any more, as no memory says where to store."""
    root = kernel.group.root
    return root.op is ops.LAUNCH and len(in_turn(kernel.sink)) < len(in_turn(parsed(root.arg.kernel)))


def _bound(kernel: UOp, memories: Mapping[int, Memory], builder: Builder) -> dict[UOp, UOp]:
    """The kernel's memory with one PARAM for each memory (and type): two slots of one memory become one.

    Memory that is taken in turn keeps a PARAM of its own: who reads it through another slot does not take turns.
    """
    params = [node for node in toposort(kernel) if node.op is ops.PARAM and node.arg[0] in memories]
    serial = in_turn(kernel)
    keys = {p: (memories[p.arg[0]], p.dtype, p if p in serial else None) for p in params}
    sizes: dict[tuple[Memory, DType, UOp | None], int] = {}
    for param, key in keys.items():
        sizes[key] = max(sizes.get(key, 0), element_count(param.shape))
    return {param: builder.param(*key[:2], sizes[key], own=key[2]) for param, key in keys.items()}
