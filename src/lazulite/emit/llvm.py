"""Write a `LINEAR` kernel as LLVM assembly, and compile that to an object file.

Vectors and register tiles are whole values until here: a node over rows becomes one instruction for
each point of its rows, a node over a lane range vector instructions.  The text is already in the form
that the code generator wants (SSA, explicit vectors), so no pass of LLVM's optimiser runs.

The function is `void kernel(const int64_t *args, int64_t begin, int64_t end, char *scratch)`: an
argument is an address or the bits of a scalar; `begin..end` are the turns of the outermost parallel
range to run.  Statements beside that range run with its last turn.  The object calls nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from lazulite.emit.base import Binary
from lazulite.emit.llvm_compute import POSITIONS
from lazulite.emit.llvm_functions import FunctionWriter
from lazulite.emit.llvm_object import compile_text
from lazulite.emit.llvm_types import constant
from lazulite.emit.llvm_values import At, Key
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import extent

_PLAIN = ops.ELEMENTWISE | {ops.LOAD, ops.STORE, ops.MMA}
_GATES = frozenset({ops.LT, ops.LE, ops.AND})
_Row = Callable[[Key], str | None]
"""What writes a row of a node, and gives its value if it has one."""


class Writer(FunctionWriter):
    """Writes one kernel."""

    def __init__(self, linear: UOp, name: str) -> None:
        super().__init__(linear)
        self.name = name

    def write(self) -> str:
        """The whole module."""
        self._enter()
        for group in self._groups():
            first = group[0]
            if first.op in _PLAIN:
                self._rows(group) if self.form(first).rows else self._one(first)
            elif first.op is ops.RANGE:
                self.open_loop(first)
            elif first.op is ops.FOR:
                if first in self.again:
                    self.repeat_loop(first)
                else:
                    self.close_loop()
            elif first.op is ops.FINAL:
                self.values[first] = self.yields[first.src[0]][first.arg]
            elif first.op is ops.REDUCE:
                self.reduce(first)
        self.release()
        if self.aligned:  # other threads see what went past the caches once this one is done
            self.text.line(self.text.call("@llvm.x86.sse.sfence", "void", [], []))
        self.text.line("ret void")
        head = f"define void @{self.name}(ptr %args, i64 %begin, i64 %end, ptr %scratch) nounwind {{\nentry:"
        declarations = sorted(self.text.declarations.values())
        hints = ["!0 = !{i32 1}"] if self.aligned else []
        beside = [*declarations, *self.constants(), *self.definitions]
        return "\n".join([*beside, head, *self.text.lines, "}", *hints, ""])

    def _groups(self) -> Iterator[list[UOp]]:
        """Neighbours over the same rows together: they are written one row after another."""
        group: list[UOp] = []
        together: tuple[UOp, ...] = ()
        used, moved, repeated, form = self.used, self.moved, self.repeated, self.form
        for node in self.nodes:
            plain = node.op in _PLAIN
            if node in repeated or (plain and node.op is not ops.STORE and (node not in used or node in moved)):
                continue
            rows = form(node).rows if plain else ()
            if group and rows != together:
                yield group
                group = []
            together = rows
            if rows:
                group.append(node)
            else:
                yield [node]
        if group:
            yield group

    def _enter(self) -> None:
        for node in self.leaves:
            self.argument(node)
        streams = [node for node in self.listed[ops.STORE] if node.arg == "stream"]
        for memory in dict.fromkeys(node.src[0] for node in streams):
            number = self.text.define(f"ptrtoint ptr {self.values[memory][()]} to i64")
            self.aligned[memory] = self.text.define(f"icmp eq i64 {self.text.define(f'and i64 {number}, 63')}, 0")
        if self.parallel is not None:
            self.last = self.text.define(f"icmp eq i64 %end, {extent(self.parallel)}")
        self.configure()

    def _one(self, node: UOp) -> None:
        """A node without rows."""
        result = self._way_of_writing(node)(node, {})
        if result is not None:
            self.values[node] = {(): result}

    def _rows(self, group: Sequence[UOp]) -> None:
        """Nodes over the same rows, one row after another."""
        both = [(self.values.setdefault(node, {}), self._writer_of(node)) for node in group]
        for key in self.keys(self.form(group[0]).rows):
            for known, write in both:
                result = write(key)
                if result is not None:
                    known[key] = result

    def _writer_of(self, node: UOp) -> _Row:
        """What writes a row of a node, and gives its value if it has one; what rows have in common is found once."""
        write: _Row | None = None
        if node.op in ops.ELEMENTWISE:
            write = self._unless_known(node, self.elements(node))
        elif node.op is ops.LOAD:
            write = self.loads(node)
        elif node in self.blocks:
            write = self.store_blocks(node, self._only(node))
        elif node.op is ops.STORE and not self._only(node):
            write = self.stores(node)
        return write or self._at_each_row(node)

    def _at_each_row(self, node: UOp) -> _Row:
        """The same for rows with nothing in common."""
        rows, write = self.form(node).rows, self._way_of_writing(node)
        return lambda key: write(node, dict(zip(rows, key, strict=True)))

    def _unless_known(self, node: UOp, write: _Row) -> _Row:
        """What writes a gate, or a choice, but for the rows where the gate is known: only some are at a border."""
        gate = node.src[0] if node.op is ops.WHERE else node
        if gate.op not in _GATES or gate.dtype is not dtypes.bool or not self.form(gate).rows:
            return write
        rows, lanes = self.form(node).rows, self.form(node).lanes
        truths = zip(self.keys(rows), self.known.truths(gate, rows), strict=True)
        known = {key: truth for key, truth in truths if truth is not None}
        if not known:
            return write
        bits = self.index_bits(node, lanes)

        def written(key: Key) -> str | None:
            if key not in known:
                return write(key)
            if node is gate:
                return constant(dtypes.bool, known[key], lanes, bits)
            chosen = node.src[1 if known[key] else 2]
            return self.operand(chosen, dict(zip(rows, key, strict=True)), lanes, bits)

        return written

    def _way_of_writing(self, node: UOp) -> Callable[[UOp, At], str | None]:
        """What writes the node at any of its rows."""
        op = node.op
        if op in ops.ELEMENTWISE:
            return self.walk if node in self.steps else self.position if self._is_position(node) else self.element
        units = self.form(node).units
        if op is ops.LOAD:
            return self.load_tile if len(units) > 1 else self.load_neighbours if units else self.load
        if op is ops.MMA:
            return self.multiply
        return self.store_tile if len(units) > 1 else partial(self.store, only=self._only(node))

    def _only(self, store: UOp) -> str | None:
        """A condition on a store, so that what others see is written once."""
        return self.last if self.runs_in_every_chunk(store) else None

    def _is_position(self, node: UOp) -> bool:
        """Whether this is a sum or product of numbers that do not vary over registers."""
        return node.dtype is dtypes.index and node.op in POSITIONS and self.form(node).is_scalar


@dataclass(frozen=True, slots=True)
class Assembly:
    """A kernel as text, with what its binary tells about it."""

    name: str
    text: str
    scratch_bytes: int
    parallel: int


def write(linear: UOp, name: str = "kernel") -> Assembly:
    """The text of a kernel."""
    writer = Writer(linear, name)
    text = writer.write()
    parallel = extent(writer.parallel) if writer.parallel is not None else 1
    return Assembly(name, text, writer.scratch_bytes, parallel)


def assemble(assembly: Assembly, target: Target) -> Binary:
    """The finished program of a kernel."""
    code = compile_text(assembly.text, target)
    return Binary(assembly.name, code, "elf", assembly.scratch_bytes, assembly.parallel)
