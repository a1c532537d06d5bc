"""The canonical form of a graph: what a plan is keyed by.

Storages become numbered memory arguments, and scalar constants that only lend a value become scalar
arguments, so that another batch, seed or learning rate is the same program.  `Fingerprint` walks a
graph once and gives a hashable key with the storages and scalars it met; `canonical_graph` builds the
graph that the key stands for, and is called only when no plan is known for it.  Both number memory
and scalars by first visit, in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lazulite.base.errors import CaptureError
from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.size import rebound, sizes_exist
from lazulite.ir.uop import UOp, substitute, toposort

Key = tuple[Any, ...]
FillOf = Callable[[UOp], Scalar | None]
"""For a BUFFER whose storage holds one value everywhere and has no memory yet: that value."""
Known = Callable[[UOp], UOp | None]
"""For an expression: the BUFFER that already holds its value."""

_VALUE_OPERANDS: frozenset[Op] = frozenset(
    {ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.MAX, ops.MIN, ops.POW, ops.WHERE, ops.AND, ops.OR, ops.XOR}
    | ops.COMPARISONS
)
_KEPT = (0, 1, -1)
_RANDOM = frozenset({ops.ADD, ops.XOR, ops.THREEFRY})


def lends_a_value(user: UOp, position: int, constant: UOp, sibling_varies: bool) -> bool:
    """Whether a constant may become a scalar argument of the program.

    0, 1 and -1 stay, since laws rest on them; an integer beside operands that read no memory stays,
    since it may be part of a mask or an index.  The words of the random generator always change.
    """
    if constant.dtype is dtypes.uint64 and user.op in _RANDOM:
        return True
    if user.op not in _VALUE_OPERANDS or (user.op is ops.WHERE and position == 0):
        return False
    return not _is_kept(constant.dtype, constant.value) and (constant.dtype.is_float or sibling_varies)


def _is_kept(dtype: DType, value: Scalar) -> bool:
    """Whether a value is one that laws rest on."""
    return dtype is dtypes.bool or value in _KEPT or not math.isfinite(value)


@dataclass(slots=True)
class Fingerprint:
    """A graph's key, and the storages and scalars that its arguments stand for."""

    key: Key
    buffers: list[UOp]
    scalars: list[Scalar]
    variables: Mapping[int, UOp]
    """The bound variable whose value a scalar is."""


@dataclass(slots=True)
class CanonicalGraph:
    """A graph over PARAM and SCALAR."""

    outputs: list[UOp]
    targets: list[UOp | None]
    scalars: list[DType]
    """The type of each scalar argument."""
    positions: dict[UOp, int]
    """Where each node stands in the walk over the graph that this one was made from (`nodes_of`)."""


