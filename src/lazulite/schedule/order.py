"""The order of kernels: values before their readers, readers of old contents before the write.

Takes kernels and gives them in an order that meets every edge, or the destinations whose write
cannot be placed: those are then computed aside and copied in at the end.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import pairwise

from lazulite.ir import ops
from lazulite.ir.uop import UOp
from lazulite.schedule.fuse import Fusion, is_reinterpretation
from lazulite.schedule.groups import Destination
from lazulite.schedule.kernels import Kernel


def order(fusion: Fusion, kernels: Sequence[Kernel]) -> tuple[list[Kernel], set[int]]:
    """The kernels in order, and the numbers of the destinations that stand in a cycle (then no order)."""
    edges = _edges(fusion, kernels)
    waiting = [0] * len(kernels)
    for successors in edges:
        for successor in successors:
            waiting[successor] += 1
    # Later groups lie nearer the leaves: taking the largest number first keeps producers early.
    ready = [-k for k, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    result: list[Kernel] = []
    while ready:
        current = -heapq.heappop(ready)
        result.append(kernels[current])
        for successor in edges[current]:
            waiting[successor] -= 1
            if not waiting[successor]:
                heapq.heappush(ready, -successor)
    stuck = {
        memory
        for k, kernel in enumerate(kernels)
        if waiting[k]
        for memory, _ in kernel.writes
        if isinstance(memory, int)
    }
    return result, stuck if len(result) < len(kernels) else set()


def _edges(fusion: Fusion, kernels: Sequence[Kernel]) -> list[set[int]]:
    """For each kernel, those that must come after it."""
    number = {kernel.group: position for position, kernel in enumerate(kernels)}
    edges: list[set[int]] = [set() for _ in kernels]
    old_readers: dict[tuple[int, int], set[int]] = {}
    """By memory and how many of its writes come before the contents that are read."""
    for position, kernel in enumerate(kernels):
        for node in kernel.group.reads:
            source = _source(node)
            writer = fusion.writer.get(source)
            if writer is not None and writer is not kernel.group:
                edges[number[writer]].add(position)
                for destination in _home(fusion, source):
                    old_readers.setdefault((destination.number, destination.sequence + 1), set()).add(position)
            elif source.op is ops.PARAM:
                old_readers.setdefault((int(source.arg[0]), 0), set()).add(position)
    for memory, writers in _writers(kernels).items():
        for earlier, later in pairwise(writers):
            edges[earlier].add(later)
        for sequence, writer_position in enumerate(writers):
            for reader in old_readers.get((memory, sequence), set()) - {writer_position}:
                edges[reader].add(writer_position)
    return edges


def _home(fusion: Fusion, node: UOp) -> Sequence[Destination]:
    """The destination in which a stored value is read (`kernels.memory_of`), if it is read in one."""
    return [d for d in fusion.destinations.get(node, ()) if not d.region][:1]


def _writers(kernels: Sequence[Kernel]) -> dict[int, list[int]]:
    """For each destination the kernels that write it, in program order."""
    writers: dict[int, list[tuple[int, int]]] = {}
    for position, kernel in enumerate(kernels):
        for memory, sequence in kernel.writes:
            if isinstance(memory, int):
                writers.setdefault(memory, []).append((sequence, position))
    return {memory: [position for _, position in sorted(found)] for memory, found in writers.items()}


def _source(node: UOp) -> UOp:
    """What a read node lies in."""
    while is_reinterpretation(node):
        node = node.src[0]
    return node
