"""CALL: a body applied to arguments, and what memory that touches.

``CALL(body, argument.., [gradient])`` with `arg` = the number of arguments is an effect.  The body is a
SINK (stores of whole values, or a kernel), a LINEAR (calls, or the list of a kernel), a COPY or a
PROGRAM; its PARAMs name arguments by slot.  What a call reads and writes is never declared: it is
computed here from the loads and stores of the body.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from lazulite.base.errors import EffectError, GradientError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.placement import names_of
from lazulite.ir.tokens import quoted
from lazulite.ir.uop import UOp, substitute, toposort

BODIES = frozenset({ops.SINK, ops.LINEAR, ops.COPY, ops.PROGRAM})
_LISTS = frozenset({ops.SINK, ops.LINEAR})
_MEMORY = frozenset({ops.PARAM, ops.BUFFER})


class ProgramInfo(NamedTuple):
    """What is known of a finished program: the slots of the memory that it reads and writes."""

    name: str = "program"
    ins: tuple[int, ...] | None = None
    outs: tuple[int, ...] | None = None


class KernelInfo(NamedTuple):
    """What a hand-written kernel says of itself, as the `arg` of its SINK: its name in profiles and messages.

    >>> UOp.sink(arg=KernelInfo("add_one")).arg.name
    'add_one'
    """

    name: str


class Run(NamedTuple):
    """A hand-written kernel and how its slots belong to the sources of a LAUNCH."""

    kernel: str
    """The kernel in text form."""
    slots: tuple[int, ...]
    """The slot of each source."""
    reads: tuple[int, ...]
    """The sources that the kernel reads."""
    writes: tuple[int, ...]
    """The sources whose memory it writes."""
    bindings: tuple[int, ...] = ()
    """For each source the written source that is the same memory, or -1."""
    result: int = -1
    """The source whose memory this LAUNCH gives."""
    gradient: str = ""
    """The traced gradient in text form (`gradient_of`), or nothing."""
    wrt: tuple[int, ...] = ()
    """The slots of the arguments that the gradient has values for."""
    pure: bool = False
    """Whether the results are values like others: the kernel may run in other memory that holds the same."""
    fresh: tuple[int, ...] = ()
    """The written sources of a pure run of which it writes every element and reads none that it has not written."""

    def to_text(self) -> str:
        """The run as a quoted string without line ends or comment signs."""
        return quoted(self)

    @staticmethod
    def from_text(text: str) -> Run:
        """The run that `to_text` gave; ValueError or TypeError where it did not."""
        return Run._make([tuple(part) if isinstance(part, list) else part for part in json.loads(text[1:-1])])


class Touched(NamedTuple):
    """The slots that a body reads and writes, and memory that it names without a slot."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    named_reads: tuple[UOp, ...] = ()
    named_writes: tuple[UOp, ...] = ()


def make_call(body: UOp, arguments: Sequence[UOp], grad_fxn: Callable[..., Any] | None = None) -> UOp:
    """The call; its gradient is traced now, so the node holds plain values only."""
    if body.op not in BODIES:
        raise EffectError("call", f"the body of a CALL is SINK, LINEAR, COPY or PROGRAM, got {body.op!r}")
    gradient = () if grad_fxn is None else (_traced_gradient(body, arguments, grad_fxn),)
    return UOp(ops.CALL, dtypes.void, (body, *arguments, *gradient), len(arguments))


def arguments_of(call: UOp) -> tuple[UOp, ...]:
    """The arguments of a CALL."""
    return call.src[1 : 1 + call.arg]


def gradient_of(call: UOp) -> UOp | None:
    """The traced gradient: a SINK whose `arg` says which argument each of its values belongs to.

    Its PARAMs are, for n arguments: i, argument i before the call; n + i, argument i after it;
    2n + i, the gradient that reaches argument i from behind the call.
    """
    return call.src[-1] if len(call.src) > 1 + call.arg else None


def bodies_below(*roots: UOp) -> set[UOp]:
    """The bodies and gradients of calls: they are no part of the graph that the calls stand in."""
    calls = [node for node in toposort(*roots) if node.op is ops.CALL]
    return {part for call in calls for part in (call.src[0], gradient_of(call)) if part is not None}


@cache
def parsed(text: str) -> UOp:
    """The graph of a text that a `Run` holds."""
    from lazulite.ir.parse import parse

    return parse(text)


# --- accesses ----------------------------------------------------------------------------------


def call_access(call: UOp) -> tuple[tuple[UOp, ...], tuple[UOp, ...]]:
    """The arguments (and other memory) that a CALL reads and those that it writes, each once.

    >>> out, x = [UOp(ops.PARAM, dtypes.float32, (), (slot, (4,), "CPU")) for slot in (0, 1)]
    >>> call_access(UOp.sink(out.store(x + 1)).call(out, x)) == ((x,), (out,))
    True
    """
    if call.op is not ops.CALL:
        raise EffectError("call_access", f"only a CALL has computed accesses, got {call.op!r}")
    body, arguments = call.src[0], arguments_of(call)
    touched = touched_slots(body, len(arguments))
    if body.op is ops.PROGRAM:
        _refuse_alias(touched, arguments)
    reads = dict.fromkeys([arguments[slot] for slot in touched.reads])
    writes = dict.fromkeys([arguments[slot] for slot in touched.writes])
    return (*reads, *touched.named_reads), (*writes, *touched.named_writes)


