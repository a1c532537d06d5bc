"""Which kernel stores a value on its way, so that it needs none of its own."""

from __future__ import annotations

from collections.abc import Iterable

from lazulite.analysis.kinds import FEW_ROWS, OPAQUE, is_elementwise
from lazulite.ir import ops
from lazulite.ir.size import size_node
from lazulite.ir.uop import UOp, index
from lazulite.schedule.fusion import MAX_OPERANDS, MAX_OPS, SMALL, State, Wishes, launch_key
from lazulite.schedule.groups import Group, Place, element_count
from lazulite.schedule.products import MAX_SEARCH, is_product, sums_up_grown
from lazulite.schedule.storing import inside_reduction, is_dear_beside_product

_NEAR = 16
"""How many values are looked at for one that another kernel reads, too."""


def host_of(state: State, node: UOp, wanted: Wishes) -> tuple[Group, Place] | None:
    """A group that computes the value at exactly its own elements and may store it on the way."""
    if node.op is ops.LAUNCH:
        host = state.launches.get(launch_key(node))
        return None if host is None else (host, Place(host.ranges))
    if not state.fuse or node.op in OPAQUE or sums_up_grown(node) or is_dear_beside_product(state, node, wanted):
        return None
    for group, places in wanted.items():
        if len(places) == 1 and not (node.op is ops.REDUCE and group.contraction):
            (place,) = places
            if _may_store(state, group, node, wanted) and _computed_once(group, node, place):
                return group, place
    return None


def beside(state: State, node: UOp, wanted: Wishes) -> tuple[Group, Place] | None:
    """A group that needs what is reduced anyway, row by row: it reduces the row on the way."""
    if not state.fuse or node.op is not ops.REDUCE or is_product(node) or sums_up_grown(node):
        return None
    for part in _near(node):
        for group, places in state.wanted.get(part, {}).items():
            if group in wanted or group.products:
                continue
            for around in places:
                place = Place(
                    tuple([index(0) if n in node.arg[1] else p for n, p in enumerate(around.index)]), around.gate
                )
                if _computed_once(group, node, place) and _may_store(state, group, node, wanted):
                    return group, place
    return None


def _may_store(state: State, group: Group, node: UOp, wanted: Iterable[Group]) -> bool:
    """Whether a group has room for another result, and may come before all that want it."""
    whole = state.whole.get(node, {})
    if group.root.op is ops.LAUNCH:
        return False
    if group.size >= MAX_OPS or len(group.reads) + len(group.stored) >= MAX_OPERANDS:
        return False
    if group in whole or group.root in state.again or _writes_same_memory(state, group, node):
        return False
    return not any(_depends(state, group, other, node) for other in (*wanted, *whole) if other is not group)


def _near(node: UOp) -> list[UOp]:
    """The values of which a reduction is made element by element, a few steps down."""
    found: dict[UOp, None] = {}
    pending = [node.src[0]]
    while pending and len(found) < _NEAR:
        part = pending.pop()
        if part.shape == node.src[0].shape:
            found[part] = None
            if is_elementwise(part):
                pending += part.src
    return list(found)


def _writes_same_memory(state: State, group: Group, node: UOp) -> bool:
    """Whether the group writes memory that this value also goes to: one kernel has no order among them."""
    numbers = {d.number for d in state.destinations.get(node, ())}
    return any(d.number in numbers for value in group.stored for d in state.destinations.get(value, ()))


def _computed_once(group: Group, node: UOp, place: Place) -> bool:
    """Whether the group computes each element of the value once, at its root's own ranges."""
    if place.gate is not None or inside_reduction(place):
        return False
    if node.op is ops.REDUCE and group.times(place) < FEW_ROWS and element_count(node.src[0].shape) > SMALL:
        return False
    if group.at_root(place, node.shape):
        return True
    axes = [part for part in place.index if part.op is ops.RANGE]
    plain = len(set(axes)) == len(axes) and all(p.op is ops.RANGE or p.is_const(0) for p in place.index)
    whole = all(size == 1 or _runs_through(p, size) for p, size in zip(place.index, node.shape, strict=True))
    return plain and whole and group.times(place) == element_count(node.shape)


def _runs_through(position: UOp, size: int) -> bool:
    """Whether a range has as many turns as an axis has elements, whatever the size is."""
    return position.op is ops.RANGE and position.src[0] is size_node(size)


def _depends(state: State, group: Group, other: Group, visited: UOp) -> bool:
    """Whether a group needs, through any path, what another one stores; True when the search is too long.

    Nothing below the node whose turn it is has been stored yet, but by what fills the memory of a hand-written kernel.
    """
    lowest = -1 if state.filling else state.position[visited]
    seen: set[UOp] = set()
    pending = list(group.stored)
    while pending:
        node = pending.pop()
        if node in seen or state.position[node] <= lowest:
            continue
        seen.add(node)
        if len(seen) > MAX_SEARCH:
            return True
        writer = state.writer.get(node)
        if writer is other:
            return True
        if writer is not None and writer is not group:
            pending.extend(writer.stored)
        pending.extend(node.src)
        pending.extend(state.filling.get(node, ()))
    return False
