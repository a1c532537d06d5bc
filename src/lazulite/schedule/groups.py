"""What fusion decides: groups of nodes that become one kernel each, and the reasons.

A `Group` computes the values it stores.  It owns the ranges of its root's axes; every node that it
computes inline is *demanded* at one or more places, each a tuple of INDEX expressions over the
group's ranges and a gate.  Nodes that are stored elsewhere, and leaves, are read from memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from lazulite.analysis.index_map import Maps
from lazulite.analysis.regions import Region
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.launches import read_in_passing
from lazulite.ir.size import most, room, size_node, varies
from lazulite.ir.uop import UOp, index


@dataclass(frozen=True, slots=True)
class Place:
    """Where an element of a value is wanted, and when (None: always)."""

    index: tuple[UOp, ...]
    gate: UOp | None = None


@dataclass(frozen=True, slots=True)
class Destination:
    """Memory for a value: a target or output of the graph (`number`), seen through a region."""

    number: int
    region: Region = ()
    sequence: int = 0
    """The place of this write among those of the same memory, in program order."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Why a value was fused, recomputed or stored."""

    node: UOp
    kind: str
    reason: str


@dataclass(eq=False, slots=True)
class Group:
    """One kernel in the making."""

    number: int
    root: UOp
    ranges: tuple[UOp, ...]
    """The index of the root's element: a RANGE for each axis, the constant 0 for axes of size 1."""
    maps: Maps
    """What the groups of a graph know about indices."""
    depth: int
    """That of the root: ranges count theirs from it, so that equal layers of a network become equal kernels."""
    stored: dict[UOp, Place] = field(default_factory=dict)
    """The values this group writes to memory, each with the place at which it is computed."""
    places: dict[UOp, dict[Place, None]] = field(default_factory=dict)
    """Every node computed here, users before sources, with the places where it is wanted."""
    reads: dict[UOp, None] = field(default_factory=dict)
    """Leaves and values stored by other groups."""
    trips: dict[UOp, int] = field(default_factory=dict)
    """How often the body of each range runs, its enclosing ranges counted in."""
    reduce_ranges: dict[tuple[object, ...], tuple[UOp, ...]] = field(default_factory=dict)
    size: int = 0
    contraction: bool = False
    """Whether a reduction at the full width of the root's ranges is computed here."""
    products: bool = False
    """Whether a large sum of products is."""

    def times(self, place: Place) -> int:
        """How often a value at this place is computed, loop-invariant code hoisted."""
        return max([self.trips[r] for part in place.index for r in part.ranges], default=1)

    @property
    def iterations(self) -> int:
        return max(self.trips.values(), default=1)

    def at_root(self, place: Place, shape: tuple[int, ...]) -> bool:
        """Whether all of a value of this shape is wanted, each element at the root's own."""
        whole = place.gate is None and math.prod(shape) == math.prod(self.root.shape)
        return whole and self.maps.flat(shape, place.index) is self.maps.flat(self.root.shape, self.ranges)


def open_group(number: int, root: UOp, depth: int, maps: Maps) -> Group:
    """A group that computes and stores one value."""
    ranges, trips, total = [], {}, 1
    for axis, extent in enumerate(root.shape):
        if extent == 1:
            ranges.append(index(0))
            continue
        loop = UOp(ops.RANGE, dtypes.index, (size_node(extent),), ((0, axis), "loop"))
        total *= most(extent)
        trips[loop] = total
        ranges.append(loop)
    return Group(number, root, tuple(ranges), maps, depth, trips=trips)


def place_of_argument(group: Group, launch: UOp, number: int) -> Place | None:
    """Where a hand-written kernel wants an argument that it reads in passing; None where it wants memory."""
    run, source = launch.arg, launch.src[number]
    load = read_in_passing(run.kernel).get(run.slots[number]) if run.pure else None
    if load is None or varies(source.shape) or math.prod(source.shape) != load.src[0].arg[1][0]:
        return None
    row = UOp(ops.RESHAPE, source.dtype, (source,), load.src[0].arg[1])
    return Place(*group.maps.through(row, (load.src[1],)))


def sources_at(group: Group, node: UOp, place: Place, depth: int) -> list[tuple[UOp, Place]]:
    """Each source of a node computed at a place, with the place where it is wanted.

    What a GATHER picks from is none of them: it lies in memory.
    """
    if node.op is ops.REDUCE:
        return [(node.src[0], _below_reduce(group, node, place, depth))]
    if node.op in ops.MOVEMENT:
        return [(node.src[0], Place(*group.maps.through(node, place.index, place.gate)))]
    if node.op is ops.GATHER:
        own = Place(place.index[: len(node.src[1].shape)], place.gate)
        return [(positions, own) for positions in node.src[1:]]
    return [(source, place if source.shape else Place((), place.gate)) for source in node.src]


def reduce_ranges(group: Group, node: UOp, place: Place, depth: int) -> tuple[UOp, ...]:
    """The ranges over which a reduction at a place runs.

    Reductions of one depth, one extent and one surrounding share ranges, so that they share a loop;
    deeper ones (which enclose others) get an earlier nesting order.
    """
    axes = [axis for axis in node.arg[1] if node.src[0].shape[axis] != 1]
    extents = tuple([node.src[0].shape[axis] for axis in axes])
    around = frozenset().union(*[part.ranges for part in place.index])
    key = (depth, extents, around)
    known = group.reduce_ranges.get(key)
    if known is None:
        slot = len(group.reduce_ranges)
        known = tuple([
            UOp(ops.RANGE, dtypes.index, (size_node(extent),), ((1, group.depth - depth, slot, position), "loop"))
            for position, extent in enumerate(extents)
        ])  # fmt: skip
        group.reduce_ranges[key] = known
        total = group.times(place)
        for loop, extent in zip(known, extents, strict=True):
            total *= most(extent)
            group.trips[loop] = total
    return known


def _below_reduce(group: Group, node: UOp, place: Place, depth: int) -> Place:
    ranges = iter(reduce_ranges(group, node, place, depth))
    parts = list(place.index)
    for axis in node.arg[1]:
        if node.src[0].shape[axis] != 1:
            parts[axis] = next(ranges)
    return Place(tuple(parts), place.gate)


def element_count(shape: Sequence[int]) -> int:
    """How many elements a shape has; the most, where sizes vary."""
    return room(shape)
