"""Writes a tree of blocks as the text of a Python function for the kernel interpreter.

Takes the blocks of `ir/blocks.py` and gives source text with the names that it uses.  A value without
lanes is a Python number; one with lanes is a list over them, row-major in the ranges' nesting order.
The text holds numbers and names made here only.
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from lazulite.ir import ops
from lazulite.ir.blocks import Block, closed_ranges, is_looping, memory_of, yields_of
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.meaning import element_function, multiply_accumulate, reducer
from lazulite.ir.uop import UOp

Lanes = tuple[UOp, ...]

_INLINE = {
    ops.ADD: "{0} + {1}", ops.SUB: "{0} - {1}", ops.MUL: "{0} * {1}",
    ops.LT: "{0} < {1}", ops.LE: "{0} <= {1}", ops.EQ: "{0} == {1}", ops.NE: "{0} != {1}",
    ops.AND: "{0} & {1}", ops.OR: "{0} | {1}", ops.XOR: "{0} ^ {1}", ops.WHERE: "{1} if {0} else {2}",
}  # fmt: skip
_NO_LANES: frozenset[UOp] = frozenset()
_MAY_LEAVE_TYPE = frozenset({ops.ADD, ops.SUB, ops.MUL})
_NO_STATEMENT = frozenset({ops.CONST, ops.RANGE, ops.CARRY, ops.FINAL, ops.AFTER, ops.SINK, ops.FOR})


def lanes_of(nodes: Sequence[UOp]) -> dict[UOp, Lanes]:
    """The lane and row ranges over which each node's value varies.

    A state varies over what its first value or its next value varies over, so loops are followed
    until nothing changes.
    """
    loops = {node.src[0]: node for node in nodes if node.op is ops.FOR}
    found: dict[UOp, frozenset[UOp]] = {}
    before = None
    while found != before:
        before = dict(found)
        for node in nodes:
            found[node] = _lanes_once(node, found, loops)
    return {node: tuple(sorted(lanes, key=lambda r: r.arg[0])) for node, lanes in found.items()}


def _lanes_once(node: UOp, found: dict[UOp, frozenset[UOp]], loops: dict[UOp, UOp]) -> frozenset[UOp]:
    if node.op is ops.RANGE:
        return _NO_LANES if is_looping(node) else frozenset((node,))
    if node.op in (ops.STORE, ops.FOR, ops.SINK):
        return _NO_LANES
    sources = node.src
    if node.op is ops.FINAL:
        sources = (node.src[0].src[1 + node.arg],)
    elif node.op is ops.CARRY and node.src[0] in loops:
        sources = (*node.src[1:], loops[node.src[0]].src[1 + node.arg])
    elif node.op is ops.REDUCE:
        return found[node.src[0]].difference(node.src[1:])
    elif node.op is ops.MMA:
        return _NO_LANES.union(*[found[source] for source in node.src[:3]]).difference(node.src[3:])
    return _NO_LANES.union(*[found.get(source, _NO_LANES) for source in sources])


class KernelWriter:
    """Collects the statements of one kernel."""

    def __init__(self, nodes: Sequence[UOp], snapshots: frozenset[UOp]) -> None:
        self.nodes, self.snapshots = nodes, snapshots
        self.lanes = lanes_of(nodes)
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[str, Any] = {"f32": ctypes.c_float, "inf": math.inf, "nan": math.nan}
        self.numbers = {node: number for number, node in enumerate(nodes)}
        self.states: dict[UOp, dict[int, UOp]] = {}
        for node in nodes:
            if node.op is ops.CARRY:
                self.states.setdefault(node.src[0], {})[node.arg] = node

    def write(self, outermost: Block) -> tuple[str, dict[str, Any]]:
        """The source of `kernel(memory, scalars)` and the names it needs."""
        self._leaves()
        stack = [iter(outermost.items)]
        opened: list[Block] = []
        while stack:
            for item in stack[-1]:
                if isinstance(item, Block):
                    self._open(item)
                    opened.append(item)
                    stack.append(iter(item.items))
                    break
                self._statement(item)
            else:
                stack.pop()
                if opened:
                    self._close(opened.pop())
        return "\n".join(["def kernel(memory, scalars):", *self.lines, "    return None"]), self.names

    # --- text -----------------------------------------------------------------------------------

    def _line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def _given(self, name: str, value: object) -> str:
        self.names[name] = value
        return name

    def _memory(self, node: UOp) -> str:
        return f"m{self.numbers[memory_of(node)]}"

    def _state(self, r: UOp, index: int) -> str:
        return f"s{self.numbers[r]}_{index}"

    def _name(self, node: UOp) -> str:
        """How the value of a node is written where it is used."""
        if node.op is ops.CONST:
            text = repr(node.value)
            return f"({text})" if text.startswith("-") else text
        if node.op is ops.RANGE:
            if is_looping(node):
                return f"r{self.numbers[node]}"
            return self._given(f"r{self.numbers[node]}", tuple(range(int(node.src[0].value))))
        if node.op is ops.CARRY:
            return self._state(node.src[0], node.arg)
        if node.op is ops.FINAL:
            return self._state(node.src[0].src[0], node.arg)
        return f"v{self.numbers[node]}"

    # --- lanes ----------------------------------------------------------------------------------

    def _aligned(self, node: UOp, lanes: Lanes) -> str:
        """The value as a list over exactly these lanes."""
        own = self.lanes[node]
        if own == lanes:
            return self._name(node)
        if not own:
            return f"[{self._name(node)}] * {math.prod([int(r.src[0].value) for r in lanes])}"
        return f"[{self._name(node)}[i] for i in {self._positions(own, lanes)}]"

    def _positions(self, own: Lanes, lanes: Lanes) -> str:
        """A name for where each point of `lanes` lies in a list over its part `own`."""
        axes = [range(int(r.src[0].value)) for r in lanes]
        positions = []
        for point in itertools.product(*axes):
            at = dict(zip(lanes, point, strict=True))
            position = 0
            for r in own:
                position = position * int(r.src[0].value) + at[r]
            positions.append(position)
        name = "g" + "_".join(str(self.numbers[r]) for r in own) + "of" + "_".join(str(self.numbers[r]) for r in lanes)
        return self._given(name, tuple(positions))

    def _each(self, template: str, operands: Iterable[UOp], lanes: Lanes) -> str:
        """The template over the operands: one value, or a list with one for each point of the lanes."""
        if not lanes:
            return template.format(*[self._name(node) for node in operands])
        texts, variables, columns = [], [], []
        for position, node in enumerate(operands):
            texts.append(f"x{position}" if self.lanes[node] else self._name(node))
            if self.lanes[node]:
                variables.append(f"x{position}")
                columns.append(self._aligned(node, lanes))
        body = template.format(*texts)
        if len(columns) == 1:
            return f"[{body} for {variables[0]} in {columns[0]}]"
        return f"[{body} for {', '.join(variables)} in zip({', '.join(columns)})]"

    # --- statements -----------------------------------------------------------------------------

    def _leaves(self) -> None:
        for node in self.nodes:
            name = f"m{self.numbers[node]}"
            if node.op is ops.PARAM:
                self._line(f"{name} = memory_of(memory, {node.arg[0]}, {math.prod(node.arg[1])})")
                if node in self.snapshots:
                    self._line(f"{name}_before = list({name})")
            elif node.op is ops.SCRATCH:
                self._line(f"{name} = [None] * {node.arg[1]}")
            elif node.op is ops.SCALAR:
                self._line(f"v{self.numbers[node]} = scalars[{node.arg[0]}]")

    def _statement(self, node: UOp) -> None:
        op = node.op
        if op in _NO_STATEMENT or op in (ops.PARAM, ops.SCRATCH, ops.SCALAR):
            return
        if op is ops.STORE:
            self._store(node)
        elif op is ops.REDUCE:
            self._line(f"a{self.numbers[node]} = [{self._name(node.src[0])}]")
            self._combine(node)
        elif op is ops.MMA:
            self._multiply(node)
        else:
            text = self._load(node) if op is ops.LOAD else self._element(node)
            self._line(f"{self._name(node)} = {text}")

    def _element(self, node: UOp) -> str:
        op, dtype = node.op, node.dtype
        template = _INLINE.get(op)
        if template is None or (op in _MAY_LEAVE_TYPE and dtype.bits == 16 and dtype.is_float):
            function = element_function(op, dtype, node.src[0].dtype)
            name = self._given(f"{op.name}_{node.src[0].dtype.name}_{dtype.name}", function)
            template = f"{name}({', '.join(f'{{{i}}}' for i in range(len(node.src)))})"
        elif op in _MAY_LEAVE_TYPE:
            template = _back_in_type(template, dtype)
        return self._each(template, node.src, self.lanes[node])

    def _load(self, node: UOp) -> str:
        memory, size = self._memory(node.src[0]), _size(node.src[0])
        if node.src[0] in self.snapshots:
            memory += "_before"
        text = f"load({memory}, {size}, {{0}}, {_label(node.src[0])!r})"
        if node.dtype is dtypes.bool:
            text = f"({text} != 0)"
        if len(node.src) > 2:
            text = f"{text} if {{1}} else {node.dtype.round(0)!r}"
        return self._each(text, node.src[1:], self.lanes[node])

    def _store(self, node: UOp) -> None:
        memory, size, label = self._memory(node.src[0]), _size(node.src[0]), _label(node.src[0])
        lanes = tuple(sorted({r for s in node.src[1:] for r in self.lanes[s]}, key=lambda r: r.arg[0]))
        text = f"store({memory}, {size}, {{0}}, {label!r}, {{1}})"
        if len(node.src) > 3:
            text = f"{text} if {{2}} else None"
        self._line(self._each(text, node.src[1:], lanes))

    def _multiply(self, node: UOp) -> None:
        """A matrix unit: every product of the operands' elements, added to where it belongs."""
        kept = self.lanes[node]
        every = tuple(sorted({*kept, *self.lanes[node.src[1]], *self.lanes[node.src[2]]}, key=lambda r: r.arg[0]))
        multiply = self._given(f"mma_{node.dtype.name}", partial(multiply_accumulate, node.dtype))
        start = self._aligned(node.src[0], kept)
        left, right = (self._aligned(source, every) for source in node.src[1:3])
        self._line(f"{self._name(node)} = {multiply}({start}, {left}, {right}, {self._positions(kept, every)})")

    # --- loops ----------------------------------------------------------------------------------

    def _open(self, block: Block) -> None:
        r, closer = block.range, block.closer
        assert r is not None and closer is not None
        if closer.op is ops.REDUCE and r is closed_ranges(closer)[0]:
            self._line(f"a{self.numbers[closer]} = []")
        for index, carry in sorted(self.states.get(r, {}).items()):
            self._line(f"{self._state(r, index)} = {self._aligned(carry.src[1], self.lanes[carry])}")
        order = "shuffled" if r.arg[1] == "parallel" else "range"
        self._line(f"for {self._name(r)} in {order}({self._name(r.src[0])}):")
        self.depth += 1
        self._line("pass")

    def _close(self, block: Block) -> None:
        r, closer = block.range, block.closer
        assert r is not None and closer is not None
        if closer.op is ops.FOR:
            self._next_state(r, closer)
        elif r is closed_ranges(closer)[-1]:
            self._line(f"a{self.numbers[closer]}.append({self._name(closer.src[0])})")
        self.depth -= 1
        if closer.op is ops.REDUCE and r is closed_ranges(closer)[0]:
            self._combine(closer)

    def _next_state(self, r: UOp, loop: UOp) -> None:
        carries = self.states.get(r, {})
        values = [
            self._aligned(value, self.lanes[carries[index]] if index in carries else self.lanes[value])
            for index, value in enumerate(yields_of(loop))
        ]
        if values:  # all at once: the next value of one state may be made from another
            self._line(f"{', '.join(self._state(r, i) for i in range(len(values)))} = {', '.join(values)}")

    def _combine(self, node: UOp) -> None:
        """Reduce the collected values, and the lanes that the REDUCE ends."""
        rows, own, kept = f"a{self.numbers[node]}", self.lanes[node.src[0]], self.lanes[node]
        reduce = self._given(f"reduce_{node.arg[0].name}_{node.dtype.name}", reducer(node.arg[0], node.dtype))
        if not own:
            self._line(f"{self._name(node)} = {reduce}({rows})")
            return
        groups: dict[int, list[int]] = {}
        where = self.names[self._positions(kept, own)]
        for position, group in enumerate(where):
            groups.setdefault(group, []).append(position)
        name = self._given(f"h{self.numbers[node]}", tuple(map(tuple, groups.values())))
        text = f"[{reduce}([row[i] for row in {rows} for i in group]) for group in {name}]"
        self._line(f"{self._name(node)} = {text}" if kept else f"({self._name(node)},) = {text}")


def _size(memory: UOp) -> int:
    return math.prod(memory_of(memory).shape)


def _label(memory: UOp) -> str:
    memory = memory_of(memory)
    return f"{'p' if memory.op is ops.PARAM else 's'}{memory.arg[0]}"


def _back_in_type(text: str, dtype: DType) -> str:
    """The text of a sum, difference or product, rounded to its type."""
    if dtype is dtypes.float32:
        return f"f32({text}).value"
    if dtype.kind == "int":
        half = 1 << (dtype.bits - 1)
        return f"(({text}) + {half} & {2 * half - 1}) - {half}"
    return f"({text}) & {dtype.max}" if dtype.kind == "uint" else text
