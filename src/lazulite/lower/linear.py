"""Put the nodes of a `LOOP` kernel in the order in which they are written: `LINEAR` out.

A pure node goes to the innermost loop among its free ranges, just before its first user there; loops
come before plain nodes of the same statement, so that little is alive across a loop.  `RANGE` opens
a loop, its `CARRY`s follow, its `FOR` closes it.  Operands that need no instruction are not listed:
constants, memory, scalars, and all that is known when code is written (lanes, rows, static indices).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lazulite.ir import ops
from lazulite.ir.blocks import LOOPING
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, nodes_of
from lazulite.lower.addresses import is_static

_OPERANDS = frozenset({ops.CONST, ops.PARAM, ops.SCALAR, ops.SCRATCH})
_KNOWN = (dtypes.index, dtypes.bool)
"""The types of what may be known when code is written, constants apart."""


def order(sink: UOp) -> UOp:
    """The kernel as a list of nodes."""
    blocks: dict[UOp | None, list[UOp]] = {None: []}
    carries: dict[UOp, list[UOp]] = {}
    places: dict[frozenset[UOp], list[UOp]] = {}
    for node in _walk(sink):
        op = node.op
        if op is ops.CARRY:
            carries.setdefault(node.src[0], []).append(node)
        elif op is not ops.RANGE:
            ranges = node.ranges
            if ranges not in places:
                places[ranges] = blocks.setdefault(block_of(node), [])
            places[ranges].append(node)
    return UOp(ops.LINEAR, dtypes.void, tuple(_write(blocks, carries)))


def block_of(node: UOp) -> UOp | None:
    """The range of the loop in which a node is computed; None outside all loops."""
    innermost = None
    for r in node.ranges:
        if r.arg[1] in LOOPING and (innermost is None or r.arg[0] > innermost.arg[0]):
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
    done: set[UOp] = set()
    stack: list[tuple[UOp, Iterator[UOp]]] = []
    user, pending = sink, iter(sink.src)
    while True:
        for source in pending:
            if source in done:
                continue
            done.add(source)
            op = source.op
            if op in _OPERANDS or (source.dtype in _KNOWN and is_static(source)):
                continue
            needed = _needed(source) if op in _CLOSING else source.src
            if source in heavy:
                needed = sorted(needed, key=heavy.__contains__, reverse=True)
            stack.append((user, pending))
            user, pending = source, iter(needed)
            break
        else:
            if not stack:
                return listed
            if user.op is not ops.AFTER:
                listed.append(user)
            user, pending = stack.pop()


_CLOSING = frozenset({ops.RANGE, ops.REDUCE, ops.MMA})


def _needed(node: UOp) -> Sequence[UOp]:
    """The sources of a range, or of what closes some, that are nodes of the list or lead to some."""
    if node.op is ops.RANGE:
        return () if node.arg[1] in ("lane", "row") else node.src
    return node.src[:1] if node.op is ops.REDUCE else node.src[:3]
