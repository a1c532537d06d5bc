"""Fusion: which values are computed where, which are stored, and why.

Takes the values to store (with their destinations) and gives groups.  Nodes are visited users first,
so when a node's turn comes, every group that wants it, and every place where it is wanted, is known;
the decision is then local and final.  The graph of groups stays acyclic: a group grows only downward
from its roots, and a value is stored by a group that already wants it ("hosted") only where no other
user of it stands above that group.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lazulite.analysis.index_map import Maps
from lazulite.analysis.kinds import CHEAP, FEW_ROWS, HERE, LEAVES, LONG, OPAQUE, Facts, gather_facts, is_elementwise
from lazulite.base.errors import EffectError
from lazulite.ir import ops
from lazulite.ir.size import size_node
from lazulite.ir.uop import UOp, index, toposort
from lazulite.schedule.groups import Decision, Destination, Group, Place, element_count, open_group, sources_at

MAX_OPS = 300
MAX_OPERANDS = 32
MAX_SEARCH = 64
SMALL = 1 << 16
_FEW = 16
"""So many numbers are added for an element of a sum that is computed within another one."""
_SHORT, _GROWN = 128, 2
"""How many products may be added for an element that is made anew, and how many times more of them there are than
elements of the factors."""
_FEW_TIMES = 8
"""So often a cheap value may be computed within a reduction: a register tile shares it among rows anyway."""
_PACKED_COST = 16
"""What an element of a factor may cost that is computed while it is copied."""
_NEAR = 16
"""How many values are looked at for one that another kernel reads, too."""
_REUSED = 4
"""How often both factors of a product are read again where a register tile pays."""


@dataclass(slots=True)
class Fusion:
    """The result: groups in the order in which they were opened (users first), and the reasons."""

    groups: list[Group]
    destinations: Mapping[UOp, Sequence[Destination]]
    writer: dict[UOp, Group]
    """The group that stores each stored value."""
    facts: Mapping[UOp, Facts]
    decisions: list[Decision]
    again: frozenset[UOp] = frozenset()
    """Stored values that each kernel that reads them had better make anew, block by block (`schedule/blocks.py`)."""


@dataclass(slots=True)
class _State:
    facts: Mapping[UOp, Facts]
    destinations: Mapping[UOp, Sequence[Destination]]
    fuse: bool
    wanted: dict[UOp, dict[Group, dict[Place, None]]] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)
    writer: dict[UOp, Group] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    launches: dict[tuple[object, ...], Group] = field(default_factory=dict)
    """The group of each call of a hand-written kernel, which stores all its results."""
    maps: Maps = field(default_factory=Maps)
    forced: dict[UOp, str] = field(default_factory=dict)
    """Values that must be stored, with the reason."""
    whole: dict[UOp, dict[Group, None]] = field(default_factory=dict)
    """The groups that read these values as a whole, so that none of them can compute it on the way."""
    again: set[UOp] = field(default_factory=set)
    """Stored values that are better made anew by each of their readers."""
    packed: set[UOp] = field(default_factory=set)
    """What the factors of products are made of that are computed while they are copied in the order of reading."""
    position: dict[UOp, int] = field(default_factory=dict)
    """The number of each node in the order of the graph, sources first."""
    filling: dict[UOp, list[UOp]] = field(default_factory=dict)
    """What is written, before a hand-written kernel runs, to the memory in which it does: it waits for that, too."""

    def force(self, node: UOp, readers: Iterable[Group], reason: str) -> None:
        self.forced[node] = reason
        self.whole.setdefault(node, {}).update(dict.fromkeys(readers))


def fuse(destinations: Mapping[UOp, Sequence[Destination]], *, allowed: bool = True) -> Fusion:
    """Group the graph below the values that have destinations (no leaves or reinterpretations).

    `allowed=False` gives each op a kernel of its own.
    """
    order = toposort(*destinations)
    position = {node: number for number, node in enumerate(order)}
    state = _State(gather_facts(order), destinations, allowed, position=position, filling=_filling(destinations))
    for node in reversed(order):
        _visit(state, node, state.wanted.pop(node, {}))
    return Fusion(state.groups, destinations, state.writer, state.facts, state.decisions, frozenset(state.again))


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


def _visit(state: _State, node: UOp, wanted: dict[Group, dict[Place, None]]) -> None:
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
    reason = "an output of the graph" if rooted else _reason_to_store(state, node, wanted)
    if reason is None:
        for group, places in wanted.items():
            _compute_in(state, group, node, places)
    else:
        state.decisions.append(Decision(node, "stored", reason))
        several = len(wanted) > 1 or any(group.root in state.again for group in wanted)
        if not rooted and state.fuse and several and _is_grown(node):
            state.again.add(node)
        _store(state, node, wanted)


def is_reinterpretation(node: UOp) -> bool:
    """A BITCAST between widths: no work, but a second way to read the memory of its source."""
    return node.op is ops.BITCAST and not is_elementwise(node)


def source_of(read: UOp) -> UOp:
    """The value in whose memory a node lies that a group reads."""
    while is_reinterpretation(read):
        read = read.src[0]
    return read


def _store(state: _State, node: UOp, wanted: dict[Group, dict[Place, None]]) -> None:
    """Store a value: in a group that computes it anyway, or in one of its own."""
    found = _host(state, node, wanted) or _beside(state, node, wanted)
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


def _launch(state: _State, group: Group, node: UOp) -> None:
    """Read the arguments of a hand-written kernel; what it writes it finds in the memory of its results."""
    if node not in state.destinations:
        raise EffectError("after", "what a kernel left in memory was overwritten, and a kernel is never run twice")
    state.launches[launch_key(node)] = group
    for source in node.src:  # also what lies in the written memory before: it is stored by an earlier kernel
        state.whole.setdefault(source, {})[group] = None
    for i in node.arg.reads:
        if node.arg.bindings[i] < 0:
            group.reads[node.src[i]] = None
            state.force(node.src[i], [group], "a hand-written kernel reads it")


def launch_key(node: UOp) -> tuple[object, ...]:
    """What the results of one call have in common."""
    return node.src, node.arg._replace(result=-1)


def _compute_in(state: _State, group: Group, node: UOp, places: Mapping[Place, None]) -> None:
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
        group.products |= _is_large_product(node)
        for source, below in sources_at(group, node, place, depth):
            state.wanted.setdefault(source, {}).setdefault(group, {})[below] = None


def _read_anywhere(state: _State, group: Group, node: UOp) -> None:
    """Read a value at positions that are only known when the kernel runs: it has to lie in memory."""
    while node.op in ops.MOVEMENT:
        node = node.src[0]
    group.reads[node] = None
    if node.op not in LEAVES:
        state.force(node, [group], "it is read at computed positions")


# --- decisions ---------------------------------------------------------------------------------


def _reason_to_store(state: _State, node: UOp, wanted: Mapping[Group, Mapping[Place, None]]) -> str | None:
    """Why a value must or had better be stored; None to compute it where it is wanted."""
    if node.op in OPAQUE:
        return "a copy was asked for" if node.arg == HERE else "produced outside kernels"
    if node in state.forced:
        return state.forced[node]
    if node.op in ops.MOVEMENT:
        return None
    if not state.fuse:
        return "fusion is off"
    if any(group.size >= MAX_OPS or len(group.reads) >= MAX_OPERANDS for group in wanted):
        return "the kernel is full"
    if node.op is ops.REDUCE:
        return _reason_to_store_reduction(state, node, wanted)
    return _reason_to_store_elementwise(state, node, wanted)


def _reason_to_store_reduction(
    state: _State, node: UOp, wanted: Mapping[Group, Mapping[Place, None]]
) -> str | None:  # fmt: skip
    if len(wanted) > 1:
        return "a reduction that several kernels want"
    ((group, places),) = wanted.items()
    if group.root in state.again and all(group.times(place) < group.iterations for place in places):
        return "what is made from it is made anew by each of its readers"
    if len(places) > 1:
        return "a reduction that is wanted at several places"
    if group.products and _is_large_product(node) and not _continues_reduction(group, node):
        return "a second sum of products, whose blocks are others"
    (place,) = places
    times, elements = group.times(place), element_count(node.shape)
    if element_count(group.root.shape) < FEW_ROWS <= elements and element_count(node.src[0].shape) >= LONG:
        return "parts of a long reduction, for threads to share"
    if _continues_reduction(group, node) and times <= 2 * elements:
        return None
    if place.gate is not None:
        return "a reduction that is wanted only in part"
    if times > elements:
        return f"a reduction that would be computed {times // max(elements, 1)} times"
    if times == group.iterations and element_count(node.src[0].shape) > _FEW * elements:
        return "a second full-width reduction in one kernel" if group.contraction else None
    if times < FEW_ROWS and element_count(node.src[0].shape) > SMALL:
        return "too few rows to share among threads"
    return None


def _continues_reduction(group: Group, node: UOp) -> bool:
    """Whether a sum's only reader is, behind movements, a sum computed in this group."""
    if node.arg[0] is not ops.ADD:
        return False
    return any(
        reader.op is ops.REDUCE and reader.arg[0] is ops.ADD and reader.dtype is node.dtype and _reads(reader, node)
        for reader in group.places
    )


