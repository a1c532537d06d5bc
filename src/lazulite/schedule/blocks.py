"""Block fusion: kernels that run one after another on the same rows become one kernel.

Takes kernels in order and gives fewer.  An intermediate goes where its only reader is if both walk it in the
same outer ranges: each turn of those writes and reads one block of it and no other.  The block then
lies in scratch memory, which a thread fills and empties turn after turn, and the whole never exists.
So `softmax(q @ k.T) @ v` is one kernel over heads and rows, and no value changes.

A value with several readers is made anew in each of them, if fusion says that this takes less than to keep it, as it
does of scores that gradients want again: these never exist as a whole either.  What sums up such a value is stored
by the first kernel that makes it; readers that walk it in the same blocks become one kernel, as those for the
gradients of keys and values.

It pays where a contraction writes or reads the intermediate, where many turns are left for threads, and
where what every block reads anew stays in the cache.  A block that is too long for the cache may be made and used
strip by strip (`kernel/strips.py`), if no result is as long.  The reasons are kept with the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

from lazulite.analysis.contraction import contraction
from lazulite.analysis.kinds import FEW_ROWS
from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp, substitute, toposort
from lazulite.schedule.cuts import Cut, cut_beside, cut_of, extent_of, vanishes
from lazulite.schedule.groups import Decision
from lazulite.schedule.kernel_list import KernelList, only_intermediate
from lazulite.schedule.kernels import Argument, Kernel

ALIGNMENT = 64
_BLOCK = 32
"""How many rows are worked on at a time where they share an operand: enough to read it from a near cache."""
_LONG = 512
"""Products in a sum from which on blocks of its own save more time than a trip of its results through memory takes."""
_OWN_ORDER = 2
"""The ranges of a statement in scratch memory come after those of the kernel it moves into."""


def fuse_blocks(kernels: Sequence[Kernel], cache: int, again: Collection[UOp] = ()) -> list[Kernel]:
    """The kernels, in order, with every intermediate that can be in scratch memory there.

    `cache` is how many bytes a thread has near it.  Values of `again` are made anew by each kernel that reads them,
    if that way none has to be stored.
    """
    left = KernelList(kernels)
    for position, producer in reversed(list(enumerate(kernels))):
        node = only_intermediate(producer)
        if node is None:
            continue
        if node in again:
            _put_side_by_side(left, node)
        readers = sorted(left.readers.get(node, ()))
        made_again = [left.kernels[reader] for reader in readers if only_intermediate(left.kernels[reader]) in again]
        if (len(readers) == 1 and not made_again) or (readers and node in again):
            _join(left, position, readers, node, cache, node in again)
        elif any(memory in again for memory in producer.reads):
            _host(left, position, node, again)
    return [kernel for _, kernel in sorted(left.kernels.items())]


def _join(left: KernelList, position: int, readers: Sequence[int], node: UOp, cache: int, again: bool) -> None:
    """Put the work of a kernel into all kernels that read its value, or into none."""
    producer, done = left.kernels[position], []
    for reader in readers:
        contractions = left.contractions(position, reader)
        if not (contractions or again) or left.is_disturbed(position, reader):
            return
        joined = _joined(producer, left.kernels[reader], node, contractions, cache, again)
        if joined is None:
            return
        done.append((reader, joined))
    left.join(position, done)


def _host(left: KernelList, position: int, node: UOp, again: Collection[UOp]) -> None:
    """Have a reader of a value compute and store it, as it makes what both of them read; all others come later."""
    producer = left.kernels[position]
    for reader in sorted(left.readers[node]):
        kernel = left.kernels[reader]
        if any(memory in again for memory in producer.reads & kernel.reads) and left.can_move(reader, position):
            block = cut_of(producer.sink.src[0], _loads_of(kernel, node), kernel.sink)
            if block is not None and block.elements == 1:
                left.move(reader, position, _merged(producer, kernel, node, block, stored=True))
                return


def _put_side_by_side(left: KernelList, node: UOp) -> None:
    """Make one kernel of those that read a value in the same blocks, so that it is made once for both."""
    readers = sorted(left.readers.get(node, ()))
    for last in reversed(readers):
        for first in readers:
            if first < last and first in left.kernels and last in left.kernels:
                _beside(left, first, last, node)


def _beside(left: KernelList, first: int, last: int, node: UOp) -> None:
    """Have a kernel also compute what an earlier one stores, block by block, if both read the value alike."""
    one, other = left.kernels[first], left.kernels[last]
    if len(one.sink.src) != 1 or len(one.sink.src[0].src) != 3:
        return
    if left.is_needed(first, last) or left.is_disturbed(first, last):
        return
    block = cut_beside(one.sink.src[0], other.sink, _loads_of(one, node), _loads_of(other, node))
    if block is not None:
        left.join(first, [(last, _merged(one, other, one.group.root, block, stored=True))])


def _joined(
    producer: Kernel, reader: Kernel, node: UOp, contractions: Sequence[UOp], cache: int, again: bool
) -> Kernel | None:  # fmt: skip
    """The reader with the producer's work, which is the value `node`, in it, where that is possible and pays."""
    loads = _loads_of(reader, node)
    block = cut_of(producer.sink.src[0], loads, reader.sink, across=again)
    if block is None or (again and block.elements == 1):
        return None
    gone = vanishes(loads, reader.sink, block)
    if not (gone and _has_blocks(block) if again else _pays(producer, reader, contractions, block, cache, gone)):
        return None
    return _merged(producer, reader, node, block)


