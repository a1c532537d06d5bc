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

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from lazulite.analysis.contraction import contraction
from lazulite.analysis.kinds import FEW_ROWS
from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp, index, substitute, toposort
from lazulite.schedule.cuts import Cut, cut_added_up, cut_beside, cut_of, extent_of, vanishes
from lazulite.schedule.groups import Decision
from lazulite.schedule.kernel_list import KernelList, only_intermediate
from lazulite.schedule.kernels import Argument, Kernel

ALIGNMENT = 64
_BLOCK = 32
"""How many rows are worked on at a time where they share an operand: enough to read it from a near cache."""
_LONG = 512
"""Products in a sum from which on blocks of its own save more time than a trip of its results through memory takes."""
_TURNS = 8
"""How many turns are to be left for threads where those of rows follow one another."""
_ADDED = (dtypes.float32, dtypes.float64)
"""The types in which a result is a good place for a sum in the making."""
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
            _add_up_rows(left, position, node, cache)
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
    """Have one of two kernels also compute what the other stores, block by block, if both read the value alike."""
    for one, other in itertools.permutations((left.kernels[first], left.kernels[last])):
        if _is_plain(one) and left.can_unite(first, last):
            block = cut_beside(one.sink.src[0], other.sink, _loads_of(one, node), _loads_of(other, node))
            if block is not None:
                left.unite(first, last, _side_by_side(one, other, _moved(one, other, block.shared)))
                return


def _is_plain(kernel: Kernel) -> bool:
    """Whether a kernel stores one result, without a gate."""
    return len(kernel.sink.src) == 1 and len(kernel.sink.src[0].src) == 3


def _add_up_rows(left: KernelList, position: int, node: UOp, cache: int) -> None:
    """Make one kernel of two that read a value, if one adds up what the other works on row by row, and that value, made
    anew, waits in scratch memory then."""
    readers = sorted(left.readers.get(node, ()))
    if len(readers) != 2 or not left.can_unite(readers[0], readers[1]):
        return
    for one, other in itertools.permutations([left.kernels[reader] for reader in readers]):
        united = _with_sum(one, other, node, cache) if _is_plain(one) and _is_plain(other) else None
        if united is not None and _joined(left.kernels[position], united, node, (), cache, True) is not None:
            left.unite(readers[0], readers[1], united)
            return


def _with_sum(one: Kernel, other: Kernel, node: UOp, cache: int) -> Kernel | None:
    """The second kernel, which also adds up the first one's sum: its turns add to what the ones before have left.

    Turns follow one another then, so threads share the ranges around them only.  The sum and two blocks are to stay
    near.
    """
    (store,) = one.sink.src
    shared = cut_added_up(store, other.sink, _loads_of(one, node), _loads_of(other, node))
    if shared is None or store.src[2].arg[0] is not ops.ADD or store.src[2].dtype not in _ADDED:
        return None
    *around, rows = shared
    (load, *_) = _loads_of(one, node)
    near = _bytes(store, store.src[1].ranges.difference(around)) + 2 * _BLOCK * _bytes(load, load.ranges - {*shared})
    if math.prod(map(extent_of, around)) < _TURNS or near > cache:
        return None
    memory, place, total = _moved(one, other, shared).src
    turn = shared[rows]
    before = UOp(ops.LOAD, memory.dtype, (memory.after(turn), place, index(0) < turn))
    return _side_by_side(one, other, UOp(ops.STORE, dtypes.void, (memory, place, before + total.src[0])))


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
    return _bytes(load, load.ranges - {*block.shared, *block.shared.values()})


def _bytes(access: UOp, ranges: Iterable[UOp]) -> int:
    """What an access to memory touches in all turns of these ranges."""
    return math.prod(map(extent_of, ranges)) * access.src[0].dtype.itemsize


# --- the joined kernel -------------------------------------------------------------------------


def _merged(producer: Kernel, reader: Kernel, node: UOp, block: Cut, *, stored: bool = False) -> Kernel:
    """The reader with the producer's work in it; the value is stored, too, if others read it.

    A load gives way to the value where the reader walks it as it is made; else the value waits in scratch memory.
    """
    loads = _loads_of(reader, node)
    alike = None if stored else _walked_alike(producer, reader, loads, block)
    store = _moved(producer, reader, block.shared if alike is None else alike)
    if alike is not None:
        (sink,) = substitute([reader.sink], dict.fromkeys(loads, store.src[2]))
    else:
        filled = _filled(producer, reader, store, block)
        (sink,) = substitute([reader.sink], {load: _read(load, filled, block) for load in loads})
        if stored:
            sink = sink.replace(src=(*sink.src, _copied_out(store, sink, filled, block)))
    return replace(
        _joint(producer, reader, sink), reads=(reader.reads | producer.reads) - {node},
        writes=(*reader.writes, *(producer.writes if stored else ())),
        kept=(*producer.kept, *reader.kept, _decision(node, block, alike is None)),
    )  # fmt: skip


def _side_by_side(one: Kernel, other: Kernel, store: UOp) -> Kernel:
    """The second kernel, which also stores what the first one does, by this statement."""
    sink = other.sink.replace(src=(*other.sink.src, store))
    return replace(
        _joint(one, other, sink), reads=one.reads | other.reads, writes=(*other.writes, *one.writes),
        kept=(*one.kept, *other.kept),
    )  # fmt: skip


def _joint(producer: Kernel, reader: Kernel, sink: UOp) -> Kernel:
    """What the reader becomes with this work, which speaks of the arguments of both."""
    sink, arguments = _numbered(sink, [*reader.arguments, *producer.arguments])
    groups = (*producer.groups, producer.group, *reader.groups)
    return replace(reader, sink=sink, arguments=arguments, groups=groups)


