"""Block fusion: kernels that run one after another on the same rows become one kernel.

Takes kernels in order and gives fewer.  An intermediate goes where its only reader is if both walk it in the
same outer ranges: each turn of those writes and reads one block of it and no other.  The block then
lies in scratch memory, which a thread fills and empties turn after turn, and the whole never exists.
So `softmax(q @ k.T) @ v` is one kernel over heads and rows.  Nothing is computed twice and no value changes.

It pays where a contraction writes or reads the intermediate, where many turns are left for threads, and
where what every block reads anew stays in the cache.  A block that is too long for the cache may be made and used
strip by strip (`kernel/strips.py`), if no result is as long.  The reasons are kept with the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lazulite.analysis.contraction import contraction
from lazulite.analysis.kinds import FEW_ROWS
from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp, substitute, toposort
from lazulite.schedule.groups import Decision
from lazulite.schedule.kernels import Argument, Kernel, Memory
from lazulite.simplify.terms import sum_of

ALIGNMENT = 64
_BLOCK = 32
"""How many rows are worked on at a time where they share an operand: enough to read it from a near cache."""
_LONG = 512
"""Products in a sum from which on blocks of its own save more time than a trip of its results through memory takes."""
_OWN_ORDER = 2
"""The ranges of a statement in scratch memory come after those of the kernel it moves into."""


def fuse_blocks(kernels: Sequence[Kernel], cache: int) -> list[Kernel]:
    """The kernels, in order, with every intermediate that can be in scratch memory there.

    `cache` is how many bytes a thread has near it.
    """
    left = _Left(kernels)
    for position, producer in reversed(list(enumerate(kernels))):
        node = _only_intermediate(producer)
        readers = left.readers.get(node, ())
        if node is None or len(readers) != 1:
            continue
        (reader,) = readers
        contractions = left.contractions(position, reader)
        if not contractions or left.is_disturbed(position, reader):
            continue
        joined = _joined(producer, left.kernels[reader], node, contractions, cache)
        if joined is not None:
            left.join(position, reader, joined)
    return list(left.kernels.values())


class _Left:
    """The kernels by position, with who reads and writes what."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = dict(enumerate(kernels))
        self.readers: dict[Memory | None, set[int]] = {}
        self.writers: dict[Memory, list[int]] = {}
        self._contractions: dict[UOp, list[UOp] | None] = {}
        for position, kernel in self.kernels.items():
            for memory in kernel.reads:
                self.readers.setdefault(memory, set()).add(position)
            for memory, _ in kernel.writes:
                self.writers.setdefault(memory, []).append(position)

    def is_disturbed(self, producer: int, reader: int) -> bool:
        """Whether what the producer reads is written before the reader is done."""
        reads = self.kernels[producer].reads
        return any(producer < writer <= reader for memory in reads for writer in self.writers.get(memory, ()))

    def contractions(self, *positions: int) -> list[UOp]:
        """The contractions of kernels; none where an extent varies: blocks of rows without a number are not formed."""
        found: list[UOp] = []
        for sink in [self.kernels[position].sink for position in positions]:
            if sink not in self._contractions:
                self._contractions[sink] = _contractions(sink)
            own = self._contractions[sink]
            if own is None:
                return []
            found += own
        return found

    def join(self, producer: int, reader: int, joined: Kernel) -> None:
        """Put the joined kernel where its reader was."""
        for memory in self.kernels.pop(producer).reads:
            self.readers[memory].discard(producer)
            self.readers[memory].add(reader)
        self.kernels[reader] = joined


@dataclass(frozen=True, slots=True)
class _Block:
    """How an intermediate is cut: the reader's range for each shared range of its producer, and what is left."""

    shared: Mapping[UOp, UOp]
    elements: int
    """The size of a block."""
    turns: int


def _joined(
    producer: Kernel, reader: Kernel, node: UOp, contractions: Sequence[UOp], cache: int
) -> Kernel | None:  # fmt: skip
    """The reader with the producer's work, which is the value `node`, in it, where that is possible and pays."""
    loads = [n for n in toposort(reader.sink) if n.op is ops.LOAD and reader.memory_of(n) is node]
    block = _block(producer.sink.src[0], loads, reader.sink)
    if block is None or not _pays(producer, contractions, block, cache, _vanishes(loads, reader.sink, block)):
        return None
    return _merged(producer, reader, node, block)


def _only_intermediate(kernel: Kernel) -> UOp | None:
    """The value that is all a kernel writes, by one plain statement, into memory of the graph's own."""
    if len(kernel.writes) != 1 or len(kernel.sink.src) != 1 or len(kernel.sink.src[0].src) != 3:
        return None
    memory = kernel.writes[0][0]
    return memory if isinstance(memory, UOp) and kernel.sink.src[0].op is ops.STORE else None


