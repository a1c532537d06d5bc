"""Functions of a kernel as LLVM assembly: loops with register tiles that run one after another, and loops that occur
again with other memory.

Where several loops have register tiles each is a function of its own, so that its registers are nobody else's business:
else the code generator keeps what one loop needs again in the next turn, such as the constants of a power, in registers
while another one runs, and spills the sums of that.  Loops that differ in nothing but what they take from outside are
written, and compiled, once.  Values from outside become arguments when they are first asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from lazulite.emit.alike import alike
from lazulite.emit.llvm_loops import LoopWriter
from lazulite.emit.llvm_text import Text
from lazulite.emit.llvm_types import type_name
from lazulite.emit.llvm_values import Key
from lazulite.ir import ops
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp

_LEAST = 16
"""The fewest nodes of a loop for which it is worth a look whether it occurs again."""


@dataclass(slots=True, eq=False)
class _Nest:
    """A loop, or all of the kernel."""

    stands_alone: bool
    """Whether it has no states of its own, and nothing in it concerns the whole kernel."""
    begin: int = 0
    end: int = 0
    """Where its nodes are in the list."""
    tiles: int = 0
    """How many loops have register tiles as states."""
    inner: list[_Nest] = field(default_factory=list)

    @property
    def length(self) -> int:
        return self.end - self.begin


@dataclass(slots=True)
class _Function:
    """A loop as a function: its name, and the values from outside that are its arguments."""

    name: str
    passed: list[tuple[UOp, Key]]


class _Arguments(dict[UOp, dict[Key, str]]):
    """The values in a function: one from outside becomes an argument when it is first asked for."""

    def __init__(self, writer: FunctionWriter) -> None:
        super().__init__()
        self.around, self.caller = writer.values, writer.text
        self.passed: list[tuple[UOp, Key]] = []

    def __missing__(self, node: UOp) -> dict[Key, str]:
        found = self[node] = {key: f"%given{len(self.passed) + n}" for n, key in enumerate(self.around[node])}
        self.passed += [(node, key) for key in found]
        return found


class FunctionWriter(LoopWriter):
    """Writes some loops as functions."""

    def __init__(self, linear: UOp) -> None:
        super().__init__(linear)
        self.apart: set[UOp] = set()
        """The ranges of loops that become functions."""
        self.again: dict[UOp, tuple[UOp, dict[UOp, UOp]]] = {}
        """For a loop (its `FOR`) that is the same as one before: the range of that, and what stands for what in it."""
        self.repeated: set[UOp] = set()
        """What is in such loops."""
        self.functions: dict[UOp, _Function] = {}
        self.definitions: list[str] = []
        """The functions beside the kernel's."""
        self._find_functions()

    @cached_property
    def in_list(self) -> frozenset[UOp]:
        return frozenset(self.nodes)

    def type_of(self, node: UOp) -> str:
        """The type of a node's value."""
        if node.op in (ops.PARAM, ops.SCRATCH):
            return "ptr"
        lanes = 0 if node.op in (ops.SCALAR, ops.RANGE) else self.lanes_of(node)
        return type_name(node.dtype, lanes, self.index_bits(node, lanes))

    def open_loop(self, r: UOp) -> None:
        if r in self.apart:
            self.values, self.text = _Arguments(self), Text(self.text.declarations)
        super().open_loop(r)

    def close_loop(self) -> None:
        r = self.loops[-1].closer.src[0]
        super().close_loop()
        if r in self.apart and isinstance(self.values, _Arguments):
            self._end_function(r, self.values)

    def _end_function(self, r: UOp, arguments: _Arguments) -> None:
        """Leave a function, and call it."""
        function = self.functions[r] = _Function(f"@tile{len(self.functions)}", arguments.passed)
        parameters = ", ".join([f"{self.type_of(node)} {arguments[node][key]}" for node, key in function.passed])
        head = f"define internal void {function.name}({parameters}) noinline nounwind {{\nentry:"
        self.definitions.append("\n".join([head, *self.text.lines, "  ret void\n}"]))
        self.values, self.text = arguments.around, arguments.caller
        self._call(function, function.passed)

    def repeat_loop(self, loop: UOp) -> None:
        """One of `again`: the function of the loop before, with what stands for its arguments."""
        r, table = self.again[loop]
        self._call(self.functions[r], [(table[node], key) for node, key in self.functions[r].passed])

    def _call(self, function: _Function, passed: Iterable[tuple[UOp, Key]]) -> None:
        operands = ", ".join([f"{self.type_of(node)} {self.values[node][key]}" for node, key in passed])
        self.text.line(f"call void {function.name}({operands})")

    # --- which loops ----------------------------------------------------------------------------

    def _find_functions(self) -> None:
        """Decide which loops become functions, in the order of the list, what is around others before these."""
        tiled = {r for r, carries in self.carries.items() if any(self.form(carry).rows for carry in carries)}
        if len(tiled) < 2 and len(self.nodes) < 2 * _LEAST:
            return
        nests = self._nests(tiled)
        lengths = Counter([nest.length for nest in nests])
        known: dict[tuple[Op, ...], list[_Nest]] = {}
        pending = [(nests[-1], False)]
        while pending:
            nest, is_tile = pending.pop()
            is_large = nest.length >= _LEAST and nest.stands_alone and bool(nest.inner)
            if (is_tile or is_large) and lengths[nest.length] > 1 and self._is_again(nest, known):
                continue
            if is_tile:
                self.apart.add(self.nodes[nest.begin])
                continue
            tiles = [inner for inner in nest.inner if inner.tiles and inner.stands_alone]
            apart = tiles if len(tiles) > 1 and nest is not nests[-1] else []
            pending += [(inner, inner in apart) for inner in reversed(nest.inner)]

    def _is_again(self, nest: _Nest, known: dict[tuple[Op, ...], list[_Nest]]) -> bool:
        """Whether a loop is the same as one of those known, which notes it; else it is known from now on."""
        nodes = self.nodes[nest.begin : nest.end]
        ones = known.setdefault(tuple([node.op for node in nodes]), [])
        for one in ones:
            before = self.nodes[one.begin : one.end]
            table = alike(before, nodes, self.in_list, lambda node: self.form(node).is_scalar)
            if table is not None:
                self.apart.add(before[0])
                self.again[nodes[-1]] = before[0], table
                self.repeated.update(nodes[:-1])
                return True
        ones.append(nest)
        return False

    def _nests(self, tiled: Container[UOp]) -> list[_Nest]:
        """The loops of the kernel, and at the end all of it; what is beside the parallel loop is written for all of its
        chunks, or for one."""
        nests, stack, is_inside = list[_Nest](), [_Nest(False)], self.parallel is None
        for place, node in enumerate(self.nodes):
            if node.op is ops.RANGE:
                stack.append(_Nest(is_inside, place))
                is_inside = is_inside or node is self.parallel
            elif node.op is ops.FOR:
                nest = stack.pop()
                nest.end = place + 1
                nest.tiles += node.src[0] in tiled
                nest.stands_alone &= not node.arg
                stack[-1].tiles += nest.tiles
                stack[-1].inner.append(nest)
                nests.append(nest)
                is_inside = is_inside and node.src[0] is not self.parallel
            elif node.op is ops.MMA or (node.op is ops.STORE and node.arg == "stream"):
                for nest in stack:
                    nest.stands_alone = False
        return [*nests, *stack]
