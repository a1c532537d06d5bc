"""Write a group as a `KERNEL`.

Takes a group of `schedule.fuse` and gives a SINK of STOREs over the group's ranges, with memory and
scalars numbered as kernel arguments, and the list of what each argument is.  A load whose index can
leave its memory is under a gate, and gives 0 where that is false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lazulite.analysis.index_map import both, origin
from lazulite.analysis.kinds import is_elementwise
from lazulite.analysis.regions import place_in_region
from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.size import size_form
from lazulite.ir.uop import UOp, substitute, toposort
from lazulite.schedule.fusion import Fusion, source_of
from lazulite.schedule.groups import Decision, Destination, Group, Place, element_count, reduce_ranges, sources_at
from lazulite.simplify.boolean import conjuncts
from lazulite.simplify.comparison import below_zero
from lazulite.simplify.normal import normal

Memory = UOp | int
"""What a kernel reads or writes: a destination's number, a PARAM of the graph, or a stored value."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a kernel: memory, or the scalar of the graph with this slot."""

    memory: Memory | None
    scalar: int = -1


@dataclass(slots=True)
class Kernel:
    """A group's kernel and what its arguments are."""

    group: Group
    sink: UOp
    arguments: tuple[Argument, ...]
    reads: frozenset[Memory]
    writes: tuple[tuple[Memory, int], ...]
    """What is written, each with its place among the writes of the same memory."""
    kept: tuple[Decision, ...] = ()
    """The values that other groups stored and that now stay in scratch memory (`schedule/blocks.py`)."""
    groups: tuple[Group, ...] = ()
    """Those groups, whose work this kernel does too."""

    @property
    def memories(self) -> Iterator[Memory]:
        """What it reads and what it writes."""
        yield from self.reads
        yield from (memory for memory, _ in self.writes)

    def memory_of(self, load: UOp) -> Memory | None:
        """The memory that a load reads; None for scratch memory."""
        return self.arguments[load.src[0].arg[0]].memory if load.src[0].op is ops.PARAM else None


def memory_of(fusion: Fusion, node: UOp) -> Memory:
    """Where a stored value or leaf lies: its first whole destination, else memory of its own."""
    node = source_of(node)
    if node.op is ops.AFTER:
        node = node.src[0]
    if node.op is ops.PARAM:
        return int(node.arg[0])
    for destination in fusion.destinations.get(node, ()):
        if not destination.region:
            return destination.number
    return node


def build_kernel(fusion: Fusion, group: Group, shape_of: Callable[[int], tuple[int, ...]]) -> Kernel:
    """The kernel of a group; `shape_of(number)` gives the shape of a destination."""
    builder = Builder.of(fusion, group)
    stores, writes = [], []
    for node, place in group.stored.items():
        value = builder.read(node.src[0] if node.op is ops.COPY else node, place)
        for destination in _destinations(fusion, node):
            memory = memory_of(fusion, node) if destination is None else destination.number
            stores.append(builder.store(node, place, value, destination, memory, shape_of))
            writes.append((memory, 0 if destination is None else destination.sequence))
    sink = builder.with_variables(UOp(ops.SINK, dtypes.void, tuple(stores)))
    return Kernel(group, sink, tuple(builder.arguments), frozenset(builder.loaded), tuple(writes))


def _destinations(fusion: Fusion, node: UOp) -> list[Destination | None]:
    """Where a value is written; None stands for memory of its own, which other groups read."""
    given = fusion.destinations.get(node, ())
    if not given:
        return [None]
    others = [group for group in fusion.groups if group is not fusion.writer[node]]
    if all(d.region for d in given) and any(source_of(each) is node for group in others for each in group.reads):
        return [*given, None]
    return list(given)


