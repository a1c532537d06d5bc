"""Reductions whose range has been ordered outside of loops that their value varies with.

Such a reduction is made block by block (`lower/accumulate.py`): its partial results wait in the memory that the kernel
writes.  Here is what that asks of a kernel with its final ranges.
"""

from __future__ import annotations

from collections.abc import Iterable

from lazulite.base.errors import StageError
from lazulite.ir import ops
from lazulite.ir.blocks import is_looping
from lazulite.ir.uop import UOp, toposort


def blocks_of(node: UOp) -> list[UOp]:
    """The ranges of a reduction that lie outside of a loop that its value varies with."""
    innermost = max([r.arg[0] for r in node.ranges if is_looping(r)], default=(-1,))
    return [r for r in node.src[1:] if is_looping(r) and r.arg[0] < innermost]


def partial_sums(store: UOp) -> list[tuple[UOp, list[UOp]]]:
    """The reductions of a statement that are made block by block, with the ranges of their blocks."""
    return _blocked(toposort(store))


def _blocked(nodes: Iterable[UOp]) -> list[tuple[UOp, list[UOp]]]:
    return [(node, blocks) for node in nodes if node.op is ops.REDUCE and (blocks := blocks_of(node))]


def check_partial_sums(sink: UOp, nodes: Iterable[UOp]) -> None:
    """Raise unless every such reduction of a kernel, whose nodes these are, can wait in the memory of its statement."""
    if not _blocked(nodes):
        return
    for store in sink.src:
        inside = toposort(store)
        found = _blocked(inside)
        if found and not (len(found) == 1 and _can_wait(store, inside, found[0][0])):
            raise StageError("kernel.steps", "a reduction stands outside a loop that its value varies with, "
                             "and its partial results cannot wait in the memory of the result")  # fmt: skip


def _can_wait(store: UOp, inside: Iterable[UOp], node: UOp) -> bool:
    """The memory holds the reduction's type, is not read otherwise, and has a place for each of its values."""
    read = any(n.op is ops.LOAD and n.src[0] is store.src[0] for n in inside)
    feeds = any(n.op is ops.REDUCE and n is not node and node in toposort(n) for n in inside)
    plain = all(map(is_looping, node.src[1:])) and node.ranges <= store.src[1].ranges
    return plain and not read and not feeds and node.dtype is store.src[0].dtype
