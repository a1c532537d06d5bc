"""The interpreter of the `KERNEL`, `LOOP` and `LINEAR` languages.

A kernel is written out as one Python function of numbers and fixed names, which runs once per call:
each node becomes a statement in the block of its innermost loop, a value with lanes a list.  It is
strict where compiled code is free: reading memory that was never written (`None`) raises, as does an
index out of range behind a true gate; iterations of `parallel` loops run in shuffled order.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping, MutableSequence, Sequence
from typing import Any

from lazulite.base.errors import DeviceError
from lazulite.ir import ops
from lazulite.ir.blocks import Block, closed_ranges, has_open_loops, is_looping, loops_of, nest, nest_linear
from lazulite.ir.dtype import Scalar, dtypes
from lazulite.ir.evaluate_write import KernelWriter
from lazulite.ir.launches import in_turn
from lazulite.ir.uop import UOp, substitute, toposort

Memory = Mapping[int, MutableSequence[Any]]
Kernel = Callable[[Memory, Mapping[int, Scalar]], None]


class KernelFault(DeviceError):
    """A kernel read what was never written, or used an index out of range."""

    def __init__(self, message: str) -> None:
        super().__init__("run_kernel", message)


def run_kernel(root: UOp, memory: Memory, scalars: Mapping[int, Scalar]) -> None:
    """Interpret a SINK or LINEAR, writing into `memory[slot]`; a None in memory was never written."""
    compile_kernel(root)(memory, scalars)


def compile_kernel(root: UOp) -> Kernel:
    """The kernel as a Python function of memory and scalars by slot."""
    if root.op is ops.LINEAR:
        block, nodes = nest_linear(root), toposort(*root.src)
        listed = set(root.src)
        prelude: list[UOp | Block] = [node for node in nodes if node not in listed]
        block.items[:0] = prelude
        snapshots: frozenset[UOp] = frozenset()
    else:
        snapshots = frozenset()
        if has_open_loops(root):
            snapshots = _written_memory(root)
            root = _with_loops(root)
        nodes = toposort(root)
        block = nest([root], loops_of(nodes))
    source, names = KernelWriter(nodes, snapshots).write(block)
    scope: dict[str, Any] = names | {"load": _load, "store": _store, "memory_of": _memory_of, "shuffled": _shuffled}
    exec(compile(source, "<kernel>", "exec"), scope)
    return scope["kernel"]  # type: ignore[no-any-return]


# --- what the written function calls -----------------------------------------------------------


def _memory_of(memory: Memory, slot: int, size: int) -> MutableSequence[Any]:
    if slot not in memory:
        raise KernelFault(f"no memory was given for slot {slot}")
    if len(memory[slot]) < size:
        raise KernelFault(f"slot {slot} needs {size} elements, got {len(memory[slot])}")
    return memory[slot]


def _load(memory: MutableSequence[Any], size: int, index: int, name: str) -> Any:
    if not 0 <= index < size:
        raise KernelFault(f"a load reads {name}[{index}], which has {size} elements")
    value = memory[index]
    if value is None:
        raise KernelFault(f"a load reads {name}[{index}] before anything was written there")
    return value


def _store(memory: MutableSequence[Any], size: int, index: int, name: str, value: Any) -> None:
    if not 0 <= index < size:
        raise KernelFault(f"a store writes {name}[{index}], which has {size} elements")
    memory[index] = value


def _shuffled(extent: int) -> list[int]:
    return random.Random(extent).sample(range(extent), extent)


# --- from KERNEL to LOOP, plainly --------------------------------------------------------------


def _written_memory(root: UOp) -> frozenset[UOp]:
    """Memory that a kernel both reads and writes: its loads see the contents from before the kernel.

    Not so where it is taken in turn, or where scratch memory keeps what the turn before left in it.
    """
    nodes = toposort(root)
    loaded = {node.src[0] for node in nodes if node.op is ops.LOAD}
    stored = {node.src[0] for node in nodes if node.op is ops.STORE and node.src[0].op is not ops.SCRATCH}
    return frozenset(stored & loaded - in_turn(root))


_Path = tuple[Sequence[UOp], UOp]
"""The loops around a store, outermost first, and the store."""


def _with_loops(sink: UOp) -> UOp:
    """Every store in the nest of its ranges, those that share outer ranges together; new ranges have new orders."""
    paths = [(sorted([r for r in s.ranges if is_looping(r)], key=lambda r: r.arg[0]), s) for s in sink.src]
    first = 1 + max((node.arg[0][0] for node in toposort(sink) if node.op is ops.RANGE), default=-1)
    return UOp(ops.SINK, sink.dtype, tuple(_nested(paths, {}, itertools.count(first), {})))


def _nested(paths: Iterable[_Path], outer: dict[UOp, UOp], order: Iterable[int], known: dict[UOp, UOp]) -> list[UOp]:
    """The stores under loops whose ranges are renamed in `outer` (recursion is as deep as a nest)."""
    effects: list[UOp] = []
    groups: dict[UOp, list[_Path]] = {}
    for path, store in paths:
        if path:
            groups.setdefault(path[0], []).append((path[1:], store))
        else:
            effects.append(_own_ranges(substitute([store], outer)[0], order, known))
    for r, inner in groups.items():
        table = outer | _fresh([r], order, outer)
        effects.append(UOp(ops.FOR, dtypes.void, (table[r], *_nested(inner, table, order, known)), 0))
    return effects


def _fresh(ranges: Iterable[UOp], order: Iterable[int], outer: dict[UOp, UOp] | None = None) -> dict[UOp, UOp]:
    numbers, table = iter(order), dict[UOp, UOp]()
    for r in ranges:  # outermost first: an extent may vary with ranges further out
        extent = tuple(substitute(r.src, (outer or {}) | table))
        table[r] = UOp(ops.RANGE, r.dtype, extent, ((next(numbers),), r.arg[1]))
    return table


def _own_ranges(root: UOp, order: Iterable[int], known: dict[UOp, UOp]) -> UOp:
    """The root with new ranges for each REDUCE and FOR below it, so that each is a loop of its own.

    Recursion goes as deep as these feed one another, which a kernel's size bounds.
    """
    table: dict[UOp, UOp] = {}
    for node in toposort(root, enter=lambda n: not _loops(n)):
        if _loops(node):
            if node not in known:
                known[node] = _own_reduce(node, order, known)
            table[node] = known[node]
    return substitute([root], table)[0]


def _own_reduce(node: UOp, order: Iterable[int], known: dict[UOp, UOp]) -> UOp:
    ranges = _fresh(closed_ranges(node), order)
    return node.replace(src=tuple([_own_ranges(source, order, known) for source in substitute(node.src, ranges)]))


def _loops(node: UOp) -> bool:
    return bool(closed_ranges(node))
