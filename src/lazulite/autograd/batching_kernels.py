"""A hand-written kernel for many examples: the same kernel in one more loop, further out than all others.

The memory of the examples lies one after another; what is the same for all is not moved.
"""

from __future__ import annotations

from collections.abc import Collection

from lazulite.ir import ops
from lazulite.ir.calls import memory_below
from lazulite.ir.uop import UOp, index, toposort


def batched_kernel(kernel: UOp, slots: Collection[int], size: int) -> UOp:
    """The kernel for `size` examples, each of which has memory of its own in these slots.

    >>> from lazulite.ir.dtype import dtypes
    >>> memory = UOp(ops.PARAM, dtypes.int32, (), (0, (3,), ""))
    >>> place = UOp.range(3, 0)
    >>> many = batched_kernel(UOp.sink(memory[place].store(place.cast(dtypes.int32))), {0}, 2)
    >>> [node.arg[1] for node in toposort(many) if node.op is ops.PARAM]
    [(6,)]
    """
    nodes = toposort(kernel)
    outermost = min([node.arg[0][0] for node in nodes if node.op is ops.RANGE], default=0) - 1
    example = UOp.range(size, outermost) if size > 1 else index(0)
    done: dict[UOp, UOp] = {}
    for node in nodes:
        src, arg = [done[source] for source in node.src], node.arg
        if node.op is ops.PARAM and arg[0] in slots:
            (elements,) = arg[1]
            arg = (arg[0], (size * elements,), *arg[2:])
        elif node.op in (ops.LOAD, ops.STORE):
            memory = memory_below(node.src[0])
            if memory is not None and memory.op is ops.PARAM and memory.arg[0] in slots:
                src[1] = example * memory.arg[1][0] + src[1]
        done[node] = UOp(node.op, node.dtype, tuple(src), arg)
        if node.op is ops.SCRATCH and example.op is ops.RANGE:  # filled anew for each example
            done[node] = done[node].after(example)
    return done[kernel]
