"""From pure values to writes of memory.

In the graph a write is a value.  Here an output with a target becomes one or more stores into the
target's memory, in program order: a chain of WRITEs that starts from the target's own contents
stores only the written regions, anything else stores the whole.  `in_place_conflict` says whether a
kernel may write memory that it reads.  What lies in memory after a store of a region is a value too, a WRITE;
who reads it may load it from there (`Store.contents`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lazulite.analysis.access import may_overlap
from lazulite.analysis.kinds import HERE, LEAVES
from lazulite.analysis.regions import Region, apply_region
from lazulite.ir import ops
from lazulite.ir.launches import in_turn
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.groups import Destination, element_count
from lazulite.schedule.prepare import uniform


@dataclass(frozen=True, slots=True)
class Store:
    """A value and the memory it goes to."""

    value: UOp
    destination: Destination
    contents: UOp | None = None
    """The WRITE that is then in the memory, where the store fills a region of it."""


def stores_of(value: UOp, target: UOp | None, number: int) -> list[Store]:
    """The stores that give memory `number` (the target's, if there is one) the value."""
    writes: list[_Step] = []
    previous = value
    while previous is not target:
        if previous.op is ops.WRITE and previous.arg and target is not None:
            writes.append((previous.arg, previous.src[1], previous))
            previous = previous.src[0]
        elif previous.op is ops.LAUNCH:
            writes.append(((), previous, previous))
            if is_fresh(previous):
                break
            previous = previous.src[previous.arg.result]
        else:
            break
    if previous is not target or target is None:
        writes = _from_whole(value, writes)
    writes.reverse()
    stores = [
        Store(value, Destination(number, (), position))
        if target is None or not region
        else Store(_spread_to_region(target, region, value), Destination(number, region, position), contents)
        for position, (region, value, contents) in enumerate(writes)
    ]
    return [store for store in stores if 0 not in store.value.shape]


_Step = tuple[Region, UOp, UOp]
"""A write: where, what, and what the memory holds then."""


def _from_whole(value: UOp, writes: list[_Step]) -> list[_Step]:
    """The writes (last first) where the old contents are not kept: one store of the whole value, or, for a
    kernel that writes into its argument, the kernel with what follows, after a store of that argument."""
    for position in reversed(range(len(writes))):
        launch = writes[position][1]
        if not writes[position][0]:
            before = launch.src[launch.arg.result]
            filled = [] if is_fresh(launch) else [((), before, before)]
            return [*writes[: position + 1], *filled]
    return [((), value, value)]


def is_bound(value: UOp) -> bool:
    """Whether this is what a kernel leaves in the very memory that its call names."""
    return value.op is ops.LAUNCH and not value.arg.pure


def is_fresh(launch: UOp) -> bool:
    """Whether the kernel writes all of the memory that its call names, whatever was there."""
    return launch.arg.result in launch.arg.fresh


def copied(value: UOp) -> UOp:
    """What is copied from the memory in which the value lies first."""
    return UOp(ops.COPY, value.dtype, (value,), "")


def launches_in_memory(destinations: dict[UOp, list[Destination]]) -> dict[int, UOp]:
    """Give each pure launch that has no destination memory of its own: its number, below zero, and what it holds.

    A launch begins with what its source holds: a source that nobody else reads is computed right there.
    """
    hidden: dict[int, UOp] = {}
    nodes = toposort(*destinations)
    users = _users(nodes)
    for node in reversed(nodes):
        if node.op is not ops.LAUNCH or not node.arg.pure:
            continue
        for result in _results(node):
            if result not in destinations:
                number = -1 - len(hidden)
                hidden[number] = result
                for sequence, value in enumerate(_chain_in_memory(result, destinations, users)):
                    destinations.setdefault(value, []).append(Destination(number, (), sequence))
    return hidden


def _users(nodes: Sequence[UOp]) -> dict[UOp, set[object]]:
    """Who reads each node; the results of one launch count once."""
    users: dict[UOp, set[object]] = {}
    for node in nodes:
        user = (node.src, node.arg._replace(result=-1)) if node.op is ops.LAUNCH else node
        for source in node.src:
            users.setdefault(source, set()).add(user)
    return users


def _results(launch: UOp) -> Iterator[UOp]:
    """All that the kernel of a launch leaves, whether anybody asks for it or not."""
    for i in launch.arg.writes:
        yield UOp(ops.LAUNCH, launch.src[i].dtype, launch.src, launch.arg._replace(result=i))


def _chain_in_memory(
    launch: UOp, destinations: dict[UOp, list[Destination]], users: dict[UOp, set[object]]
) -> list[UOp]:
    """What one memory holds in turn until it holds the result of a launch."""
    chain = [launch]
    while chain[-1].op is ops.LAUNCH and not is_fresh(chain[-1]):
        sources = chain[-1].src
        before = sources[chain[-1].arg.result]
        read_too = len(users[before]) > 1 or sources.count(before) > 1
        if before in destinations or before.op in LEAVES or read_too:
            row = UOp(ops.RESHAPE, before.dtype, (before,), (element_count(before.shape),))
            # A copy of a view, so that no other copy of the value is read here; what is one number is written again.
            before = UOp(ops.COPY, row.dtype, (row,), HERE) if uniform(before) is None else row
        chain.append(before)
    return chain[::-1]


def _spread_to_region(target: UOp, region: Region, value: UOp) -> UOp:
    """A rank-0 value fills the region."""
    if value.shape:
        return value
    shape = apply_region(target, region).shape
    return value if not shape else UOp(ops.EXPAND, value.dtype, (value,), shape)


def in_place_conflict(sink: UOp, slots: Sequence[int]) -> bool:
    """Whether a kernel that writes these argument slots reads them other than at the element it writes.

    Each load must be at the index of the store and part of the stored value, so that it comes first, or
    of elements that are never written.  Memory that is taken in turn has no such conflict.
    """
    serial = {memory.arg[0] for memory in in_turn(sink)}
    for slot in slots:
        if slot in serial:
            continue
        stores = [s for s in sink.src if _is_of(s, slot)]
        loads = [n for n in toposort(sink) if n.op is ops.LOAD and _is_of(n, slot)]
        if not loads:
            continue
        if len(stores) != 1:
            return True
        index, cone = stores[0].src[1], set(toposort(stores[0].src[2]))
        if any((load not in cone or load.src[1] is not index) and may_overlap(load.src[1], index) for load in loads):
            return True
    return False


def _is_of(access: UOp, slot: int) -> bool:
    """Whether a load or store is one of the memory in a slot."""
    memory = access.src[0]
    return memory.op is ops.PARAM and bool(memory.arg[0] == slot)