@dataclass(slots=True)
class Builder:
    """The values of a group, and what its kernel takes for them."""

    fusion: Fusion
    group: Group
    values: dict[tuple[UOp, Place], UOp] = field(default_factory=dict)
    arguments: list[Argument] = field(default_factory=list)
    slots: dict[tuple[object, ...], int] = field(default_factory=dict)
    loaded: set[Memory] = field(default_factory=set)

    @staticmethod
    def of(fusion: Fusion, group: Group) -> Builder:
        """All that the group computes."""
        builder = Builder(fusion, group)
        for node, places in reversed(group.places.items()):
            for place in places:
                builder.values[node, place] = builder.compute(node, place)
        return builder

    def param(self, memory: Memory, dtype: DType, size: int, own: UOp | None = None) -> UOp:
        """The argument for memory; those for one memory and type are one, unless they are somebody's `own`."""
        key = (memory, dtype) if own is None else (memory, dtype, own)
        slot = self.slots.get(key)
        if slot is None:
            slot = self.slots[key] = len(self.arguments)
            self.arguments.append(Argument(memory))
        return UOp(ops.PARAM, dtype, (), (slot, (size,), ""))

    def scalar(self, node: UOp) -> UOp:
        number, low, high = node.arg
        key = ("scalar", number), node.dtype
        slot = self.slots.get(key)
        if slot is None:
            slot = self.slots[key] = len(self.arguments)
            self.arguments.append(Argument(None, number))
        return UOp(ops.SCALAR, node.dtype, (), (slot, low, high))

    def with_variables(self, sink: UOp) -> UOp:
        """The kernel with the variables of its sizes and positions as scalar arguments."""
        found = [n for n in toposort(sink) if n.op is ops.SCALAR and n.dtype is dtypes.index]
        return substitute([sink], {node: self.scalar(node) for node in found})[0] if found else sink

    def place(self, memory: Memory, shape: tuple[int, ...], index: tuple[UOp, ...]) -> UOp:
        """Where an element of a value of this shape lies in memory."""
        last = self.fusion.last.get(memory) if isinstance(memory, UOp) else None
        if last is not None:
            shape = (*shape[:last], *shape[last + 1 :], shape[last])
            index = (*index[:last], *index[last + 1 :], index[last])
        return self.group.maps.flat(shape, index)

    def read(self, node: UOp, place: Place) -> UOp:
        """The value of a source at a place: computed here, a constant, or loaded."""
        known = self.values.get((node, place))
        if known is not None:
            return known
        if node.op is ops.CONST:
            return node
        if node.op is ops.SCALAR:
            return node if node.dtype is dtypes.index else self.scalar(node)
        if node.op is ops.IOTA:
            return normal(ops.CAST, node.dtype, (place.index[0],))
        memory = memory_of(self.fusion, node)
        self.loaded.add(memory)
        size, position = element_count(node.shape), self.place(memory, node.shape, place.index)
        param = self.param(memory, node.dtype, size)
        inside = 0 <= position.vmin and position.vmax < size
        gate = () if place.gate is None or inside else (place.gate,)
        return UOp(ops.LOAD, node.dtype, (param, position, *gate))

    def compute(self, node: UOp, place: Place) -> UOp:
        """The value of a node computed here; its sources come first in the order of the group."""
        depth = self.fusion.facts[node].depth
        src = [self.read(source, below) for source, below in sources_at(self.group, node, place, depth)]
        if is_elementwise(node):
            return normal(node.op, node.dtype, tuple(src), node.arg)
        if node.op is ops.REDUCE:
            return self.reduce(node, place, src[0], depth)
        if node.op is ops.GATHER:
            return self.gather(node, place, src)
        return self.padded(node, place, src[0]) if node.op is ops.PAD else src[0]

    def gather(self, node: UOp, place: Place, positions: Sequence[UOp]) -> UOp:
        """The element at computed positions, 0 where one of them lies outside."""
        x, gate, index = node.src[0], place.gate, []
        for size, position in zip(x.shape, positions, strict=False):
            at = normal(ops.CAST, dtypes.index, (position,))
            gate = both(gate, below_zero(linear(at).scaled(-1) + Linear(-1)))
            gate = both(gate, below_zero(linear(at) + size_form(size).scaled(-1)))
            index.append(at)
        rest = place.index[len(node.src[1].shape) :]
        base, where, gate = origin(x, (*index, *rest), gate)
        value = self.read(base, Place(where, gate))
        return value if gate is None else _gated(gate, value)

    def padded(self, node: UOp, place: Place, inner: UOp) -> UOp:
        _, gate = self.group.maps.through(node, place.index)
        if gate is None:
            return inner
        if inner.op is ops.REDUCE and inner.arg[0] is ops.ADD:  # the gate moves in, so that sums can join
            return inner.replace(src=(_gated(gate, inner.src[0]), *inner.src[1:]))
        return _gated(gate, inner)

    def reduce(self, node: UOp, place: Place, body: UOp, depth: int) -> UOp:
        ranges = reduce_ranges(self.group, node, place, depth)
        op = node.arg[0]
        if body.op is ops.REDUCE and body.arg[0] is op is ops.ADD:
            ranges, body = (*ranges, *body.src[1:]), body.src[0]
        return UOp(ops.REDUCE, node.dtype, (body, *ranges), (op, ()))

    def store(
        self, node: UOp, place: Place, value: UOp, destination: Destination | None, memory: Memory,
        shape_of: Callable[[int], tuple[int, ...]],
    ) -> UOp:  # fmt: skip
        position, size = self.place(memory, node.shape, place.index), element_count(node.shape)
        gate: UOp | None = None
        if destination is not None and destination.region:
            shape = shape_of(destination.number)
            size = element_count(shape)
            target, gate = place_in_region(shape, destination.region, place.index)
            position = self.group.maps.flat(shape, target)
        param = self.param(memory, node.dtype, size)
        return UOp(ops.STORE, dtypes.void, (param, position, value, *(() if gate is None else (gate,))))


def _gated(gate: UOp, value: UOp) -> UOp:
    """The value where the gate is true, else 0."""
    if _vanishes(value, set(conjuncts(gate))):
        return value
    return normal(ops.WHERE, value.dtype, (gate, value, UOp.const(value.dtype, 0)))


def _vanishes(value: UOp, gates: set[UOp]) -> bool:
    """Whether a value is 0 anyway where one of these gates is false: it comes from loads under them all."""
    pending = [value]
    while pending:
        node = pending.pop()
        if node.op is ops.LOAD:
            if len(node.src) < 3 or not gates.issubset(conjuncts(node.src[2])):
                return False
        elif node.op in (ops.MUL, ops.ADD, ops.CAST) and node.dtype.is_float:
            pending.extend(node.src)
        else:
            return False
    return True