def _is_large_product(node: UOp) -> bool:
    """Whether this is a sum of products whose factors are read again and again, worth blocks of its own."""
    if node.op is not ops.REDUCE or node.arg[0] is not ops.ADD:
        return False
    product = _moved(node.src[0])
    elements = element_count(product.shape)
    again = elements >= LONG and product.op is ops.MUL
    return again and all(_REUSED * element_count(_moved(factor).shape) <= elements for factor in product.src)


def _is_grown(node: UOp) -> bool:
    """Whether a value is made, element by element, from a product of short rows that is much larger than its factors,
    as the scores of attention are: to make it anew takes less than to keep it."""
    elements, seen, pending = element_count(node.shape), {node}, [node]
    if elements < LONG:
        return False
    while pending and len(seen) < MAX_SEARCH:
        part = pending.pop()
        if part.op is ops.REDUCE:
            product = _moved(part.src[0])
            short = element_count(product.shape) <= _SHORT * elements and element_count(part.shape) >= elements
            if short and _is_large_product(part):
                return _GROWN * sum(element_count(_moved(factor).shape) for factor in product.src) <= elements
        elif is_elementwise(part) or part.op in ops.MOVEMENT:
            fresh = [source for source in part.src if source not in seen]
            seen.update(fresh)
            pending += fresh
    return False


