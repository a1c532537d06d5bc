"""LAUNCHes as values: kernels written by hand that compute new memory from their sources.

Where a CALL is an effect on memory that somebody holds, such a launch is pure: `Run.pure` says that the
memory it starts from may be a copy, so the scheduler may run it in memory of its own, or in place where
nobody needs the old contents.  It is what an algorithm is written in that no expression of whole values
states, such as scattering, sorting and factorising.

Memory whose places to store are themselves read from memory is taken in turn: the loops run as they are nested,
and what a turn loads is what earlier turns have left (`in_turn`).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate, takewhile

from lazulite.ir import ops
from lazulite.ir.calls import Run, parsed, touched_slots
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort


def in_turn(kernel: UOp) -> frozenset[UOp]:
    """The memory of a kernel that is taken in turn."""
    stores = [node for node in toposort(kernel) if node.op is ops.STORE]
    return frozenset(s.src[0] for s in stores if any(node.op is ops.LOAD for node in toposort(s.src[1])))


@cache
def turns_of(kernel: str) -> Mapping[UOp, int]:
    """How often the body of each range of a hand-written kernel runs, its enclosing ranges counted in.

    Of the ranges up to the first one that runs as often as memory or another range says.
    """
    ranges = sorted((n for n in toposort(parsed(kernel)) if n.op is ops.RANGE), key=lambda r: r.arg[0])
    fixed = list(takewhile(lambda r: r.src[0].op is ops.CONST, ranges))
    totals = accumulate([r.src[0].arg for r in fixed], operator.mul)
    return dict(zip(fixed, totals, strict=True))


@cache
def read_in_passing(kernel: str) -> Mapping[int, UOp]:
    """The memories that a hand-written kernel reads at one place, which follows from its loops, and no more often than
    they have elements: for the slot of each the LOAD.

    Who launches the kernel may then hand it an expression instead of memory.

    >>> from lazulite.ir.text import to_text
    >>> source, result = [UOp(ops.PARAM, dtypes.int32, (), (slot, (3,), "")) for slot in (0, 1)]
    >>> place = UOp.range(3, 0)
    >>> [*read_in_passing(to_text(UOp.sink(result[place].store(source[place] * 2)), "KERNEL"))]
    [0]
    """
    accesses: dict[UOp, list[UOp]] = {}
    for node in toposort(parsed(kernel)):
        if node.op in (ops.LOAD, ops.STORE):
            accesses.setdefault(node.src[0], []).append(node)
    turns = turns_of(kernel)
    alone = [access for memory, (access, *others) in accesses.items() if memory.op is ops.PARAM and not others]
    return {load.src[0].arg[0]: load for load in alone if _is_in_passing(load, turns)}


def _is_in_passing(load: UOp, turns: Mapping[UOp, int]) -> bool:
    gated_or_store = load.op is ops.STORE or len(load.src) > 2
    if gated_or_store or any(node.op is ops.LOAD for node in toposort(load.src[1])) or not load.ranges <= turns.keys():
        return False
    (size,) = load.src[0].arg[1]
    return max([turns[r] for r in load.ranges], default=1) <= int(size)


def launch(kernel: UOp, *sources: UOp, gradient: Sequence[UOp | None] = (), fresh: tuple[int, ...] = ()) -> list[UOp]:
    """What the memories that a kernel writes hold after it ran on the sources, in the order of their slots.

    `kernel` is a SINK over PARAMs, flat and on no device, with the slots of the sources.  `gradient` holds a
    value, or None, for each source; its PARAMs are those that `ir/calls.py` tells of for a traced gradient.  Of the
    sources in the slots `fresh` only shape and type count: the kernel writes all of their elements.

    >>> memory = UOp(ops.PARAM, dtypes.int32, (), (0, (3,), ""))
    >>> place = UOp.range(3, 0)
    >>> kernel = UOp.sink(memory[place].store(memory[place] * 2))
    >>> launch(kernel, UOp(ops.IOTA, dtypes.int32, (), 3))[0].shape
    (3,)
    """
    runs = _runs(kernel, len(sources), tuple(gradient), fresh)
    return [UOp(ops.LAUNCH, sources[run.result].dtype, sources, run) for run in runs]


@lru_cache(maxsize=512)
def _runs(kernel: UOp, count: int, gradient: tuple[UOp | None, ...], fresh: tuple[int, ...]) -> list[Run]:
    """What the LAUNCH of each result says."""
    from lazulite.ir.text import to_text

    touched = touched_slots(kernel, count)
    bindings = tuple([slot if slot in touched.writes else -1 for slot in range(count)])
    slots = tuple(range(count))
    run = Run(to_text(kernel, "KERNEL"), slots, touched.reads, touched.writes, bindings, pure=True, fresh=fresh)
    known = [(slot, part) for slot, part in enumerate(gradient) if part is not None]
    if known:
        body = UOp(ops.SINK, dtypes.void, tuple([part for _, part in known]))
        run = run._replace(gradient=to_text(body, "TENSOR"), wrt=tuple([slot for slot, _ in known]))
    return [run._replace(result=i) for i in touched.writes]
