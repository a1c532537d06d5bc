"""Put the nodes of a `LOOP` kernel in the order in which they are written: `LINEAR` out.

A pure node goes to the innermost loop among its free ranges, just before its first user there; loops
come before plain nodes of the same statement, so that little is alive across a loop.  `RANGE` opens
a loop, its `CARRY`s follow, its `FOR` closes it.  Operands that need no instruction are not listed:
constants, memory, scalars, and all that is known when code is written (lanes, rows, static indices).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lazulite.ir import ops
from lazulite.ir.blocks import is_looping
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, nodes_of
from lazulite.lower.addresses import is_static

_OPERANDS = frozenset({ops.CONST, ops.PARAM, ops.SCALAR, ops.SCRATCH})


def order(sink: UOp) -> UOp:
    """The kernel as a list of nodes."""
    nodes = _walk(sink)
    blocks: dict[UOp | None, list[UOp]] = {None: []}
    carries: dict[UOp, list[UOp]] = {}
    for node in nodes:
        if node.op is ops.CARRY:
            carries.setdefault(node.src[0], []).append(node)
        elif node.op is not ops.RANGE:
            blocks.setdefault(block_of(node), []).append(node)
    return UOp(ops.LINEAR, dtypes.void, tuple(_write(blocks, carries)))


def block_of(node: UOp) -> UOp | None:
    """The range of the loop in which a node is computed; None outside all loops."""
    innermost = None
    for r in node.ranges:
        if is_looping(r) and (innermost is None or r.arg[0] > innermost.arg[0]):
            innermost = r
    return innermost


def _write(blocks: dict[UOp | None, list[UOp]], carries: dict[UOp, list[UOp]]) -> list[UOp]:
    written: list[UOp] = []
    stack = [iter(blocks[None])]
    closing: list[UOp] = []
    while stack:
        for node in stack[-1]:
            if node.op is ops.FOR:
                loop = node.src[0]
                written += [loop, *sorted(carries.get(loop, ()), key=lambda c: c.arg)]
                closing.append(node)
                stack.append(iter(blocks.get(loop, ())))
                break
            written.append(node)
        else:
            stack.pop()
            if closing:
                written.append(closing.pop())
    return written


def _walk(sink: UOp) -> list[UOp]:
    """What the list holds, sources before users; of a node's sources those with loops below come first."""
    heavy: set[UOp] = set()
    for node in nodes_of(sink):
        if node.op is ops.FOR or not heavy.isdisjoint(node.src):
            heavy.add(node)
    listed: list[UOp] = []
    done: set[UOp] = {sink}
    stack: list[tuple[UOp, Iterable[UOp]]] = [(sink, iter(sink.src))]
    while stack:
        node, pending = stack[-1]
        for source in pending:
            if source in done:
                continue
            done.add(source)
            if not _is_operand(source):
                needed = _needed(source)
                if source in heavy:
                    needed = sorted(needed, key=lambda s: s not in heavy)
                stack.append((source, iter(needed)))
                break
        else:
            stack.pop()
            if node.op not in (ops.AFTER, ops.SINK):
                listed.append(node)
    return listed


def _needed(node: UOp) -> Sequence[UOp]:
    """The sources that are nodes of the list or lead to some."""
    if node.op is ops.RANGE:
        return [] if node.arg[1] in ("lane", "row") else node.src
    if node.op is ops.REDUCE:
        return node.src[:1]
    if node.op is ops.MMA:
        return node.src[:3]
    return node.src


def _is_operand(node: UOp) -> bool:
    return node.op in _OPERANDS or is_static(node)