def _contractions(sink: UOp) -> list[UOp] | None:
    """The contractions of a kernel, None where an extent varies."""
    nodes = toposort(sink)
    if any(node.op is ops.RANGE and node.src[0].op is not ops.CONST for node in nodes):
        return None
    return [node for node in nodes if contraction(node) is not None]


# --- whether blocks fit ------------------------------------------------------------------------


def _block(store: UOp, loads: Sequence[UOp], reader: UOp) -> _Block | None:
    """The longest common cut into blocks, outermost ranges first."""
    written = _dense(linear(store.src[1]))
    if written is None or any(store.op is not ops.STORE for store in reader.src):
        return None
    outer = frozenset[UOp].intersection(*[store.src[1].ranges for store in reader.src])
    shared: dict[UOp, UOp] = {}
    forms = [linear(load.src[1]) for load in loads]
    left = math.prod(map(_extent, written))
    for r, stride in written.items():
        partner = _partner(r, stride, forms, outer)
        if partner is None or partner in shared.values():
            break
        shared[r] = partner
        left = stride
    known = _shared_by_others(reader)
    inside = frozenset(shared.values())
    if not shared or (known and known != inside) or not all(_is_outermost(inside, s) for s in reader.src):
        return None
    if any(load.dtype is not store.src[2].dtype for load in loads) or not _reads_whole_blocks(forms, shared, left):
        return None
    return _Block(shared, left, math.prod(map(_extent, shared)))


def _is_outermost(ranges: frozenset[UOp], store: UOp) -> bool:
    """Whether memory is written block after block."""
    form = linear(store.src[1])
    least = min(form.terms.get(r, 0) for r in ranges)
    return least > 0 and all(t.op is ops.RANGE and (t in ranges or f < least) for t, f in form.terms.items())


def _dense(form: Linear) -> dict[UOp, int] | None:
    """The ranges of a row-major index over ranges alone, by stride, outermost first."""
    strides = dict(sorted(form.terms.items(), key=lambda item: -item[1]))
    stride = 1
    for r, factor in reversed(strides.items()):
        if r.op is not ops.RANGE or factor != stride:
            return None
        stride *= _extent(r)
    return None if form.constant else strides


def _partner(r: UOp, stride: int, forms: Sequence[Linear], outer: frozenset[UOp]) -> UOp | None:
    """The range that walks all reads as this one walks the writes."""
    for candidate in sorted(outer, key=lambda o: o.arg[0]):
        if _extent(candidate) == _extent(r) and all(form.terms.get(candidate) == stride for form in forms):
            return candidate
    return None


def _reads_whole_blocks(forms: Sequence[Linear], shared: Mapping[UOp, UOp], size: int) -> bool:
    """Whether every read stays in the block of its turn and walks it as a plain array."""
    for form in forms:
        rest = Linear(form.constant, {t: f for t, f in form.terms.items() if t not in shared.values()})
        walked = _dense(rest)
        if walked is None or math.prod(map(_extent, walked)) != size:
            return False
    return True


def _shared_by_others(reader: UOp) -> frozenset[UOp]:
    """The ranges around the statements that a kernel has already."""
    return frozenset[UOp]().union(*[node.ranges for node in toposort(reader) if node.op is ops.AFTER])


def _extent(r: UOp) -> int:
    return int(r.vmax) + 1


# --- whether it pays ---------------------------------------------------------------------------


def _vanishes(loads: Sequence[UOp], reader: UOp, block: _Block) -> bool:
    """Whether no result varies with what runs through a block, so that one strip of it after another can be made and
    used where all of it is too long."""
    walked = frozenset[UOp]().union(*[load.src[1].ranges for load in loads]).difference(block.shared.values())
    return reader.ranges.isdisjoint(walked)


def _pays(producer: Kernel, contractions: Sequence[UOp], block: _Block, cache: int, vanishes: bool) -> bool:
    (store,) = producer.sink.src
    size = block.elements * store.src[2].dtype.itemsize
    if block.turns < FEW_ROWS:
        return False
    if any(_is_long(n) for n in toposort(store) if contraction(n) is not None):
        return False
    in_strips = vanishes and size * _BLOCK > cache // 4
    rows = min(2 * _BLOCK if in_strips else _BLOCK, _extent(list(block.shared)[-1]))
    inner = {list(block.shared)[-1], list(block.shared.values())[-1]}
    again = sum(_size(load, block) for load in _operands(contractions) if load.ranges.isdisjoint(inner))
    if not again:
        return size <= cache // 2
    near = again <= cache // 2 or again * (block.turns // rows) <= 4 * size * block.turns
    fits = in_strips or size * rows <= cache // 2
    return near and fits and block.turns // min(rows, _BLOCK) >= FEW_ROWS


