"""The canonical form of a graph: what a plan is keyed by.

Storages become numbered memory arguments, and scalar constants that only lend a value become scalar
arguments, so that another batch, seed or learning rate is the same program.  `Fingerprint` walks a
graph once and gives a hashable key with the storages and scalars it met; `canonical_graph` builds the
graph that the key stands for, and is called only when no plan is known for it.  Both number memory
and scalars by first visit, in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp, substitute, toposort

Key = tuple[Any, ...]
FillOf = Callable[[UOp], Scalar | None]
"""For a BUFFER whose storage holds one value everywhere and has no memory yet: that value."""

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


@dataclass(slots=True)
class CanonicalGraph:
    """A graph over PARAM and SCALAR."""

    outputs: list[UOp]
    targets: list[UOp | None]
    scalars: list[DType]
    """The type of each scalar argument."""
    positions: dict[UOp, int]
    """Where each node stands in the walk over the graph that this one was made from (`nodes_of`)."""


@dataclass(slots=True)
class _Walk:
    """The numbering that key and graph share."""

    fill_of: FillOf
    slots: dict[UOp, int] = field(default_factory=dict)
    fills: dict[UOp, Scalar] = field(default_factory=dict)
    scalars: list[Scalar] = field(default_factory=list)
    varies: set[UOp] = field(default_factory=set)

    def leaf(self, node: UOp) -> None:
        """Number a BUFFER, unless it still is a constant."""
        fill = self.fill_of(node)
        if fill is not None:
            self.fills[node] = fill
        else:
            self.slots[node] = len(self.slots)
            self.varies.add(node)

    def scalar_slot(self, value: Scalar) -> int:
        self.scalars.append(value)
        return len(self.scalars) - 1

    def lends(self, user: UOp, position: int) -> bool:
        source = user.src[position]
        if source.op is not ops.CONST:
            return False
        varies = any(other in self.varies for other in user.src)
        return lends_a_value(user, position, source, varies)

    def mark(self, node: UOp) -> None:
        if not self.varies.isdisjoint(node.src):
            self.varies.add(node)


def fingerprint(
    outputs: Sequence[UOp], targets: Sequence[UOp | None], fill_of: FillOf, known: Callable[[UOp], UOp | None]
) -> Fingerprint:
    """The key of a graph whose outputs are written to target storages (or to fresh ones).

    `known(node)` gives the BUFFER that already holds a value; below it nothing is visited.
    """
    walk = _Walk(fill_of)
    positions: dict[UOp, int] = {}
    entries: list[Any] = []
    for node in nodes_of(outputs, known):
        op = node.op
        stored = node if (held := known(node)) is None else held
        if stored.op is ops.BUFFER:
            if stored not in walk.slots and stored not in walk.fills:
                walk.leaf(stored)
            entry: Any = _leaf_entry(stored, walk)
            if stored in walk.varies:
                walk.varies.add(node)
        elif op is ops.CONST:
            continue
        else:
            entry = (op.number, node.dtype.number, node.arg, *_operands(node, walk, positions))
            walk.mark(node)
        positions[node] = len(entries)
        entries.append(entry)
    ends = tuple([positions[o] if o.op is not ops.CONST else _constant(o) for o in outputs])
    for target in targets:
        if target is not None and target not in walk.slots:
            walk.slots[target] = len(walk.slots)
    aims = tuple([None if t is None else (walk.slots[t], t.arg[2], t.arg[3]) for t in targets])
    return Fingerprint((tuple(entries), ends, aims), list(walk.slots), walk.scalars)


def nodes_of(outputs: Sequence[UOp], known: Callable[[UOp], UOp | None]) -> list[UOp]:
    """The nodes of a graph in the order that positions count."""
    return toposort(*outputs, enter=lambda node: known(node) is None)


def _leaf_entry(buffer: UOp, walk: _Walk) -> Key:
    _, _, shape, device = buffer.arg
    if buffer in walk.fills:
        value = walk.fills[buffer]
        if not _is_kept(buffer.dtype, value):
            walk.scalar_slot(value)
            return ("scalar", buffer.dtype.number, shape, device)
        return (*_constant(UOp.const(buffer.dtype, value)), shape, device)
    return ("memory", walk.slots[buffer], shape, buffer.dtype.number, device)


def _constant(node: UOp) -> Key:
    return ("constant", node.dtype.number, node.arg)


def _operands(node: UOp, walk: _Walk, positions: dict[UOp, int]) -> list[Any]:
    codes: list[Any] = []
    for position, source in enumerate(node.src):
        if source.op is not ops.CONST:
            codes.append(positions[source])
        elif walk.lends(node, position):
            walk.scalar_slot(source.value)
            codes.append(("scalar", source.dtype.number))
        else:
            codes.append(_constant(source))
    return codes


def canonical_graph(
    outputs: Sequence[UOp], targets: Sequence[UOp | None], fill_of: FillOf, known: Callable[[UOp], UOp | None]
) -> CanonicalGraph:
    """The graph that a fingerprint stands for."""
    walk = _Walk(fill_of)
    done: dict[UOp, UOp] = {}
    types: list[DType] = []
    positions: dict[UOp, int] = {}
    for position, node in enumerate(nodes_of(outputs, known)):
        stored = node if (held := known(node)) is None else held
        if stored.op is ops.BUFFER:
            if stored not in walk.slots and stored not in walk.fills:
                walk.leaf(stored)
            done[node] = _leaf_node(stored, walk, types)
            if stored in walk.varies:
                walk.varies.add(node)
            continue
        src = []
        for operand, source in enumerate(node.src):
            if walk.lends(node, operand):
                slot = walk.scalar_slot(source.value)
                types.append(source.dtype)
                src.append(UOp(ops.SCALAR, source.dtype, (), (slot, None, None)))
            else:
                src.append(done[source])
        done[node] = UOp(node.op, node.dtype, tuple(src), node.arg)
        positions.setdefault(done[node], position)
        walk.mark(node)
    for target in targets:
        if target is not None and target not in walk.slots:
            walk.slots[target] = len(walk.slots)
    aims = [None if t is None else _param(t, walk.slots[t]) for t in targets]
    return CanonicalGraph([done[o] for o in outputs], aims, types, positions)


def _leaf_node(buffer: UOp, walk: _Walk, types: list[DType]) -> UOp:
    if buffer not in walk.fills:
        return _param(buffer, walk.slots[buffer])
    dtype, value = buffer.dtype, walk.fills[buffer]
    if _is_kept(dtype, value):
        single = UOp.const(dtype, value)
    else:
        single = UOp(ops.SCALAR, dtype, (), (walk.scalar_slot(value), None, None))
        types.append(dtype)
    return UOp(ops.EXPAND, dtype, (single,), buffer.arg[2]) if buffer.arg[2] else single


def _param(buffer: UOp, slot: int) -> UOp:
    return UOp(ops.PARAM, buffer.dtype, (), (slot, buffer.arg[2], buffer.arg[3]))


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