def _sums_up_grown(node: UOp) -> bool:
    """Whether a value is made of reductions of such a value; a kernel that makes this anyway is found for it later."""
    while is_elementwise(node) or node.op in ops.MOVEMENT:
        below = [source for source in node.src if source.op not in LEAVES and source.op not in ops.COMPARISONS]
        if len(below) != 1:
            return False
        (node,) = below
    return node.op is ops.REDUCE and _is_grown(node.src[0])


def _moved(node: UOp) -> UOp:
    """What a value is, behind movements and conversions."""
    while node.op in ops.MOVEMENT or node.op is ops.CAST:
        node = node.src[0]
    return node


def _reads(reader: UOp, node: UOp) -> bool:
    source = reader.src[0]
    while source.op in ops.MOVEMENT:
        source = source.src[0]
    return source is node


def _reason_to_store_elementwise(state: _State, node: UOp, wanted: Mapping[Group, Mapping[Place, None]]) -> str | None:
    facts = state.facts[node]
    elements = element_count(node.shape)
    if _enters_packing(state, node, wanted):
        return None
    above_reduce = facts.above_reduce and not (facts.chain_cost <= CHEAP and _sums_up_grown(node))
    if len(wanted) > 1 and (facts.chain_cost > CHEAP or above_reduce) and elements > 1:
        return f"several kernels want it and a recomputation costs {facts.chain_cost}"
    for group, places in wanted.items():
        if len(places) > 1 and above_reduce:
            return f"the result of a reduction, wanted at {len(places)} places"
        for place in places:
            times = group.times(place)
            if times < 2 * elements or times * 8 <= group.iterations or not facts.chain_cost:
                continue
            few = times <= _FEW_TIMES * elements or not _reads_memory(node)
            if few and facts.chain_cost <= CHEAP and not above_reduce:
                continue
            if _inside_reduction(place) or facts.chain_cost > CHEAP or above_reduce:
                return f"it would be computed {times // max(elements, 1)} times"
    return None


def _enters_packing(state: _State, node: UOp, wanted: Mapping[Group, Mapping[Place, None]]) -> bool:
    """Whether a value is computed where a product copies its factors in the order of reading.

    That is so for a cheap one, each of whose elements is copied once, that is larger than what it is made of: such as
    a matrix that is kept in few bits.
    """
    if len(wanted) > 1:
        return False
    ((group, places),) = wanted.items()
    if len(places) > 1 or group.root in state.again:
        return False
    if node not in state.packed:
        (place,) = places
        once = place.gate is None and math.prod(map(_turns, _ranges(place))) == element_count(node.shape)
        cheap = state.facts[node].chain_cost <= _PACKED_COST and not state.facts[node].depth
        if not once or not cheap or not any(_is_factor(reader, node) for reader in group.places) or not _unpacks(node):
            return False
    state.packed.update(map(_unmoved, node.src))
    return True


