"""Fusion: which values are computed where, which are stored, and why.

Takes the values to store (with their destinations) and gives groups.  Nodes are visited users first,
so when a node's turn comes, every group that wants it, and every place where it is wanted, is known;
the decision is then local and final.  The graph of groups stays acyclic: a group grows only downward
from its roots, and a value is stored by a group that already wants it ("hosted") only where no other
user of it stands above that group.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lazulite.analysis.kinds import HERE, LEAVES, gather_facts, is_elementwise
from lazulite.base.errors import EffectError
from lazulite.ir import ops
from lazulite.ir.launches import turns_of
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.fusion import Fusion, LaunchKey, State, is_reinterpretation, launch_key
from lazulite.schedule.groups import Decision, Destination, Group, Place, open_group, place_of_argument, sources_at
from lazulite.schedule.hosting import beside, host_of
from lazulite.schedule.products import is_grown, is_large_product
from lazulite.schedule.storing import HAND_WRITTEN, reason_to_store


def fuse(
    destinations: Mapping[UOp, Sequence[Destination]], *, allowed: bool = True, ordered: Collection[LaunchKey] = ()
) -> Fusion:
    """Group the graph below the values that have destinations (no leaves or reinterpretations).

    `allowed=False` gives each op a kernel of its own; the calls that are `ordered` take arguments from memory.
    """
    order = toposort(*destinations)
    position = {node: number for number, node in enumerate(order)}
    state = State(
        gather_facts(order), destinations, allowed, ordered=ordered, position=position,
        filling=_filling(destinations),
    )  # fmt: skip
    for node in reversed(order):
        _visit(state, node, state.wanted.pop(node, {}))
    _make_anew_what_is_made_of(state)
    return Fusion(state.groups, destinations, state.writer, state.facts, state.decisions, frozenset(state.again))


def _make_anew_what_is_made_of(state: State) -> None:
    """A value that is made, element by element, of one that readers make anew is made anew by its only reader, too."""

    def is_inside(node: UOp) -> bool:
        return node not in state.writer and (is_elementwise(node) or node.op in ops.MOVEMENT)

    for node in reversed(state.writer):  # sources first
        if node not in state.destinations and is_elementwise(node) and state.again and is_grown(node):
            parts = [part for source in node.src for part in toposort(source, enter=is_inside)]
            if not state.again.isdisjoint(parts):
                state.again.add(node)


def _filling(destinations: Mapping[UOp, Sequence[Destination]]) -> dict[UOp, list[UOp]]:
    """For each launch what is written to its memory before it."""
    written: dict[int, list[tuple[int, UOp]]] = {}
    for value, places in destinations.items():
        for place in places:
            written.setdefault(place.number, []).append((place.sequence, value))
    return {
        launch: [value for place in places for sequence, value in written[place.number] if sequence < place.sequence]
        for launch, places in destinations.items()
        if launch.op is ops.LAUNCH
    }


def _visit(state: State, node: UOp, wanted: dict[Group, dict[Place, None]]) -> None:
    rooted = node in state.destinations
    if not rooted and not wanted and node not in state.forced:
        return  # what a kernel replaces in its own memory, and nobody else reads
    if node.op is ops.AFTER:  # what is stored there before is never computed on the way
        readers = dict.fromkeys([*wanted, *state.whole.get(node, {})])
        state.whole.setdefault(node.src[1], {}).update(readers)
    if not rooted and (node.op in LEAVES or is_reinterpretation(node)):
        for group in wanted:
            group.reads[node] = None
        if is_reinterpretation(node):
            state.force(node.src[0], [*wanted, *state.whole.get(node, {})], "its bytes are read in another width")
        return
    reason = "an output of the graph" if rooted else reason_to_store(state, node, wanted)
    if reason is None:
        for group, places in wanted.items():
            _compute_in(state, group, node, places)
    else:
        state.decisions.append(Decision(node, "stored", reason))
        several = len(wanted) > 1 or any(group.root in state.again for group in wanted)
        if not rooted and state.fuse and several and is_grown(node):
            state.again.add(node)
        _store(state, node, wanted)


def _store(state: State, node: UOp, wanted: dict[Group, dict[Place, None]]) -> None:
    """Store a value: in a group that computes it anyway, or in one of its own."""
    found = host_of(state, node, wanted) or beside(state, node, wanted)
    if found is None:
        host = open_group(len(state.groups), node, state.facts[node].depth, state.maps)
        state.groups.append(host)
        place = Place(host.ranges)
    else:
        host, place = found
        state.decisions.append(Decision(node, "fused", f"also stored by the kernel of {host.root!r}"))
    host.stored[node] = place
    state.writer[node] = host
    for group in wanted:
        if group is not host:
            group.reads[node] = None
    if node.op is ops.LAUNCH:
        _launch(state, host, node)
    elif node.op is ops.COPY and node.arg != HERE:
        host.reads[node.src[0]] = None
        state.force(node.src[0], [host], "it is copied as a whole")
    elif is_reinterpretation(node):
        host.reads[node] = None
        state.force(node.src[0], [host], "its bytes are read in another width")
    else:
        _compute_in(state, host, node, {place: None})


def _launch(state: State, group: Group, node: UOp) -> None:
    """Read the arguments of a hand-written kernel; what it writes it finds in the memory of its results.

    An argument that it reads in passing is computed there, if it can be.
    """
    if node not in state.destinations:
        raise EffectError("after", "what a kernel left in memory was overwritten, and a kernel is never run twice")
    key = launch_key(node)
    state.launches[key] = group
    fuse = state.fuse and key not in state.ordered
    group.trips = dict(turns_of(node.arg.kernel))
    for i, source in enumerate(node.src):
        place = place_of_argument(group, node, i) if fuse else None
        if place is not None:
            state.wanted.setdefault(source, {}).setdefault(group, {})[place] = None
            continue
        state.whole.setdefault(source, {})[group] = None  # what lies in written memory before is stored before, too
        if i in node.arg.reads and node.arg.bindings[i] < 0:
            group.reads[source] = None
            state.force(source, [group], HAND_WRITTEN)


def _compute_in(state: State, group: Group, node: UOp, places: Mapping[Place, None]) -> None:
    """Compute a node inline in a group and pass the wish on to its sources."""
    known = group.places.setdefault(node, {})
    depth = state.facts[node].depth
    if is_elementwise(node):
        group.size += len(places)
    elif node.op is ops.GATHER:
        _read_anywhere(state, group, node.src[0])
    for place in places:
        known[place] = None
        if node.op is ops.REDUCE and group.times(place) == group.iterations:
            group.contraction = True
        group.products |= is_large_product(node)
        for source, below in sources_at(group, node, place, depth):
            state.wanted.setdefault(source, {}).setdefault(group, {})[below] = None


def _read_anywhere(state: State, group: Group, node: UOp) -> None:
    """Read a value at positions that are only known when the kernel runs: it has to lie in memory."""
    while node.op in ops.MOVEMENT:
        node = node.src[0]
    group.reads[node] = None
    if node.op not in LEAVES:
        state.force(node, [group], "it is read at computed positions")
