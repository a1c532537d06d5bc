"""Which loop each node of a kernel belongs to.

`nest` turns a graph of the `LOOP` language into a tree of blocks: a pure node stands in the block of
the innermost loop among its free ranges, an effect in the loop that lists it, and a loop stands where
it is needed.  `nest_linear` reads the same tree off a `LINEAR` list.  Within a block sources precede
users, and what does not depend on an effect precedes every effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lazulite.ir import ops
from lazulite.ir.uop import UOp, toposort

LOOPING = ("loop", "parallel")
REGISTERS = frozenset({"lane", "row", "unit"})
"""The kinds of ranges that loops run through, and of those that values hold in registers as a whole."""


@dataclass(slots=True, eq=False)
class Block:
    """A loop over `range` that ends with `closer` (a FOR or a REDUCE); the outermost block has neither."""

    range: UOp | None = None
    closer: UOp | None = None
    items: list[UOp | Block] = field(default_factory=list)


def is_looping(node: UOp) -> bool:
    """Whether this RANGE is run through by a loop, not held in lanes or rows."""
    return node.op is ops.RANGE and node.arg[1] in LOOPING


def memory_of(node: UOp) -> UOp:
    """The memory that is accessed, whatever has to be done before."""
    while node.op is ops.AFTER:
        node = node.src[0]
    return node


def effects_of(loop: UOp) -> tuple[UOp, ...]:
    """The effects that a FOR lists."""
    return loop.src[1 + loop.arg :]


def yields_of(loop: UOp) -> tuple[UOp, ...]:
    """The next value of each state of a FOR."""
    return loop.src[1 : 1 + loop.arg]


def closed_ranges(node: UOp) -> tuple[UOp, ...]:
    """The looping ranges that a FOR or REDUCE ends."""
    if node.op is ops.FOR:
        return node.src[:1]
    return tuple([r for r in node.src[1:] if is_looping(r)]) if node.op is ops.REDUCE else ()


def has_open_loops(root: UOp) -> bool:
    """Whether a SINK is in `KERNEL`: its statements and reductions run over ranges without a FOR of their own."""
    if any(is_looping(r) for r in root.ranges):
        return True
    return any(node.op is ops.REDUCE and closed_ranges(node) for node in toposort(root))


def loops_of(nodes: Iterable[UOp], reduces: bool = True) -> dict[UOp, UOp]:
    """Each looping range that is closed, with the FOR (or REDUCE) that closes it."""
    closers = [node for node in nodes if node.op is ops.FOR or (reduces and node.op is ops.REDUCE)]
    return {r: closer for closer in closers for r in closed_ranges(closer)}


def nest(roots: Sequence[UOp], loops: Mapping[UOp, UOp]) -> Block:
    """The tree of blocks of everything that the roots reach; `loops` is what `loops_of` gives."""
    order = toposort(*roots)
    outermost = Block()
    blocks = {r: Block(r, closer) for r, closer in loops.items()}
    listed = {e: blocks[n.src[0]] for n in order if n.op is ops.FOR and n.src[0] in loops for e in effects_of(n)}
    closing = set(loops.values())
    for node in order:
        inner = [r for r in node.ranges if r in blocks]
        home = blocks[max(inner, key=lambda r: r.arg[0])] if inner else listed.get(node, outermost)
        if node not in closing:
            home.items.append(node)
            continue
        for r in closed_ranges(node):
            home.items.append(blocks[r])
            home = blocks[r]
    _effects_last([outermost, *blocks.values()], order)
    return outermost


def _effects_last(blocks: Iterable[Block], order: Iterable[UOp]) -> None:
    """A read that is not ordered after a write of its block precedes it."""
    late: set[UOp] = set()
    for node in order:
        if node.op is ops.STORE or any(source in late for source in node.src):
            late.add(node)
    for block in blocks:
        block.items.sort(key=lambda item: (item.closer if isinstance(item, Block) else item) in late)


def nest_linear(linear: UOp) -> Block:
    """The tree of blocks of a LINEAR list, each node where it stands."""
    stack = [Block()]
    for node in linear.src:
        if is_looping(node):
            block = Block(node)
            stack[-1].items.append(block)
            stack.append(block)
        elif node.op is ops.FOR:
            if stack[-1].range is not node.src[0]:
                raise ValueError(f"{node!r} closes a loop that is not the innermost open one")
            stack.pop().closer = node
        else:
            stack[-1].items.append(node)
    if len(stack) > 1:
        raise ValueError(f"the loop over {stack[-1].range!r} is never closed")
    return stack[0]
