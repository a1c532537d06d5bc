"""The order of kernels: values before their readers, readers of old contents before what replaces them.

Takes kernels and gives them in an order that meets every edge.  Where there is none, it names the writes
to move aside (`Ordering.aside`): what they store is then computed into memory of its own first, and copied to
its place later.  Of each cycle those that are copied most cheaply are named, and no more than it takes.
Edges for contents that a write replaces are drawn only where the elements may be the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from lazulite.analysis.access import Footprint, footprint
from lazulite.ir import ops
from lazulite.ir.dtype import DType
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.fusion import Fusion, source_of
from lazulite.schedule.groups import Destination, element_count
from lazulite.schedule.kernels import Kernel
from lazulite.schedule.versions import is_bound

Write = tuple[int, int]
"""A destination's number, and the place of the write among those of its memory."""
End = tuple[int, Write | None]
"""Where an edge begins or ends: the work of a kernel (by its position), or one of its writes."""

_Elements = tuple[DType, Footprint]
"""Which elements of memory an access may name, and of which type it takes them to be."""


@dataclass(frozen=True, slots=True)
class Ordering:
    """The kernels in order; or, where there is none, what stands in the way."""

    kernels: list[Kernel]
    aside: set[Write] = field(default_factory=set)
    """Writes to move aside."""
    reread: set[int] = field(default_factory=set)
    """Memories that some kernel waits for in vain, and whose contents it can compute instead of loading them."""
    stuck: list[Kernel] = field(default_factory=list)
    """Kernels that wait for one another whatever is moved."""


def order(fusion: Fusion, kernels: Sequence[Kernel], aside: set[Write], conflicts: set[Write]) -> Ordering:
    """Order the kernels; `aside` are the writes that are copies already, `conflicts` those that will be."""
    edges = _edges(fusion, kernels)
    found = [] if conflicts else _sorted(len(kernels), edges)
    if len(found) == len(kernels):
        return Ordering([kernels[position] for position in found])
    loose, sizes = set(conflicts), _sizes(fusion)
    while cycles := _cycles(_successors(edges, loose)):
        for cycle in cycles:
            positions = {end[0] for end in cycle}
            if reread := {edge.loaded for edge in edges if edge.loaded is not None and edge.later[0] in positions}:
                return Ordering([], reread=reread)
            writes = {write for position in positions for write in kernels[position].writes}
            homes = {edge.home for edge in edges if {edge.earlier[0], edge.later[0]} <= positions}
            movable = [(size, w) for w, size in sizes.items() if w in writes | homes and w not in aside | loose]
            if not movable:
                return Ordering([], loose, stuck=[kernels[p] for p in sorted(positions)])
            loose.add(min(movable)[1])
    return Ordering([], loose)


def _sizes(fusion: Fusion) -> dict[Write, int]:
    """The bytes of each write that could be a copy; those of a hand-written kernel cannot."""
    return {
        (place.number, place.sequence): element_count(value.shape) * value.dtype.itemsize
        for value, places in fusion.destinations.items()
        if not is_bound(value)
        for place in places
    }


# --- edges ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Edge:
    """What must come before what."""

    earlier: End
    later: End
    home: Write | None = None
    """A write without which this would not be: what it stores is read there before `later` replaces it."""
    loaded: int | None = None
    """The memory of which `later` loads what `earlier` stores in a part of it."""


def _edges(fusion: Fusion, kernels: Sequence[Kernel]) -> list[_Edge]:
    """The edges between all kernels."""
    number = {kernel.group: position for position, kernel in enumerate(kernels)}
    edges: dict[_Edge, None] = {}
    readers: dict[int, dict[_Reader, None]] = {}
    """By memory, who reads it."""
    for position, kernel in enumerate(kernels):
        for node in kernel.group.reads:
            source = source_of(node)
            writer = fusion.writer.get(source)
            if writer is not None and writer is not kernel.group:
                edges[_Edge((number[writer], None), (position, None))] = None
                for home in _home(fusion, source):
                    readers.setdefault(home.number, {})[_Reader(position, home.sequence + 1, in_parts=False)] = None
            elif source.op is ops.PARAM:
                readers.setdefault(int(source.arg[0]), {})[_Reader(position, 0, in_parts=False)] = None
            elif source.op is ops.AFTER:
                memory = int(source.src[0].arg[0])
                readers.setdefault(memory, {})[_Reader(position, source.arg + 1, in_parts=True)] = None
    for memory, writers in _writers(fusion, kernels).items():
        edges |= dict.fromkeys(_edges_of_memory(memory, writers, list(readers.get(memory, {})), kernels))
    return list(edges)


@dataclass(frozen=True, slots=True)
class _Writer:
    """A write of some memory: its place among those of the memory, its kernel, and where it writes."""

    sequence: int
    position: int
    footprints: list[_Elements] | None
    """None where it is everywhere."""

    def meets(self, accesses: list[_Elements] | None) -> bool:
        """Whether something at these places may meet an element that this writes."""
        if self.footprints is None or accesses is None:
            return True
        return any(a is not b or one.meets(two) for a, one in self.footprints for b, two in accesses)


