"""Operands of a kernel as LLVM assembly: which rows and lanes a value has, and how it is written where it is used.

A value is kept under its rows, as a scalar or a vector over its lane range.  Where another needs it in
more lanes it is spread, where it is known now it is a constant.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lazulite.emit.llvm_text import Text
from lazulite.emit.llvm_types import float_literal, literal, type_name, vector_literal
from lazulite.emit.static import Static
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import extent
from lazulite.lower.addresses import Address, address, is_static

_NOTHING: frozenset[UOp] = frozenset()
_LEAVES = frozenset({ops.PARAM, ops.SCRATCH, ops.SCALAR})
At = Mapping[UOp, int]
"""Which row of each row range is being written."""


@dataclass(frozen=True, slots=True)
class Form:
    """Over which rows, which lane range and which ranges inside of a matrix unit a value varies."""

    rows: tuple[UOp, ...]
    lane: UOp | None
    units: tuple[UOp, ...]
    lanes: int
    """The length of the vector; 0 for a scalar."""


class ValueWriter:
    """What writing a kernel shares: the text, and the value of every node."""

    def __init__(self, linear: UOp) -> None:
        self.text = Text()
        self.nodes = linear.src
        self.values: dict[UOp, dict[tuple[int, ...], str]] = {}
        self.carries: dict[UOp, list[UOp]] = {}
        self.last = ""
        self.aligned: dict[UOp, str] = {}
        """Whether memory that is streamed to begins at a cache line."""
        self.zeros = 0
        self.scratch_bytes = 0
        registers = registers_of(self.nodes)
        alike = {found: form_of(found) for found in set(registers.values())}
        self._forms = {node: alike[found] for node, found in registers.items()}
        self._static: dict[UOp, bool] = {}
        self.known = Static()
        self._constants: dict[tuple[UOp, bool, int, tuple[int, ...]], str] = {}
        for node in self.nodes:
            if node.op is ops.CARRY:
                self.carries.setdefault(node.src[0], []).append(node)
        accesses = [node for node in self.nodes if node.op in (ops.LOAD, ops.STORE)]
        self.addresses = {node.src[1]: address(node.src[1]) for node in accesses}
        """The parts of every index."""
        self.used, self.leaves = _uses(self.nodes, self.addresses)
        self.readers = Counter(source for node in self.nodes for source in set(node.src))

    def constants(self) -> list[str]:
        """Definitions beside the function."""
        if not self.zeros:
            return []
        return [f"@zeros = internal constant [{self.zeros} x i8] zeroinitializer, align 64"]

    # --- values ---------------------------------------------------------------------------------

    def form(self, node: UOp) -> Form:
        """The rows and lanes of a node's value (of what it writes, for a STORE)."""
        found = self._forms.get(node)
        if found is None:
            found = self._forms[node] = form_of(node.ranges)
        return found

    def lanes_of(self, node: UOp) -> int:
        """The length of the vector that a node's value is; 0 for a scalar."""
        return self.form(node).lanes

    def is_static(self, node: UOp) -> bool:
        """Whether the value is known now."""
        found = self._static.get(node)
        if found is None:
            found = is_static(node)
            self._static[node] = found
        return found

    def points(self, rows: Sequence[UOp]) -> list[dict[UOp, int]]:
        """Every combination of rows."""
        turns = itertools.product(*[range(extent(r)) for r in rows])
        return [dict(zip(rows, turn, strict=True)) for turn in turns]

    def key(self, node: UOp, at: At) -> tuple[int, ...]:
        """Under which a node's value at these rows is kept."""
        return tuple([at[r] for r in self.form(node).rows])

    def index_bits(self, node: UOp, lanes: int) -> int:
        """The width in which INDEX values of an operation are computed: vectors are narrow where they fit."""
        involved = [n for n in (node, *node.src) if n.dtype is dtypes.index]
        narrow = lanes and all(-(1 << 31) <= n.vmin and n.vmax < 1 << 31 for n in involved)
        return 32 if narrow else 64

    def operand(self, node: UOp, at: At, lanes: int, bits: int) -> str:
        """A node's value at these rows, as a vector of `lanes` (0: a scalar) with INDEX `bits` wide."""
        dtype = node.dtype
        if self.is_static(node):
            return self._known(node, at, lanes, bits)
        if node.op is ops.SCALAR or node.op is ops.RANGE:
            value, own, width = self.values[node][()], 0, 64
        else:
            form = self.form(node)
            value, own = self.values[node][self.key(node, at)], form.lanes
            width = self.index_bits(node, own) if dtype is dtypes.index else 64
        if dtype is dtypes.index and width != bits:
            wide, narrow = type_name(dtype, own, width), type_name(dtype, own, bits)
            value = self.text.once(f"{'trunc' if bits < width else 'sext'} {wide} {value} to {narrow}")
        if lanes and not own:
            return self.text.splat(type_name(dtype, 0, bits), value, lanes)
        return value

    def _known(self, node: UOp, at: At, lanes: int, bits: int) -> str:
        """A constant, whose text is made once."""
        key = (node, lanes > 0, bits, self.key(node, at))
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self._literal(node, at, lanes, bits)
        return found

    def _literal(self, node: UOp, at: At, lanes: int, bits: int) -> str:
        element = type_name(node.dtype, 0, bits)
        lane = self.form(node).lane
        values = [literal(node.dtype, v) for v in self.known.lanes(node, at, lane)]
        if node.op is ops.CONST and node.dtype.is_float:
            values = [float_literal(node.dtype, node.arg)]
        if lane is not None:
            return vector_literal(element, values)
        return f"splat ({element} {values[0]})" if lanes else values[0]

    def argument(self, node: UOp) -> None:
        """Read an argument of the kernel, or find the place of its scratch memory."""
        if node.op is ops.SCRATCH:
            _, size, alignment = node.arg
            start = -(-self.scratch_bytes // alignment) * alignment
            self.scratch_bytes = start + size * node.dtype.itemsize
            self.values[node] = {(): self.text.define(f"getelementptr i8, ptr %scratch, i64 {start}")}
            return
        place = self.text.define(f"getelementptr i64, ptr %args, i64 {node.arg[0]}")
        if node.op is ops.PARAM:
            self.values[node] = {(): self.text.define(f"load ptr, ptr {place}, align 8")}
        else:
            self.values[node] = {(): self._scalar(node.dtype, place)}

    def _scalar(self, dtype: DType, place: str) -> str:
        if not dtype.is_float:
            return self.text.define(f"load {type_name(dtype)}, ptr {place}, align 8") if dtype is not dtypes.bool else (
                self.text.define(f"trunc i8 {self.text.define(f'load i8, ptr {place}, align 8')} to i1"))  # fmt: skip
        return self.text.define(f"load {type_name(dtype)}, ptr {place}, align 8")


def form_of(ranges: Iterable[UOp]) -> Form:
    """The row, lane and unit ranges among these."""
    found = sorted(set(ranges), key=lambda r: r.arg[0])
    rows, units = (tuple([r for r in found if r.arg[1] == kind]) for kind in ("row", "unit"))
    lane = next((r for r in found if r.arg[1] == "lane"), None)
    return Form(rows, lane, units, 0 if lane is None else extent(lane))


def registers_of(nodes: Sequence[UOp]) -> dict[UOp, frozenset[UOp]]:
    """The row, lane and unit ranges over which each listed node varies.

    A state varies over what its first value or its next value varies over, so the list is walked
    until nothing changes.
    """
    found: dict[UOp, frozenset[UOp]] = dict.fromkeys(nodes, _NOTHING)
    steps = {node.src[0]: node for node in nodes if node.op is ops.FOR}
    values = [node for node in nodes if node.op is not ops.FOR and node.op is not ops.RANGE]
    valued = [(node, _value_sources(node, steps)) for node in values]
    changed = True
    while changed:
        changed = False
        for node, sources in valued:
            own = _NOTHING
            for source in sources:
                registers = _known_registers(source, found)
                own = registers if not own else own if registers <= own else own | registers
            if node.op is ops.REDUCE:
                own = own.difference(node.src[1:])
            elif node.op is ops.MMA:
                own = own.difference(node.src[3:])
            changed |= own != found[node]
            found[node] = own
    return found


def _value_sources(node: UOp, steps: Mapping[UOp, UOp]) -> Sequence[UOp]:
    """The nodes whose registers a node's value has."""
    if node.op is ops.CARRY:
        return node.src[1], steps[node.src[0]].src[1 + node.arg]
    if node.op is ops.FINAL:
        return (node.src[0].src[1 + node.arg],)
    if node.op in (ops.LOAD, ops.STORE):
        return node.src[1:]
    return node.src[: {ops.REDUCE: 1, ops.MMA: 3}.get(node.op)]


def _known_registers(node: UOp, found: Mapping[UOp, frozenset[UOp]]) -> frozenset[UOp]:
    known = found.get(node)
    return frozenset(r for r in node.ranges if r.arg[1] in ("lane", "row", "unit")) if known is None else known


def _uses(nodes: Sequence[UOp], addresses: Mapping[UOp, Address]) -> tuple[set[UOp], list[UOp]]:
    """The nodes whose values instructions need, and the arguments and scratch memory in use."""
    used: set[UOp] = set()
    leaves: dict[UOp, None] = {}
    for node in reversed(nodes):
        if node.op in ops.ELEMENTWISE and node not in used:
            continue
        needed = node.src
        if node.op in (ops.LOAD, ops.STORE):
            parts = addresses[node.src[1]]
            needed = (node.src[0], *[p for p in (parts.dynamic, parts.mixed) if p is not None], *node.src[2:])
        for source in needed:
            while source.op is ops.AFTER:
                source = source.src[0]
            used.add(source)
            if source.op in _LEAVES:
                leaves[source] = None
    return used, sorted(leaves, key=lambda n: (n.op.number, n.arg[0]))
