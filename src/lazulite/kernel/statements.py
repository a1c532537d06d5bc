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

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from lazulite.ir import ops
from lazulite.ir.blocks import memory_of
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, nodes_of, substitute, toposort
from lazulite.kernel.nest import by_order, is_fixed, nested

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
    """The memory that the first statements fill or change, one piece each."""
    memory: tuple[UOp, ...]
    """What stands for it in the others and in itself, the same for the same memory."""
    kernels: tuple[UOp, ...]
    """A kernel for each statement; what it needs precedes it.  Those behind the ones with scratch memory of their own
    write the results."""
    totals: Mapping[UOp, UOp] = field(default_factory=dict)
    """For each result to which every turn of a shared range adds something what stands for that: the turn before left
    the rest there."""

    @property
    def fills_once(self) -> bool:
        """Whether each statement with scratch memory fills a piece of its own, element by element, and changes no
        other."""
        fillers = self.kernels[: len(self.scratch)]
        return len(set(self.memory)) == len(self.memory) and all(len(kernel.src) == 1 for kernel in fillers)

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
    scratch = [memory_of(node) for node in filled]
    adding = {node.src[0]: node.src[1] for node in ordered if node.src[0].op is ops.PARAM}
    first = 1 + max(node.arg[0] for node in nodes if node.op in (ops.PARAM, ops.SCALAR))
    scalars, memory = _arguments(shared, scratch, first)
    stands = dict(zip(scratch, memory, strict=True)) | {total: total for total in adding}
    table = dict(zip(shared, scalars, strict=True)) | stands | {node: stands[memory_of(node)] for node in ordered}
    effects = [[s for effect in node.src[1:] for s in _stores(effect)] for node in filled]
    inside = [node for node in nodes[:-1] if node.op is not ops.FOR]
    done = _rebuilt(inside, table | _placed(nodes, table, lambda place: place % _PLACES))
    kernels = [UOp.sink(*[done.get(s, s) for s in each]) for each in [*effects, *_results(root, shared)]]
    totals = {total: table[turn] for total, turn in adding.items()}
    return Statements(tuple(shared), tuple(scalars), tuple(scratch), tuple(memory), tuple(kernels), totals)


def _results(root: UOp, shared: Collection[UOp]) -> list[list[UOp]]:
    """The stores of results: those with loops in common are one statement, the first of which has those without loops,
    too."""
    groups: list[tuple[set[UOp], list[UOp]]] = []
    plain: list[UOp] = []
    for store in root.src:
        own = {n for n in toposort(store, enter=lambda n: n.op is not ops.AFTER) if n.op is ops.RANGE}
        loops, stores = own.difference(shared), [store]
        for group in [each for each in groups if not loops.isdisjoint(each[0])]:
            groups.remove(group)
            loops, stores = loops | group[0], [*group[1], *stores]
        if loops:
            groups.append((loops, stores))
        else:
            plain.append(store)
    first, *rest = [stores for _, stores in groups] or [[]]
    return [[*first, *plain], *rest]


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
        own, kernel = parts.memory[number], parts.kernels[number]
        before = table.setdefault(own, scratch.after(*turn))
        effects = nested(_joined(kernel, table, number), parts.shared)
        table[own] = UOp(ops.AFTER, scratch.dtype, (before, *effects))
    results: list[UOp] = []
    for number, kernel in enumerate(parts.kernels[len(parts.scratch) :], len(parts.scratch)):
        (result,) = substitute([kernel], _turn_before(kernel, parts.totals)) if parts.totals else (kernel,)
        results += _joined(result, table, number)
    return UOp.sink(*results)


def _turn_before(kernel: UOp, totals: Mapping[UOp, UOp]) -> dict[UOp, UOp]:
    """The loads of totals as loads of what the turn before left."""
    read = [node for node in nodes_of(kernel) if node.op is ops.LOAD and node.src[0] in totals]
    return {load: load.replace(src=(load.src[0].after(totals[load.src[0]]), *load.src[1:])) for load in read}


def _joined(kernel: UOp, table: dict[UOp, UOp], number: int) -> list[UOp]:
    """The effects of a statement with its ranges and scratch memory apart from those of the others."""
    nodes = nodes_of(kernel)
    done = _rebuilt(nodes[:-1], table | _placed(nodes, table, lambda place: (number + 1) * _PLACES + place))
    return [done.get(effect, effect) for effect in kernel.src]


def _rebuilt(nodes: Iterable[UOp], done: dict[UOp, UOp]) -> dict[UOp, UOp]:
    """What becomes of nodes, sources before users, that of some of them given; the others stay as they are."""
    for node in nodes:
        if not done.keys().isdisjoint(node.src) and node not in done:
            done[node] = UOp(node.op, node.dtype, tuple([done.get(s, s) for s in node.src]), node.arg)
    return done


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


def _placed(nodes: Iterable[UOp], table: dict[UOp, UOp], place: Callable[[int], int]) -> dict[UOp, UOp]:
    """Ranges and scratch memory that the table does not replace, in other places."""
    found: dict[UOp, UOp] = {}
    for node in nodes:
        if node.op is ops.RANGE and node not in table:
            first, *rest = node.arg[0]
            size = node.src if is_fixed(node) else tuple(substitute(node.src, table | found))
            found[node] = UOp(ops.RANGE, node.dtype, size, ((place(first), *rest), node.arg[1]))
        elif node.op is ops.SCRATCH and node not in table:
            found[node] = node.replace(arg=(place(node.arg[0]), *node.arg[1:]))
    return found