def _walked_alike(producer: Kernel, reader: Kernel, loads: Sequence[UOp], block: Cut) -> dict[UOp, UOp] | None:
    """The reader's range for each of the ranges in which a value is made, if it reads each element once: to store what
    it makes of it, or to combine that, if no sum is made for each element."""
    if len(loads) != 1 or len(loads[0].src) > 2:
        return None
    walked = {stride: r for r, stride in linear(loads[0].src[1]).terms.items()}
    inner = {r: walked.get(stride) for r, stride in linear(producer.sink.src[0].src[1]).terms.items()
             if r not in block.shared}  # fmt: skip
    found = {r: p for r, p in inner.items() if p is not None and p.op is ops.RANGE and p.src[0] is r.src[0]}
    alike = found and len(found) == len(inner) and len(walked) == len(loads[0].src[1].ranges)
    if not alike or not _is_read_once(producer, reader, frozenset(found.values()), frozenset(block.shared.values())):
        return None
    return {**block.shared, **found}


def _is_read_once(producer: Kernel, reader: Kernel, own: frozenset[UOp], shared: frozenset[UOp]) -> bool:
    """Whether what runs over these ranges of the reader runs over the shared ones and no others, and adds up no sum."""
    sums = any(node.op is ops.REDUCE for node in toposort(producer.sink))
    for node in toposort(reader.sink):
        if node.op is ops.REDUCE or node.op is ops.STORE:
            ranges = node.src[node.op is ops.STORE].ranges
            if not own.isdisjoint(ranges) and (own != ranges - shared or (sums and node.op is ops.REDUCE)):
                return False
    return True


def _moved(producer: Kernel, reader: Kernel, ranges: Mapping[UOp, UOp]) -> UOp:
    """The producer's store with these ranges of the reader in place of its own.

    All other ranges, arguments and scratch memory are numbered behind those of the reader.
    """
    table = dict(ranges)
    slots, scratches = len(reader.arguments), _scratches(reader.sink)
    first = max([_OWN_ORDER, *[1 + r.arg[0][0] for r in toposort(reader.sink) if r.op is ops.RANGE]])
    for part in toposort(producer.sink):
        if part.op is ops.RANGE and part not in table:
            own = ((first, *part.arg[0]), part.arg[1])
            table[part] = part.replace(src=tuple(substitute(part.src, table)), arg=own)
        elif part.op in (ops.PARAM, ops.SCALAR):
            table[part] = part.replace(arg=(slots + part.arg[0], *part.arg[1:]))
        elif part.op is ops.SCRATCH:
            table[part] = part.replace(arg=(scratches + part.arg[0], *part.arg[1:]))
    return substitute(producer.sink.src, table)[0]


def _filled(producer: Kernel, reader: Kernel, store: UOp, block: Cut) -> UOp:
    """Scratch memory with a block of the value that the producer stores, by this store among the reader's ranges."""
    number = _scratches(reader.sink) + _scratches(producer.sink)
    scratch = UOp(ops.SCRATCH, store.src[2].dtype, (), (number, block.elements, ALIGNMENT))
    place = block.within(linear(store.src[1]), block.shared.values())
    effect = UOp(ops.STORE, dtypes.void, (scratch, place, store.src[2]))
    for r in sorted(effect.ranges.difference(block.shared.values()), key=_order, reverse=True):
        effect = UOp(ops.FOR, dtypes.void, (r, effect), 0)
    return UOp(ops.AFTER, scratch.dtype, (scratch, effect))


def _read(load: UOp, filled: UOp, block: Cut) -> UOp:
    """What a load of the value reads in scratch memory."""
    place = block.within(linear(load.src[1]), block.shared.values())
    return UOp(ops.LOAD, load.dtype, (filled, place, *load.src[2:]))


def _copied_out(store: UOp, sink: UOp, filled: UOp, block: Cut) -> UOp:
    """A statement that stores a block, in the ranges in which the kernel's other results are stored where they fit."""
    shared = block.shared.values()
    free = {extent_of(r): r for r in sorted(sink.src[0].src[1].ranges.difference(shared), key=_order)}
    own = sorted(store.src[1].ranges.difference(shared), key=_order)
    table = {r: free.pop(extent_of(r)) for r in own if extent_of(r) in free}
    place, inside = substitute([store.src[1], block.within(linear(store.src[1]), shared)], table)
    return UOp(ops.STORE, dtypes.void, (store.src[0], place, UOp(ops.LOAD, filled.dtype, (filled, inside))))


def _scratches(sink: UOp) -> int:
    return sum(node.op is ops.SCRATCH for node in toposort(sink))


def _order(r: UOp) -> tuple[int, ...]:
    return tuple(r.arg[0])


def _numbered(sink: UOp, arguments: Sequence[Argument]) -> tuple[UOp, tuple[Argument, ...]]:
    """The kernel with a slot for each of the arguments that it uses, one for memory that several have."""
    slots: dict[tuple[Argument, DType], int] = {}
    table: dict[UOp, UOp] = {}
    for part in sorted((n for n in toposort(sink) if n.op in (ops.PARAM, ops.SCALAR)), key=lambda n: n.arg[0]):
        slot = slots.setdefault((arguments[part.arg[0]], part.dtype), len(slots))
        table[part] = part.replace(arg=(slot, *part.arg[1:]))
    return substitute([sink], table)[0], tuple(argument for argument, _ in slots)


def _decision(node: UOp, block: Cut, waits: bool) -> Decision:
    turns = "x".join(str(extent_of(r)) for r in block.shared)
    where = "lies in the scratch memory of each thread" if waits else "is used as it is made"
    return Decision(node, "kept", f"made and used in the same {turns} turns, so one block of it at a time {where}")
