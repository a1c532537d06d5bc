"""Sums that are made block by block: partial results wait in the memory that the kernel writes.

Takes the kernel after its schedule steps.  A `REDUCE` whose range has been ordered outside of loops that its
value varies with cannot keep its state in registers.  Each turn of that range then adds the partial sum of its
block to what the turns before have left in the place of the result, and the last one stores what the
kernel makes of the total.  Gives the same kernel with no such range in a `REDUCE`.  The sum of a block is complete
before it is added, so a sum of blocks is more exact than one long chain.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.uop import UOp, nodes_of, substitute
from lazulite.kernel.partial_sums import blocks_of, partial_sums
from lazulite.simplify.boolean import all_of


def accumulate(sink: UOp) -> UOp:
    """The kernel with every such sum as a partial one."""
    if not any(blocks_of(node) for node in nodes_of(sink) if node.op is ops.REDUCE):
        return sink
    return sink.replace(src=tuple([_accumulated(store) for store in sink.src]))


def _accumulated(store: UOp) -> UOp:
    found = partial_sums(store)
    if not found:
        return store
    ((node, blocks),) = found
    memory, place = store.src[:2]
    first, last = all_of(r.eq(0) for r in blocks), all_of(r.eq(r.src[0] + -1) for r in blocks)
    before = UOp(ops.LOAD, node.dtype, (memory, place, all_of([*store.src[3:], ~first])))
    rest = [r for r in node.src[1:] if r not in blocks]
    part = node.replace(src=(node.src[0], *rest)) if rest else node.src[0]
    total = UOp.apply(node.arg[0], before, part)
    (value,) = substitute([store.src[2]], {node: total})
    return store.replace(src=(memory, place, value if value is total else last.where(value, total), *store.src[3:]))