def _loads_of(reader: Kernel, node: UOp) -> list[UOp]:
    return [n for n in toposort(reader.sink) if n.op is ops.LOAD and reader.memory_of(n) is node]


# --- whether it pays ---------------------------------------------------------------------------


def _has_blocks(block: Cut) -> bool:
    """Whether blocks of rows leave enough work for threads to share."""
    return block.turns // min(_BLOCK, extent_of(list(block.shared)[-1])) >= FEW_ROWS


def _pays(
    producer: Kernel, reader: Kernel, contractions: Sequence[UOp], block: Cut, cache: int, gone: bool
) -> bool:  # fmt: skip
    (store,) = producer.sink.src
    size = block.elements * store.src[2].dtype.itemsize
    if block.turns < FEW_ROWS:
        return False
    own = [n for n in toposort(store) if contraction(n) is not None]
    if any(map(_is_long, own)):
        return False
    again = _operand_bytes(contractions, block)
    if not again:
        return size <= cache // 2
    in_strips = gone and max(again, 2 * size * _BLOCK) > cache // 2
    rows = min(2 * _BLOCK if in_strips else _BLOCK, extent_of(list(block.shared)[-1]))
    more = _operand_bytes(own, block) if _scratches(reader.sink) else again  # it runs in blocks as it is
    near = again <= cache // 2 or more * (block.turns // rows) <= 4 * size * block.turns
    fits = in_strips or size * rows <= cache // 2
    return near and fits and _has_blocks(block)


def _is_long(product: UOp) -> bool:
    """Whether so many products are added that their partial sums had better wait in memory, and other blocks be
    chosen than those of rows."""
    return math.prod(map(extent_of, product.src[1:])) >= _LONG


def _operand_bytes(contractions: Sequence[UOp], block: Cut) -> int:
    """How much contractions read that is the same for all rows of a block."""
    inner = {list(block.shared)[-1], list(block.shared.values())[-1]}
    loads = dict.fromkeys(n for c in contractions for n in toposort(c.src[0]) if n.op is ops.LOAD)
    return sum(_size(n, block) for n in loads if n.src[0].op is ops.PARAM and n.ranges.isdisjoint(inner))


def _size(load: UOp, block: Cut) -> int:
    """The bytes that a load reads while the shared ranges stand still."""
    return math.prod(map(extent_of, load.ranges - {*block.shared, *block.shared.values()})) * load.dtype.itemsize


# --- the joined kernel -------------------------------------------------------------------------


def _merged(producer: Kernel, reader: Kernel, node: UOp, block: Cut, *, stored: bool = False) -> Kernel:
    """The reader, with loads of scratch memory that a nest of the producer's loops fills; the value is stored, too, if
    others read it."""
    filled = _filled(producer, block, _scratches(reader.sink), len(reader.arguments))
    reads = {}
    for load in _loads_of(reader, node):
        place = block.within(linear(load.src[1]), block.shared.values())
        reads[load] = UOp(ops.LOAD, load.dtype, (filled, place, *load.src[2:]))
    (sink,) = substitute([reader.sink], reads)
    if stored:
        sink = sink.replace(src=(*sink.src, _copied_out(producer, sink, block, filled, len(reader.arguments))))
    sink, arguments = _numbered(sink, [*reader.arguments, *producer.arguments])
    return replace(
        reader, sink=sink, arguments=arguments, reads=(reader.reads | producer.reads) - {node},
        writes=(*reader.writes, *(producer.writes if stored else ())),
        kept=(*producer.kept, *reader.kept, _decision(node, block)),
        groups=(*producer.groups, producer.group, *reader.groups),
    )  # fmt: skip


