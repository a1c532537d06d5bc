"""A kernel with intermediates in scratch memory, taken apart into statements and put together again.

Takes a `KERNEL` some of whose loads read scratch memory that nests of `FOR`s fill.  The ranges around those
nests are *shared*: in every turn of theirs the statements run one after another, each through loops of its
own.  Memory that one statement has filled another may change: it then stores to, and reads, what is there `AFTER` the
one before, and the first fills it `AFTER` a turn of the innermost shared range has begun, so that it does so in each.
Alone, a statement is an ordinary kernel: the scratch memory that it reads and writes is a memory argument,
and a shared range, of which it sees one turn, is a `SCALAR`.  So all that is known about kernels (steps,
staging, loops) serves statements unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, nodes_of, toposort
from lazulite.kernel.nest import by_order, nested

_PLACES = 1 << 20
"""The ranges of a statement come after the shared ones, those of later statements after those of earlier ones."""
RECENT = 4
"""For how many kernels is kept what both the choice of steps and the compilation that follows ask for."""


@dataclass(frozen=True, slots=True)
class Statements:
    """The parts of a kernel."""

    shared: tuple[UOp, ...]
    """The ranges around all statements, outermost first."""
    scalars: tuple[UOp, ...]
    """What stands for each of them in a statement."""
    scratch: tuple[UOp, ...]
    """The memory that each statement but the last one fills or changes."""
    memory: tuple[UOp, ...]
    """What stands for it in the others and in itself, the same for the same memory."""
    kernels: tuple[UOp, ...]
    """A kernel for each statement; what it needs precedes it, the last one writes the results."""

    @property
    def fills_once(self) -> bool:
        """Whether each statement but the last one fills memory of its own, element by element, and changes no other."""
        return len(set(self.memory)) == len(self.memory) and all(len(kernel.src) == 1 for kernel in self.kernels[:-1])

    def with_kernels(self, kernels: Sequence[UOp]) -> Statements:
        return replace(self, kernels=tuple(kernels))


def has_statements(root: UOp) -> bool:
    """Whether a kernel has intermediates."""
    return any(source.has_effects for store in root.src for source in store.src)


@lru_cache(maxsize=RECENT)
def split_statements(root: UOp) -> Statements:
    """The statements of a kernel that has intermediates."""
    nodes = nodes_of(root)
    ordered = [node for node in nodes if node.op is ops.AFTER]
    filled = [node for node in ordered if node.src[1].op is not ops.RANGE]
    shared = by_order(frozenset[UOp]().union(*[node.ranges for node in filled]))
    scratch = [_memory(node) for node in filled]
    first = 1 + max(node.arg[0] for node in nodes if node.op in (ops.PARAM, ops.SCALAR))
    scalars, memory = _arguments(shared, scratch, first)
    stands = dict(zip(scratch, memory, strict=True))
    table = dict(zip(shared, scalars, strict=True)) | stands | {node: stands[_memory(node)] for node in ordered}
    effects = [[s for effect in node.src[1:] for s in _stores(effect)] for node in filled]
    kernels = [UOp.sink(*_placed(each, table, lambda place: place % _PLACES)) for each in [*effects, root.src]]
    return Statements(tuple(shared), tuple(scalars), tuple(scratch), tuple(memory), tuple(kernels))


def _arguments(shared: Sequence[UOp], scratch: Sequence[UOp], first: int) -> tuple[list[UOp], list[UOp]]:
    """What stands in statements for shared ranges and scratch memory, in the slots from `first` on."""
    scalars = [UOp(ops.SCALAR, dtypes.index, (), (first + n, 0, int(r.vmax))) for n, r in enumerate(shared)]
    slots = {s: first + len(shared) + n for n, s in enumerate(dict.fromkeys(scratch))}
    return scalars, [s.replace(op=ops.PARAM, arg=(slots[s], (s.arg[1],), "")) for s in scratch]


def join_statements(parts: Statements) -> UOp:
    """The kernel (or, where the statements are in `LOOP`, the loops inside of the shared ranges)."""
    table = dict(zip(parts.scalars, parts.shared, strict=True))
    turn = () if parts.fills_once else parts.shared[-1:]
    for number, scratch in enumerate(parts.scratch):
        own = parts.memory[number]
        before = table.setdefault(own, scratch.after(*turn))
        effects = _placed(nested(parts.kernels[number].src), table, _place_of(number))
        table[own] = UOp(ops.AFTER, scratch.dtype, (before, *effects))
    return UOp.sink(*_placed(parts.kernels[-1].src, table, _place_of(len(parts.scratch))))


def _place_of(number: int) -> Callable[[int], int]:
    """The places of ranges and scratch memory of a statement, apart from those of the others."""
    return lambda place: (number + 1) * _PLACES + place


def each_statement(root: UOp, change: Callable[[UOp, int], UOp]) -> UOp:
    """The kernel with every statement changed; `change` gets its number too, -1 for a kernel that is only one."""
    if not has_statements(root):
        return change(root, -1)
    parts = split_statements(root)
    return join_statements(parts.with_kernels([change(kernel, number) for number, kernel in enumerate(parts.kernels)]))


def close_loops(root: UOp) -> UOp:
    """The loops of joined statements inside loops over the ranges that they share."""
    effects = root.src
    for r in reversed(by_order(root.ranges)):
        effects = (UOp(ops.FOR, dtypes.void, (r, *effects), 0),)
    return root.replace(src=effects)


def _memory(node: UOp) -> UOp:
    """The scratch memory that statements fill and change."""
    while node.op is ops.AFTER:
        node = node.src[0]
    return node


def _stores(effect: UOp) -> Sequence[UOp]:
    """The stores in a nest."""
    return [n for n in toposort(effect, enter=lambda n: n.op is ops.FOR) if n.op is ops.STORE]


def _placed(effects: Sequence[UOp], table: Mapping[UOp, UOp], place: Callable[[int], int]) -> list[UOp]:
    """The effects with what is in the table replaced; other ranges and scratch memory get other places."""
    done = dict(table)
    for node in toposort(*effects, enter=lambda node: node not in table):
        if node in done:
            continue
        src, arg = tuple([done[s] for s in node.src]), node.arg
        if node.op is ops.RANGE:
            arg = (place(arg[0][0]), *arg[0][1:]), arg[1]
        elif node.op is ops.SCRATCH:
            arg = (place(arg[0]), *arg[1:])
        done[node] = node if src == node.src and arg is node.arg else UOp(node.op, node.dtype, src, arg)
    return [done[effect] for effect in effects]