class _Walk:
    """The numbering that key and graph share; `nodes` are to be met in their order."""

    __slots__ = (
        "constants",
        "fill_of",
        "fills",
        "held",
        "leaves",
        "nodes",
        "scalars",
        "sized",
        "slots",
        "types",
        "varies",
    )

    def __init__(self, outputs: Sequence[UOp], fill_of: FillOf, known: Known) -> None:
        self.fill_of = fill_of
        self.held: dict[UOp, UOp] = {}
        """The BUFFER of each node whose value is in memory."""
        self.nodes = _nodes(outputs, known, self.held)
        self.constants = False
        """Whether a CONST was met."""
        self.slots: dict[UOp, int] = {}
        self.fills: dict[UOp, Scalar] = {}
        self.scalars: list[Scalar] = []
        self.types: list[DType] = []
        """The type of each scalar."""
        self.leaves: dict[UOp, UOp] = {}
        """For each bound variable the numbered one."""
        self.sized = sizes_exist()
        """Whether arguments of nodes may hold sizes that vary."""
        self.varies: set[UOp] = set()

    def leaf(self, node: UOp, buffer: UOp) -> int | None:
        """Meet a node whose value a BUFFER holds: its slot, or None if it still is a constant."""
        slot = self.slots.get(buffer)
        if slot is None and buffer not in self.fills:
            fill = self.fill_of(buffer)
            if fill is None:
                slot = self.slots[buffer] = len(self.slots)
            else:
                self.fills[buffer] = fill
        if slot is not None:
            self.varies.add(node)
        return slot

    def scalar_slot(self, value: Scalar, dtype: DType) -> int:
        self.scalars.append(value)
        self.types.append(dtype)
        return len(self.scalars) - 1

    def variable(self, leaf: UOp) -> UOp:
        """Meet a bound variable: a scalar argument with its bounds, whatever its name and value are."""
        known = self.leaves.get(leaf)
        if known is None:
            _, low, high, value = leaf.arg
            slot = self.scalar_slot(value, dtypes.int64)
            known = self.leaves[leaf] = UOp(ops.SCALAR, dtypes.index, (), (slot, low, high))
        return known

    def own(self, arg: Any) -> Any:
        """The argument of a node over numbered variables."""
        return rebound(arg, self.variable) if self.sized else arg

    def inner(self, node: UOp) -> dict[int, int]:
        """Meet a node with operands: the scalar argument for each that lends only its value, by position."""
        src, lent = node.src, {}
        varies = not self.varies.isdisjoint(src)
        if varies:
            self.varies.add(node)
        if self.constants:
            for position, source in enumerate(src):
                if source.op is ops.CONST and lends_a_value(node, position, source, varies):
                    lent[position] = self.scalar_slot(source.value, source.dtype)
        return lent

    def targets(self, targets: Sequence[UOp | None]) -> None:
        """Number the storages that are only written."""
        for target in targets:
            if target is not None:
                self.slots.setdefault(target, len(self.slots))


def fingerprint(outputs: Sequence[UOp], targets: Sequence[UOp | None], fill_of: FillOf, known: Known) -> Fingerprint:
    """The key of a graph whose outputs are written to target storages (or to fresh ones).

    `known(node)` gives the BUFFER that already holds a value; below it nothing is visited.
    """
    walk = _Walk(outputs, fill_of, known)
    entry: Key
    held, codes, entries = walk.held, dict[UOp, Any](), list[Any]()
    for node in walk.nodes:
        op = node.op
        if op is ops.CONST:
            walk.constants = True
            codes[node] = _constant(node)
            continue
        buffer = node if op is ops.BUFFER else held.get(node)
        if buffer is not None:
            _, _, shape, device = buffer.arg
            slot = walk.leaf(node, buffer)
            alike = _fill_entry(buffer, walk) if slot is None else ("memory", slot, buffer.dtype.number)
            entry = (*alike, walk.own(shape), device)
        elif op is ops.PARAM:
            raise CaptureError(
                "realize", "a tensor of a function that vmap batches has no elements of its own",
                hint="return the tensor, and realize what vmap gives",
            )  # fmt: skip
        elif op is ops.SCALAR:
            entry = (op.number, node.dtype.number, walk.variable(node).arg)
        else:
            operands = [codes[source] for source in node.src]
            for position in walk.inner(node):
                operands[position] = ("scalar", node.src[position].dtype.number)
            entry = (op.number, node.dtype.number, walk.own(node.arg), *operands)
        codes[node] = len(entries)
        entries.append(entry)
    walk.targets(targets)
    ends = tuple([codes[output] for output in outputs])
    aims = tuple([None if t is None else (walk.slots[t], walk.own(t.arg[2]), t.arg[3]) for t in targets])
    variables = {numbered.arg[0]: leaf for leaf, numbered in walk.leaves.items()}
    return Fingerprint((tuple(entries), ends, aims), list(walk.slots), walk.scalars, variables)


def nodes_of(outputs: Sequence[UOp], known: Known) -> list[UOp]:
    """The nodes of a graph in the order that positions count."""
    return _nodes(outputs, known, {})