@dataclass(frozen=True, slots=True)
class _Reader:
    """A read of some memory: its kernel, and how many of the memory's writes come before what is read."""

    position: int
    since: int
    in_parts: bool
    """Whether what is read was written in parts, so that each of these writes counts; else the last of them was
    the whole, and moves with it."""


def _edges_of_memory(
    memory: int, writers: Sequence[_Writer], readers: Sequence[_Reader], kernels: Sequence[Kernel]
) -> Iterator[_Edge]:
    """The order in which memory is written, and between the writes and those who read there."""

    def end(writer: _Writer) -> End:
        return writer.position, (memory, writer.sequence)

    if not readers:
        yield from (_Edge(end(earlier), end(later)) for earlier, later in pairwise(writers))
        return
    for earlier, later in combinations(writers, 2):
        if earlier.meets(later.footprints):
            yield _Edge(end(earlier), end(later))
    for reader in readers:
        loads, work = _elements(kernels[reader.position], memory, ops.LOAD), (reader.position, None)
        home = None if reader.in_parts or not reader.since else (memory, reader.since - 1)
        for writer in writers:
            if writer.position == reader.position or not writer.meets(loads):
                continue
            if writer.sequence >= reader.since:
                yield _Edge(work, end(writer), home)
            elif reader.in_parts:
                yield _Edge(end(writer), work, loaded=memory)


def _writers(fusion: Fusion, kernels: Sequence[Kernel]) -> dict[int, list[_Writer]]:
    """The writes of each destination, in program order."""
    writers: dict[int, list[_Writer]] = {}
    for position, kernel in enumerate(kernels):
        for value in kernel.group.stored:
            for place in fusion.destinations.get(value, ()):
                where = _elements(kernel, place.number, ops.STORE) if place.region else None
                writers.setdefault(place.number, []).append(_Writer(place.sequence, position, where))
    return {memory: sorted(found, key=lambda w: w.sequence) for memory, found in writers.items()}


def _elements(kernel: Kernel, memory: int, op: Op) -> list[_Elements]:
    """Where a kernel loads from some memory, or stores to it."""
    nodes = kernel.sink.src if op is ops.STORE else toposort(kernel.sink)
    accesses = [
        n for n in nodes
        if n.op is op and n.src[0].op is ops.PARAM and kernel.arguments[n.src[0].arg[0]].memory == memory
    ]  # fmt: skip
    return [(access.src[0].dtype, footprint(access.src[1])) for access in accesses]


def _home(fusion: Fusion, node: UOp) -> Sequence[Destination]:
    """The destination in which a stored value is read (`kernels.memory_of`), if it is read in one."""
    return [d for d in fusion.destinations.get(node, ()) if not d.region][:1]


# --- orders and cycles -----------------------------------------------------------------------------


def _sorted(count: int, edges: Sequence[_Edge]) -> list[int]:
    """The positions of the kernels in order, without those that wait for a cycle.

    Later groups lie nearer the leaves: taking the largest position first keeps producers early.
    """
    waiting = [0] * count
    after: list[set[int]] = [set() for _ in range(count)]
    for edge in edges:
        earlier, later = edge.earlier[0], edge.later[0]
        if later not in after[earlier]:
            after[earlier].add(later)
            waiting[later] += 1
    ready = [-position for position, needed in enumerate(waiting) if not needed]
    heapq.heapify(ready)
    result: list[int] = []
    while ready:
        current = -heapq.heappop(ready)
        result.append(current)
        for later in after[current]:
            waiting[later] -= 1
            if not waiting[later]:
                heapq.heappush(ready, -later)
    return result


def _successors(edges: Iterable[_Edge], loose: set[Write]) -> dict[End, set[End]]:
    """The graph in which a write goes with the work of its kernel, a loose one comes some time after it."""
    found: dict[End, set[End]] = {}
    for edge in edges:
        if edge.home in loose:
            continue
        earlier, later = [end if end[1] in loose else (end[0], None) for end in (edge.earlier, edge.later)]
        for end in (earlier, later):
            found.setdefault(end, set())
            if end[1] is not None:
                found.setdefault((end[0], None), set()).add(end)
        if earlier != later:
            found[earlier].add(later)
    return found


def _cycles(after: Mapping[End, set[End]]) -> list[list[End]]:
    """The strongly connected components of more than one node."""
    before: dict[End, set[End]] = {end: set() for end in after}
    for end, successors in after.items():
        for successor in successors:
            before[successor].add(end)
    finished: list[End] = []
    seen: set[End] = set()
    for end in after:
        finished += _explored(end, after, seen)
    seen = set()
    components = [_explored(end, before, seen) for end in reversed(finished)]
    return [component for component in components if len(component) > 1]


def _explored(start: End, after: Mapping[End, set[End]], seen: set[End]) -> list[End]:
    """What can be reached and was not seen yet, each node after all that it reaches."""
    if start in seen:
        return []
    seen.add(start)
    found: list[End] = []
    stack = [(start, iter(after[start]))]
    while stack:
        end, successors = stack[-1]
        fresh = next((s for s in successors if s not in seen), None)
        if fresh is None:
            found.append(end)
            stack.pop()
        else:
            seen.add(fresh)
            stack.append((fresh, iter(after[fresh])))
    return found
