"""Where the memory went: `memory_report`.

Counts what this package holds: memory of tensors by what it is for, freed memory that is kept for reuse, and graph
nodes.  The bytes of nodes are an estimate from a sample; all others are exact.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from lazulite.base.terminal import size_text
from lazulite.engine.handles import live_handles
from lazulite.engine.panels import kept_bytes
from lazulite.engine.storage import with_parts
from lazulite.ir.uop import UOp, live_nodes, some_nodes
from lazulite.runtime.allocator import memory_cached, memory_in_use
from lazulite.runtime.buffer import Buffer

_SAMPLE = 500
_TRACKED = 16
"""What the garbage collector adds to an object."""
_TABLE_ENTRY = 100
"""A place in the table of nodes, about two thirds full."""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Bytes by what they are for.

    >>> report = MemoryReport(4_000_000, 1_500_000, 600_000, 0, 1_200_000, 2000)
    >>> print(report)
    weights      4.00 MB
    activations  1.50 MB
    panels       600.00 KB
    cache        0 B
    graph        1.20 MB  in 2000 nodes
    total        7.30 MB
    """

    weights: int
    """Tensors with `requires_grad`, and those that hold data from the host or a creation."""
    activations: int
    """All other memory of tensors."""
    panels: int
    """Copies of tensors in the order in which kernels read them, which the setting PANELS bounds."""
    cache: int
    """Freed memory, kept for reuse."""
    graph: int
    """Graph nodes, by estimate."""
    nodes: int
    """How many of them."""

    @property
    def total(self) -> int:
        return self.weights + self.activations + self.panels + self.cache + self.graph

    def __str__(self) -> str:
        names = ("weights", "activations", "panels", "cache", "graph", "total")
        sizes = [size_text(getattr(self, name)) for name in names]
        rows = [f"{name:12s} {size}" for name, size in zip(names, sizes, strict=True)]
        rows[4] += f"  in {self.nodes} nodes"
        return "\n".join(rows)


def memory_report() -> MemoryReport:
    """The memory that tensors, free lists and graphs take now.

    >>> from lazulite import Tensor
    >>> before, x = memory_report(), Tensor([1.0] * 1000)
    >>> memory_report().weights - before.weights
    4000
    """
    weights: dict[Buffer, None] = {}
    for handle in live_handles():
        for storage in with_parts([] if handle.storage is None else [handle.storage]):
            buffer = storage.buffer
            if buffer is not None and not buffer.borrowed and (handle.requires_grad or handle.leaf):
                weights[buffer.base] = None
    held = sum([buffer.nbytes for buffer in weights])
    nodes, panels = live_nodes(), kept_bytes()
    others = max(memory_in_use() - held - panels, 0)
    return MemoryReport(held, others, panels, memory_cached(), nodes * _bytes_of_a_node(), nodes)


def _bytes_of_a_node() -> int:
    """The mean over some nodes: the object, its tuples, its entry in the table."""
    sample = some_nodes(_SAMPLE)
    return sum(map(_size, sample)) // max(len(sample), 1)


def _size(node: UOp) -> int:
    parts: list[object] = [node, node.src, (node.op, node.dtype, node.src, node.arg)]
    if isinstance(node.arg, tuple):
        parts.append(node.arg)
    return sum([sys.getsizeof(part) + _TRACKED for part in parts]) + _TABLE_ENTRY
