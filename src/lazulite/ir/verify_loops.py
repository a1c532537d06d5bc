"""The rules of `KERNEL`, `LOOP` and `LINEAR`: memory, ranges, loops with their states, and lists.

Each function gives the nodes that break a rule, with a message, sources first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lazulite.ir import ops
from lazulite.ir.blocks import effects_of, is_looping, memory_of, yields_of
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, toposort

Faults = Iterator[tuple[UOp, str]]
_OPERANDS = frozenset({ops.CONST, ops.PARAM, ops.SCALAR, ops.SCRATCH})


def kernel_faults(root: UOp) -> Faults:
    """What a block of scratch memory holds is stored by `FOR`s, which read it through `AFTER`."""
    nodes = toposort(root)
    yield from _sink_faults(root, (ops.STORE,))
    yield from _shared_faults(nodes)
    yield from _state_faults(nodes)
    adding = {(n.src[0], r) for n in nodes if n.op is ops.AFTER and n.src[0].op is ops.PARAM for r in n.src[1:]}
    for node in nodes:
        if node.op is ops.STORE:
            memory = memory_of(node.src[0])
            own = memory.op is ops.SCRATCH  # written anew in each turn of the loops around it
            again = [r for r in node.src[2].ranges if is_looping(r) and (own or (memory, r) in adding)]
            yield from _unclosed(node, node.src[2].ranges.difference(again))
        elif node.op is ops.FOR and node.arg:
            yield node, "the loops that fill scratch memory have no states here: REDUCE stands for them"


def loop_faults(root: UOp) -> Faults:
    nodes = toposort(root)
    yield from _sink_faults(root, (ops.STORE, ops.FOR))
    yield from _body_faults(nodes)
    for effect in root.src:
        for r in effect.ranges:
            yield effect, f"range {_label(r)} is still open at the SINK"


def linear_faults(root: UOp) -> Faults:
    if root.op is not ops.LINEAR:
        yield root, "the root is no LINEAR"
        return
    nodes = toposort(*root.src)
    yield from _body_faults(nodes)
    yield from _list_faults(root)


def _body_faults(nodes: Sequence[UOp]) -> Faults:
    """What holds wherever loops are explicit."""
    yield from _shared_faults(nodes)
    yield from _state_faults(nodes)
    for node in nodes:
        yield from _unit_faults(node)
        if node.op is ops.REDUCE and any(is_looping(r) for r in node.src[1:]):
            yield node, "a REDUCE over a loop is a state here; only lanes and rows are reduced in registers"
        elif node.op is ops.STORE:
            yield from _unclosed(node, [r for r in node.src[2].ranges if not is_looping(r)])


def _label(r: UOp) -> str:
    return "r" + "_".join(map(str, r.arg[0]))


def _sink_faults(root: UOp, effects: tuple[object, ...]) -> Faults:
    if root.op is not ops.SINK:
        yield root, f"the root is a {root.op.name}, not a SINK"
    for source in root.src:
        if source.op not in effects:
            yield source, f"a SINK takes effects, got {source.op.name}"


# --- memory and ranges -------------------------------------------------------------------------


def _shared_faults(nodes: Sequence[UOp]) -> Faults:
    orders: dict[tuple[int, ...], UOp] = {}
    for node in nodes:
        op = node.op
        if op is ops.RANGE:
            yield from _range_faults(node, orders)
        elif op in (ops.LOAD, ops.STORE):
            yield from _access_faults(node)
        elif op is ops.PARAM and len(node.arg[1]) != 1:
            yield node, f"memory of a kernel is flat, got the shape {node.arg[1]}"
        elif op is ops.REDUCE:
            yield from _reduce_faults(node)
        elif op is ops.MMA:
            yield from _mma_faults(node)
        lanes = [r for r in node.ranges if r.arg[1] == "lane"]
        if len(lanes) > 1:
            yield node, f"a value has one lane range at most, got {', '.join(sorted(map(_label, lanes)))}"


def _range_faults(node: UOp, orders: dict[tuple[int, ...], UOp]) -> Faults:
    order, kind = node.arg
    if not isinstance(order, tuple) or not all(isinstance(part, int) for part in order):
        yield node, f"the order of a range is a tuple of integers, got {order!r}"
    elif kind not in ops.RANGE_KINDS:
        yield node, f"{kind!r} is no kind of range"
    elif node.src[0].dtype is not dtypes.index or node.dtype is not dtypes.index:
        yield node, "a range and its extent are INDEX"
    elif orders.setdefault(order, node) is not node:
        yield node, f"two ranges have the order {order}"
    elif not is_looping(node) and node.src[0].op is not ops.CONST:
        yield node, f"a {kind} range has a constant extent"


def _access_faults(node: UOp) -> Faults:
    least = 2 if node.op is ops.LOAD else 3
    if not least <= len(node.src) <= least + 1:
        yield node, f"{node.op.name} takes {least} or {least + 1} operands, got {len(node.src)}"
        return
    memory, index = node.src[:2]
    stored = node.dtype if node.op is ops.LOAD else node.src[2].dtype
    if memory_of(memory).op not in (ops.PARAM, ops.SCRATCH):
        yield node, f"{node.op.name} needs memory, got {memory.op.name}"
    elif index.dtype is not dtypes.index:
        yield node, f"positions are INDEX, got {index.dtype.name}"
    elif stored is not memory.dtype:
        yield node, f"memory of {memory.dtype.name} holds no {stored.name}"
    elif len(node.src) > least and node.src[least].dtype is not dtypes.bool:
        yield node, f"a gate is bool, got {node.src[least].dtype.name}"
    elif node.arg is not None and not (isinstance(node.arg, int) if node.op is ops.LOAD else node.arg == "stream"):
        yield node, f"{node.arg!r} is no hint that {node.op.name} takes"


def _reduce_faults(node: UOp) -> Faults:
    op, axes = node.arg
    if axes or len(node.src) < 2 or any(r.op is not ops.RANGE for r in node.src[1:]):
        yield node, "REDUCE takes a value and ranges here, no axes"
    elif op not in ops.REDUCING or node.dtype not in op.accepts or node.dtype is not node.src[0].dtype:
        yield node, f"{op} cannot reduce {node.src[0].dtype.name} to {node.dtype.name}"


_ON_UNITS = frozenset({ops.MMA, ops.LOAD, ops.STORE, ops.CARRY, ops.FINAL, ops.FOR, ops.SINK, ops.LINEAR})


def _mma_faults(node: UOp) -> Faults:
    if len(node.src) < 4 or any(r.op is not ops.RANGE or r.arg[1] != "unit" for r in node.src[3:]):
        yield node, "MMA takes a start, two factors and the ranges of kind unit that it sums over"
    elif node.dtype is not node.src[0].dtype:
        yield node, f"MMA keeps the type of its start, got {node.src[0].dtype.name}, then {node.dtype.name}"
    elif any(
        factor.op is not ops.CONST and (factor.op is not ops.LOAD or len(factor.src) > 2) for factor in node.src[1:3]
    ):
        yield node, "a matrix unit takes its factors from memory, without gates"


def _unit_faults(node: UOp) -> Faults:
    """Matrix units load, multiply and store; they compute nothing else."""
    inside = sorted((r for r in node.ranges if r.arg[1] == "unit"), key=lambda r: r.arg[0])
    if inside and node.op not in _ON_UNITS and node.dtype is not dtypes.index:
        yield node, f"{node.op} varies over {_label(inside[0])}, a range inside of a matrix unit"


def _unclosed(store: UOp, ranges: Iterable[UOp]) -> Faults:
    """A value that varies over a range at a fixed place would be written again and again."""
    placed = store.src[1].ranges.union(*[gate.ranges for gate in store.src[3:]])
    for r in ranges:
        if r not in placed:
            yield store, f"the value varies over {_label(r)}, the place does not: the range is never closed"


# --- loops and their states --------------------------------------------------------------------


def _state_faults(nodes: Sequence[UOp]) -> Faults:
    loops: dict[UOp, UOp] = {}
    for node in nodes:
        if node.op is ops.FOR:
            yield from _for_faults(node)
            if loops.setdefault(node.src[0], node) is not node:
                yield node, f"two loops run over {_label(node.src[0])}"
    begun: dict[tuple[UOp, int], UOp] = {}
    for node in nodes:
        if node.op is ops.CARRY:
            yield from _carry_faults(node, loops)
            if begun.setdefault((node.src[0], node.arg), node) is not node:
                yield node, f"state {node.arg} of {_label(node.src[0])} begins in two ways"
        elif node.op is ops.FINAL:
            yield from _final_faults(node)


def _for_faults(node: UOp) -> Faults:
    if not node.src or not is_looping(node.src[0]):
        yield node, "a FOR runs over a range of kind loop or parallel"
    elif not isinstance(node.arg, int) or not 0 <= node.arg < len(node.src):
        yield node, f"a FOR says how many of its sources are yields, got {node.arg!r}"
    else:
        for effect in effects_of(node):
            if effect.op not in (ops.STORE, ops.FOR):
                yield node, f"the effects of a FOR are stores and loops, got {effect.op.name}"


def _carry_faults(node: UOp, loops: dict[UOp, UOp]) -> Faults:
    if len(node.src) != 2 or node.src[0].op is not ops.RANGE:
        yield node, "a CARRY takes a range and its first value"
    elif node.src[0] not in loops:
        yield node, f"no FOR runs over {_label(node.src[0])}, which has a state"
    elif not 0 <= node.arg < loops[node.src[0]].arg:
        yield node, f"state {node.arg} of {_label(node.src[0])} is never yielded"
    elif node.src[0] in node.src[1].ranges:
        yield node, "the first value of a state varies over its own loop"
    else:
        value = yields_of(loops[node.src[0]])[node.arg]
        if not (node.dtype is node.src[1].dtype is value.dtype):
            yield node, f"a state keeps its type, got {node.src[1].dtype.name}, then {value.dtype.name}"


def _final_faults(node: UOp) -> Faults:
    loop = node.src[0]
    if loop.op is not ops.FOR:
        yield node, f"FINAL takes a FOR, got {loop.op.name}"
    elif not 0 <= node.arg < loop.arg:
        yield node, f"the loop has {loop.arg} states, not a state {node.arg}"
    elif node.dtype is not yields_of(loop)[node.arg].dtype:
        yield node, "FINAL has the type of its state"


# --- lists -------------------------------------------------------------------------------------


def _list_faults(linear: UOp) -> Faults:
    """Every use stands after its definition and inside the loop of its definition."""
    listed = frozenset(linear.src)
    visible: list[set[UOp]] = [set()]
    opened: list[UOp] = []
    previous: UOp | None = None
    for node in linear.src:
        if any(node in block for block in visible):
            yield node, "a node is listed once"
        if node.op is ops.FOR and (not opened or opened[-1] is not node.src[0]):
            yield node, "a FOR closes the innermost open loop"
            return
        yield from _use_faults(node, listed, visible)
        if node.op is ops.CARRY and previous is not node.src[0] and (previous is None or previous.op is not ops.CARRY):
            yield node, "a CARRY follows the RANGE of its loop"
        if node.op is ops.FOR:
            opened.pop()
            visible.pop()
        visible[-1].add(node)
        if node.op is ops.RANGE:
            opened.append(node)
            visible.append({node})
            if not is_looping(node):
                yield node, "ranges of lanes and rows open no loop and are not listed"
        previous = node
    for r in opened:
        yield r, f"the loop over {_label(r)} is never closed"


def _use_faults(node: UOp, listed: frozenset[UOp], visible: Sequence[set[UOp]]) -> Faults:
    """The sources of a listed node are visible, or need no place in the list."""
    pending = list(node.src)
    while pending:
        source = pending.pop()
        if source in listed:
            if not any(source in block for block in visible):
                yield node, f"a {source.op.name} is used before its definition or outside its loop"
        elif source.op in (ops.AFTER, ops.FINAL):
            pending += source.src
        elif _is_static(source):
            continue
        elif source.op not in _OPERANDS and (source.op is not ops.RANGE or is_looping(source)):
            yield node, f"the operand {source.op.name} is not listed"


def _is_static(node: UOp) -> bool:
    """An index or gate over lanes, rows and constants: known while code is written."""
    if node.dtype not in (dtypes.index, dtypes.bool):
        return False
    known = ops.ELEMENTWISE | {ops.CONST}
    return all(n.op in known or (n.op is ops.RANGE and not is_looping(n)) for n in toposort(node))