def touched_slots(body: UOp, count: int) -> Touched:
    """What a body does to `count` arguments."""
    if body.op is ops.COPY:
        source = memory_below(body.src[0])
        slot = source.arg[0] if source is not None and source.op is ops.PARAM else 0
        touched = Touched((slot or 1,), (0,))
    elif body.op is ops.PROGRAM:
        touched = _declared(body)
    elif body.op in _LISTS:
        touched = _computed(body)
    else:
        raise EffectError("call_access", f"cannot compute accesses of {body.op!r}: it shows no loads and stores")
    for slot in (*touched.reads, *touched.writes):
        if not 0 <= slot < count:
            raise EffectError("call_access", f"invalid CALL access slot {slot}: the call has {count} arguments")
    return touched


def memory_below(node: UOp) -> UOp | None:
    """The PARAM or BUFFER that a value is a view of; None for a computed value."""
    while node.op in ops.MOVEMENT or node.op is ops.AFTER:
        node = node.src[0]
    return node if node.op in _MEMORY else None


def _declared(body: UOp) -> Touched:
    ins, outs = getattr(body.arg, "ins", None), getattr(body.arg, "outs", None)
    if ins is None or outs is None:
        raise EffectError(
            "call_access", "cannot compute accesses of a program that does not say which slots it reads and writes",
            hint="give the PROGRAM a ProgramInfo with ins and outs",
        )  # fmt: skip
    return Touched(tuple(sorted(set(ins))), tuple(sorted(set(outs))))


def _computed(body: UOp) -> Touched:
    reads: dict[UOp, None] = {}
    writes: dict[UOp, None] = {}
    for node in toposort(*body.src, enter=lambda n: n.op is not ops.CALL):
        if node.op is ops.CALL:  # its body has parameters of its own; its arguments are nodes of this one
            inner_reads, inner_writes = call_access(node)
            for value in inner_reads:
                reads |= dict.fromkeys(leaf for leaf in toposort(value) if leaf.op in _MEMORY)
            written = inner_writes
        else:
            reads |= dict.fromkeys(m for value in _values_read(node) if (m := memory_below(value)) is not None)
            written = (node.src[0],) if node.op is ops.STORE else ()
        writes |= dict.fromkeys(m for target in written if (m := memory_below(target)) is not None)
    return Touched(_slots(reads), _slots(writes), _named(reads), _named(writes))


def _values_read(node: UOp) -> tuple[UOp, ...]:
    """The sources whose elements a node reads; a view or an order by itself reads nothing."""
    if node.op in ops.MOVEMENT or node.op in (ops.AFTER, ops.SINK, ops.LINEAR):
        return ()
    return node.src[1:] if node.op is ops.STORE else node.src


def _slots(memory: dict[UOp, None]) -> tuple[int, ...]:
    return tuple(sorted({int(node.arg[0]) for node in memory if node.op is ops.PARAM}))


def _named(memory: dict[UOp, None]) -> tuple[UOp, ...]:
    return tuple([node for node in memory if node.op is ops.BUFFER])


def _refuse_alias(touched: Touched, arguments: Sequence[UOp]) -> None:
    """A finished program was compiled for memories that do not overlap."""
    for slot in touched.writes:
        for other in touched.reads:
            written, read = memory_below(arguments[slot]), memory_below(arguments[other])
            if slot != other and written is not None and read is not None and same_memory(written, read):
                raise EffectError(
                    "call_access", f"aliased opaque program: slot {other} reads the memory that slot {slot} writes"
                )


def same_memory(left: UOp, right: UOp) -> bool:
    """Whether two BUFFERs or PARAMs are one memory (versions apart)."""
    return left.op is right.op and bool(left.arg[0] == right.arg[0])


def device_of(node: UOp) -> str | tuple[str, ...]:
    """The device of a value, or its devices: those of the memory below it or of the copy that made it; "" for
    constants."""
    for each in reversed(toposort(node, enter=lambda n: n.op not in (ops.COPY, ops.CALL))):
        if each.op in _MEMORY or each.op is ops.COPY:
            return names_of(each.arg if each.op is ops.COPY else each.arg[-1])
    return ""


# --- the gradient ------------------------------------------------------------------------------


def _traced_gradient(body: UOp, arguments: Sequence[UOp], grad_fxn: Callable[..., Any]) -> UOp:
    """What `grad_fxn(upstream.., call)` gives for stand-ins of the arguments, one gradient or None for each."""
    count = len(arguments)
    before, after, upstream = ([_stand_in(a, i + k * count) for i, a in enumerate(arguments)] for k in range(3))
    call = UOp(ops.CALL, dtypes.void, (body, *before), count)
    written = touched_slots(body, count).writes
    given = grad_fxn(*[upstream[slot] for slot in written], call)
    parts = [getattr(part, "uop", part) for part in (given if isinstance(given, tuple | list) else (given,))]
    if len(parts) != count:
        raise GradientError("call", f"grad_fxn gives one gradient or None an argument: {count}, got {len(parts)}")
    found = [(slot, part) for slot, part in enumerate(parts) if part is not None]
    values = substitute([part for _, part in found], dict(_results([part for _, part in found], call, after)))
    return UOp(ops.SINK, dtypes.void, tuple(values), tuple([slot for slot, _ in found]))


def _stand_in(argument: UOp, slot: int) -> UOp:
    return UOp(ops.PARAM, argument.dtype, (), (slot, argument.shape, device_of(argument)))


def _results(values: Sequence[UOp], call: UOp, after: Sequence[UOp]) -> Iterator[tuple[UOp, UOp]]:
    """What the gradient names as a result of the call, ``argument.after(call)``, with its stand-in."""
    for node in toposort(*values, enter=lambda n: n is not call):
        if node.op is ops.AFTER and call in node.src[1:] and node.src[0] in arguments_of(call):
            yield node, after[arguments_of(call).index(node.src[0])]