def _copied_out(producer: Kernel, sink: UOp, block: Cut, filled: UOp, slots: int) -> UOp:
    """A statement that stores a block, in the ranges in which the kernel's other results are stored where they fit."""
    (store,) = producer.sink.src
    free = {extent_of(r): r for r in sorted(sink.src[0].src[1].ranges.difference(block.shared.values()), key=_order)}
    table = dict(block.shared)
    for number, r in enumerate(sorted(store.src[1].ranges.difference(block.shared), key=_order)):
        own = UOp(ops.RANGE, r.dtype, r.src, ((_OWN_ORDER + len(free), number), "loop"))
        table[r] = free.pop(extent_of(r), own)
    memory = store.src[0].replace(arg=(slots + store.src[0].arg[0], *store.src[0].arg[1:]))
    place, inside = substitute([store.src[1], block.within(linear(store.src[1]), block.shared)], table)
    return UOp(ops.STORE, dtypes.void, (memory, place, UOp(ops.LOAD, filled.dtype, (filled, inside))))


def _order(r: UOp) -> tuple[int, ...]:
    return tuple(r.arg[0])


def _scratches(sink: UOp) -> int:
    return sum(node.op is ops.SCRATCH for node in toposort(sink))


def _filled(producer: Kernel, block: Cut, scratches: int, slots: int) -> UOp:
    """Scratch memory with a block of the producer's result, in the reader's ranges.

    The reader has so many pieces of scratch memory and argument slots of its own.
    """
    number = scratches + _scratches(producer.sink)
    table: dict[UOp, UOp] = dict(block.shared)
    for part in toposort(producer.sink):
        if part.op is ops.RANGE and part not in table:
            order = (_OWN_ORDER + number, *part.arg[0])
            table[part] = part.replace(src=tuple(substitute(part.src, table)), arg=(order, part.arg[1]))
        elif part.op in (ops.PARAM, ops.SCALAR):
            table[part] = part.replace(arg=(slots + part.arg[0], *part.arg[1:]))
        elif part.op is ops.SCRATCH:
            table[part] = part.replace(arg=(scratches + part.arg[0], *part.arg[1:]))
    (store,) = producer.sink.src
    scratch = UOp(ops.SCRATCH, store.src[2].dtype, (), (number, block.elements, ALIGNMENT))
    place = block.within(linear(store.src[1]), block.shared)
    (effect,) = substitute([UOp(ops.STORE, dtypes.void, (scratch, place, store.src[2]))], table)
    for r in sorted(effect.ranges.difference(block.shared.values()), key=lambda r: r.arg[0], reverse=True):
        effect = UOp(ops.FOR, dtypes.void, (r, effect), 0)
    return UOp(ops.AFTER, scratch.dtype, (scratch, effect))


def _numbered(sink: UOp, arguments: Sequence[Argument]) -> tuple[UOp, tuple[Argument, ...]]:
    """The kernel with a slot for each of the arguments that it uses, one for memory that several have."""
    slots: dict[tuple[Argument, DType], int] = {}
    table: dict[UOp, UOp] = {}
    for part in sorted((n for n in toposort(sink) if n.op in (ops.PARAM, ops.SCALAR)), key=lambda n: n.arg[0]):
        slot = slots.setdefault((arguments[part.arg[0]], part.dtype), len(slots))
        table[part] = part.replace(arg=(slot, *part.arg[1:]))
    return substitute([sink], table)[0], tuple(argument for argument, _ in slots)


def _decision(node: UOp, block: Cut) -> Decision:
    turns = "x".join(str(extent_of(r)) for r in block.shared)
    return Decision(node, "kept", f"made and used in the same {turns} turns, so one block of it at a time lies in the "
                    "scratch memory of each thread")  # fmt: skip