def _is_long(product: UOp) -> bool:
    """Whether so many products are added that their partial sums had better wait in memory, and other blocks be
    chosen than those of rows."""
    return math.prod(map(_extent, product.src[1:])) >= _LONG


def _operands(contractions: Sequence[UOp]) -> Iterator[UOp]:
    seen: dict[UOp, None] = {}
    for node in contractions:
        seen.update(dict.fromkeys(n for n in toposort(node.src[0]) if n.op is ops.LOAD and n.src[0].op is ops.PARAM))
    yield from seen


def _size(load: UOp, block: _Block) -> int:
    """The bytes that a load reads while the shared ranges stand still."""
    return math.prod(map(_extent, load.ranges - {*block.shared, *block.shared.values()})) * load.dtype.itemsize


# --- the joined kernel -------------------------------------------------------------------------


def _merged(producer: Kernel, reader: Kernel, node: UOp, block: _Block) -> Kernel:
    """The reader, with loads of scratch memory that a nest of the producer's loops fills."""
    filled = _filled(producer, block, _scratches(reader.sink), len(reader.arguments))
    reads = {}
    for load in toposort(reader.sink):
        if load.op is ops.LOAD and reader.memory_of(load) is node:
            place = _within(linear(load.src[1]), block.shared.values())
            reads[load] = UOp(ops.LOAD, load.dtype, (filled, place, *load.src[2:]))
    sink, arguments = _numbered(substitute([reader.sink], reads)[0], [*reader.arguments, *producer.arguments])
    return replace(
        reader, sink=sink, arguments=arguments, reads=(reader.reads | producer.reads) - {node},
        kept=(*producer.kept, *reader.kept, _decision(node, block)),
        groups=(*producer.groups, producer.group, *reader.groups),
    )  # fmt: skip


def _scratches(sink: UOp) -> int:
    return sum(node.op is ops.SCRATCH for node in toposort(sink))


def _filled(producer: Kernel, block: _Block, scratches: int, slots: int) -> UOp:
    """Scratch memory with a block of the producer's result, in the reader's ranges.

    The reader has so many pieces of scratch memory and argument slots of its own.
    """
    number = scratches + _scratches(producer.sink)
    table: dict[UOp, UOp] = dict(block.shared)
    for part in toposort(producer.sink):
        if part.op is ops.RANGE and part not in table:
            table[part] = part.replace(arg=((_OWN_ORDER + number, *part.arg[0]), part.arg[1]))
        elif part.op in (ops.PARAM, ops.SCALAR):
            table[part] = part.replace(arg=(slots + part.arg[0], *part.arg[1:]))
        elif part.op is ops.SCRATCH:
            table[part] = part.replace(arg=(scratches + part.arg[0], *part.arg[1:]))
    (store,) = producer.sink.src
    scratch = UOp(ops.SCRATCH, store.src[2].dtype, (), (number, block.elements, ALIGNMENT))
    place = _within(linear(store.src[1]), block.shared)
    (effect,) = substitute([UOp(ops.STORE, dtypes.void, (scratch, place, store.src[2]))], table)
    for r in sorted(effect.ranges.difference(block.shared.values()), key=lambda r: r.arg[0], reverse=True):
        effect = UOp(ops.FOR, dtypes.void, (r, effect), 0)
    return UOp(ops.AFTER, scratch.dtype, (scratch, effect))


def _within(form: Linear, shared: Collection[UOp]) -> UOp:
    """The place in the block of the turn."""
    return sum_of(Linear(form.constant, {t: f for t, f in form.terms.items() if t not in shared}))


def _numbered(sink: UOp, arguments: Sequence[Argument]) -> tuple[UOp, tuple[Argument, ...]]:
    """The kernel with a slot for each of the arguments that it uses, one for memory that several have."""
    slots: dict[tuple[Argument, DType], int] = {}
    table: dict[UOp, UOp] = {}
    for part in sorted((n for n in toposort(sink) if n.op in (ops.PARAM, ops.SCALAR)), key=lambda n: n.arg[0]):
        slot = slots.setdefault((arguments[part.arg[0]], part.dtype), len(slots))
        table[part] = part.replace(arg=(slot, *part.arg[1:]))
    return substitute([sink], table)[0], tuple(argument for argument, _ in slots)


def _decision(node: UOp, block: _Block) -> Decision:
    turns = "x".join(str(_extent(r)) for r in block.shared)
    return Decision(node, "kept", f"made and used in the same {turns} turns, so one block of it at a time lies in the "
                    "scratch memory of each thread")  # fmt: skip
