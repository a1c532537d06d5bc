"""A kernel with intermediates in scratch memory, taken apart into statements and put together again.

Takes a `KERNEL` some of whose loads read scratch memory that nests of `FOR`s fill.  The ranges around those
nests are *shared*: in every turn of theirs the statements run one after another, each through loops of its
own.  Alone, a statement is an ordinary kernel: the scratch memory that it reads and writes is a memory argument,
and a shared range, of which it sees one turn, is a `SCALAR`.  So all that is known about kernels (steps,
staging, loops) serves statements unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, substitute, toposort
from lazulite.kernel.nest import by_order, nested

_PLACES = 1 << 20
"""The ranges of a statement come after the shared ones, those of later statements after those of earlier ones."""


@dataclass(frozen=True, slots=True)
class Statements:
    """The parts of a kernel."""

    shared: tuple[UOp, ...]
    """The ranges around all statements, outermost first."""
    scalars: tuple[UOp, ...]
    """What stands for each of them in a statement."""
    scratch: tuple[UOp, ...]
    """The memory that each statement but the last one fills."""
    memory: tuple[UOp, ...]
    """What stands for it in the others and in itself."""
    kernels: tuple[UOp, ...]
    """A kernel for each statement; what it needs precedes it, the last one writes the results."""

    def with_kernels(self, kernels: Sequence[UOp]) -> Statements:
        return replace(self, kernels=tuple(kernels))


def has_statements(root: UOp) -> bool:
    """Whether a kernel has intermediates."""
    return any(source.has_effects for store in root.src for source in store.src)


def split_statements(root: UOp) -> Statements:
    """The statements of a kernel that has intermediates."""
    nodes = toposort(root)
    filled = [node for node in nodes if node.op is ops.AFTER]
    first = 1 + max(node.arg[0] for node in nodes if node.op in (ops.PARAM, ops.SCALAR))
    shared = by_order(frozenset[UOp]().union(*[node.ranges for node in filled]))
    scratch = [node.src[0] for node in filled]
    scalars = [UOp(ops.SCALAR, dtypes.index, (), (first + n, 0, int(r.vmax))) for n, r in enumerate(shared)]
    memory = [s.replace(op=ops.PARAM, arg=(first + len(shared) + n, (s.arg[1],), "")) for n, s in enumerate(scratch)]
    table = dict(zip((*shared, *filled, *scratch), (*scalars, *memory, *memory), strict=True))
    effects = [[s for effect in node.src[1:] for s in _stores(effect)] for node in filled]
    kernels = [_renumbered(substitute(each, table), lambda first: first % _PLACES) for each in [*effects, root.src]]
    return Statements(tuple(shared), tuple(scalars), tuple(scratch), tuple(memory), tuple(kernels))


def join_statements(parts: Statements) -> UOp:
    """The kernel (or, where the statements are in `LOOP`, the loops inside of the shared ranges)."""
    table = dict(zip(parts.scalars, parts.shared, strict=True))
    for number, scratch in enumerate(parts.scratch):
        filling = table | {parts.memory[number]: scratch}
        effects = substitute(nested(_placed(parts.kernels[number], number).src), filling)
        table[parts.memory[number]] = UOp(ops.AFTER, scratch.dtype, (scratch, *effects))
    return substitute([_placed(parts.kernels[-1], len(parts.scratch))], table)[0]


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


def _stores(effect: UOp) -> Sequence[UOp]:
    """The stores in a nest."""
    return [n for n in toposort(effect, enter=lambda n: n.op is ops.FOR) if n.op is ops.STORE]


def _placed(kernel: UOp, number: int) -> UOp:
    """The statement with its ranges and scratch memory numbered apart from those of the others."""
    base = (number + 1) * _PLACES
    table = {s: s.replace(arg=(base + s.arg[0], *s.arg[1:])) for s in toposort(kernel) if s.op is ops.SCRATCH}
    return _renumbered(substitute(kernel.src, table), lambda first: base + first)


def _renumbered(effects: Sequence[UOp], place: Callable[[int], int]) -> UOp:
    """A kernel whose ranges have other places in the nest."""
    table: dict[UOp, UOp] = {}
    for r in [node for node in toposort(*effects) if node.op is ops.RANGE]:
        order = (place(r.arg[0][0]), *r.arg[0][1:])
        table[r] = UOp(ops.RANGE, r.dtype, tuple(substitute(r.src, table)), (order, r.arg[1]))
    return UOp(ops.SINK, dtypes.void, tuple(substitute(effects, table)))