def _ranges(place: Place) -> frozenset[UOp]:
    return frozenset[UOp]().union(*[part.ranges for part in place.index])


def _turns(r: UOp) -> int:
    return int(r.src[0].vmax)


def _is_factor(reader: UOp, node: UOp) -> bool:
    """Whether a value is, behind movements, one factor of a large sum of products."""
    return _is_large_product(reader) and 1 == [_unmoved(f) for f in _moved(reader.src[0]).src].count(node)


def _unpacks(node: UOp) -> bool:
    """Whether a value takes more memory than all that it is made of."""
    return sum(map(_nbytes, _leaves(node))) < _nbytes(node)


def _reads_memory(node: UOp) -> bool:
    """Whether a value depends on more than positions and constants."""
    pending, seen = [node], {node}
    while pending:
        part = pending.pop()
        if _is_leaf(part):
            if part.op not in (ops.CONST, ops.IOTA):
                return True
        else:
            new = [source for source in part.src if source not in seen]
            seen.update(new)
            pending += new
    return False


def _leaves(node: UOp) -> list[UOp]:
    return [n for n in toposort(node, enter=lambda n: not _is_leaf(n)) if _is_leaf(n)]


def _is_leaf(node: UOp) -> bool:
    return node.op in LEAVES or is_reinterpretation(node)


def _nbytes(node: UOp) -> int:
    return 0 if node.op in (ops.CONST, ops.IOTA, ops.SCALAR) else element_count(node.shape) * node.dtype.itemsize


def _unmoved(node: UOp) -> UOp:
    while node.op in ops.MOVEMENT:
        node = node.src[0]
    return node


def _inside_reduction(place: Place) -> bool:
    """Whether a place varies with a range that a reduction runs through."""
    return any(r.arg[0][0] > 0 for part in place.index for r in part.ranges)


# --- hosting -----------------------------------------------------------------------------------


def _host(state: _State, node: UOp, wanted: Mapping[Group, Mapping[Place, None]]) -> tuple[Group, Place] | None:
    """A group that computes the value at exactly its own elements and may store it on the way."""
    if node.op is ops.LAUNCH:
        host = state.launches.get(launch_key(node))
        return None if host is None else (host, Place(host.ranges))
    if not state.fuse or node.op in OPAQUE or _sums_up_grown(node):
        return None
    for group, places in wanted.items():
        if len(places) == 1 and not (node.op is ops.REDUCE and group.contraction):
            (place,) = places
            if _may_store(state, group, node, wanted) and _computed_once(group, node, place):
                return group, place
    return None


def _beside(state: _State, node: UOp, wanted: Mapping[Group, Mapping[Place, None]]) -> tuple[Group, Place] | None:
    """A group that needs what is reduced anyway, row by row: it reduces the row on the way."""
    if not state.fuse or node.op is not ops.REDUCE or _is_product(node) or _sums_up_grown(node):
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


def _may_store(state: _State, group: Group, node: UOp, wanted: Iterable[Group]) -> bool:
    """Whether a group has room for another result, and may come before all that want it."""
    whole = state.whole.get(node, {})
    if group.size >= MAX_OPS or len(group.reads) + len(group.stored) >= MAX_OPERANDS:
        return False
    if group in whole or group.root in state.again or _writes_same_memory(state, group, node):
        return False
    return not any(_depends(state, group, other, node) for other in (*wanted, *whole) if other is not group)


def _is_product(node: UOp) -> bool:
    """Whether a reduction multiplies values that are read again and again: its blocks are its own."""
    product = _moved(node.src[0])
    elements = element_count(product.shape)
    return product.op is ops.MUL and any(element_count(_moved(factor).shape) < elements for factor in product.src)


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


def _writes_same_memory(state: _State, group: Group, node: UOp) -> bool:
    """Whether the group writes memory that this value also goes to: one kernel has no order among them."""
    numbers = {d.number for d in state.destinations.get(node, ())}
    return any(d.number in numbers for value in group.stored for d in state.destinations.get(value, ()))


def _computed_once(group: Group, node: UOp, place: Place) -> bool:
    """Whether the group computes each element of the value once, at its root's own ranges."""
    if place.gate is not None or _inside_reduction(place):
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


def _depends(state: _State, group: Group, other: Group, visited: UOp) -> bool:
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