def _nodes(outputs: Sequence[UOp], known: Known, held: dict[UOp, UOp]) -> list[UOp]:
    """As `nodes_of`; notes the BUFFERs of the values that are in memory."""

    def enter(node: UOp) -> bool:
        buffer = known(node)
        if buffer is None:
            return True
        held[node] = buffer
        return False

    return toposort(*outputs, enter=enter)


def _fill_entry(buffer: UOp, walk: _Walk) -> Key:
    dtype, value = buffer.dtype, walk.fills[buffer]
    if _is_kept(dtype, value):
        return _constant(UOp.const(dtype, value))
    walk.scalar_slot(value, dtype)
    return ("scalar", dtype.number)


def _constant(node: UOp) -> Key:
    return ("constant", node.dtype.number, node.arg)


def canonical_graph(
    outputs: Sequence[UOp], targets: Sequence[UOp | None], fill_of: FillOf, known: Known
) -> CanonicalGraph:
    """The graph that a fingerprint stands for."""
    walk = _Walk(outputs, fill_of, known)
    done: dict[UOp, UOp] = {}
    positions: dict[UOp, int] = {}
    for position, node in enumerate(walk.nodes):
        walk.constants |= node.op is ops.CONST
        buffer = node if node.op is ops.BUFFER else walk.held.get(node)
        if buffer is not None:
            slot = walk.leaf(node, buffer)
            done[node] = _fill_node(buffer, walk) if slot is None else _param(buffer, slot, walk)
            continue
        if node.op is ops.SCALAR:
            done[node] = walk.variable(node)
            continue
        src = [done[source] for source in node.src]
        for operand, slot in walk.inner(node).items():
            src[operand] = UOp(ops.SCALAR, node.src[operand].dtype, (), (slot, None, None))
        done[node] = UOp(node.op, node.dtype, tuple(src), walk.own(node.arg))
        positions.setdefault(done[node], position)
    walk.targets(targets)
    aims = [None if t is None else _param(t, walk.slots[t], walk) for t in targets]
    return CanonicalGraph([done[o] for o in outputs], aims, walk.types, positions)


def _fill_node(buffer: UOp, walk: _Walk) -> UOp:
    dtype, value = buffer.dtype, walk.fills[buffer]
    if _is_kept(dtype, value):
        single = UOp.const(dtype, value)
    else:
        single = UOp(ops.SCALAR, dtype, (), (walk.scalar_slot(value, dtype), None, None))
    return UOp(ops.EXPAND, dtype, (single,), walk.own(buffer.arg[2])) if buffer.arg[2] else single


def _param(buffer: UOp, slot: int, walk: _Walk) -> UOp:
    return UOp(ops.PARAM, buffer.dtype, (), (slot, walk.own(buffer.arg[2]), buffer.arg[3]))


# --- constants ---------------------------------------------------------------------------------


def rests_on_constants(value: UOp, fill_of: FillOf) -> bool:
    """Whether nothing but constants lies below a value (found out quickly where not)."""

    def constant(leaf: UOp) -> bool:
        return leaf.op is ops.CONST or (leaf.op is ops.BUFFER and fill_of(leaf) is not None)

    first = value
    while first.src:
        first = first.src[0]
    return constant(first) and all(constant(node) for node in toposort(value) if not node.src)


def folded(value: UOp, fill_of: FillOf) -> Scalar | None:
    """The one constant that a value over constants is everywhere, if it is one."""
    from lazulite.schedule.prepare import prepare, uniform

    leaves = [node for node in toposort(value) if node.op is ops.BUFFER]
    table = {}
    for leaf in leaves:
        fill = fill_of(leaf)
        constant = UOp.const(leaf.dtype, 0 if fill is None else fill)
        table[leaf] = UOp(ops.EXPAND, leaf.dtype, (constant,), leaf.arg[2])
    (prepared,), _ = prepare(substitute([value], table))
    single = uniform(prepared)
    return single.value if single is not None and single.op is ops.CONST else None
