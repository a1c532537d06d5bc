"""Operands of a kernel as LLVM assembly: which rows and lanes a value has, and how it is written where it is used.

A value is kept under its rows, as a scalar or a vector over its lane range.  Where another needs it in
more lanes it is spread, where it is known now it is a constant.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from lazulite.emit.llvm_text import Text
from lazulite.emit.llvm_types import float_literal, literal, type_name, vector_literal
from lazulite.emit.static import Static
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import by_order, extent
from lazulite.lower.addresses import address, is_static

_NOTHING: frozenset[UOp] = frozenset()
_REGISTERS = ("lane", "row", "unit")
_UNTOLD = frozenset({ops.CARRY, ops.FINAL, ops.LOAD, ops.STORE})
"""What may vary over other registers than those among its ranges."""
_LOOP = (ops.RANGE, ops.FOR)
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

    @property
    def is_scalar(self) -> bool:
        """Whether it is one number."""
        return self.lane is None and not self.rows and not self.units


Key = tuple[int, ...]
"""The turns of the rows of a value."""
_Use = tuple[tuple[UOp, ...], dict[Key, str] | None, str, str]
"""How a value becomes what an instruction wants: its rows; what was written of it, if it is known now, else None; the
instruction that changes its width, and the type of the scalar that goes to every lane, where these are needed."""


Row = Callable[[At, Key], str]
"""What gives a text for a row."""
Operands = str | dict[Key, str] | Row
"""A value at many rows: one text for all of them, those by row, or what gives them."""


Q = TypeVar("Q")
A = TypeVar("A")


class Answers(dict[Q, A]):
    """Answers to one question, each found when it is first asked."""

    def __init__(self, answer: Callable[[Q], A]) -> None:
        super().__init__()
        self._answer = answer

    def __missing__(self, asked: Q) -> A:
        found = self[asked] = self._answer(asked)
        return found


class ValueWriter:
    """What writing a kernel shares: the text, and the value of every node."""

    def __init__(self, linear: UOp) -> None:
        self.text = Text()
        self.nodes = linear.src
        self.values: dict[UOp, dict[Key, str]] = {}
        self.carries: dict[UOp, list[UOp]] = {}
        self.last = ""
        self.aligned: dict[UOp, str] = {}
        """Whether memory that is streamed to begins at a cache line."""
        self.zeros = 0
        self.scratch_bytes = 0
        alike, told = Answers(form_of), Answers(_registers)
        forms = Answers[UOp, Form](lambda node: alike[told[node.ranges]])
        forms.update({node: alike[registers] for node, registers in registers_of(self.nodes, told).items()})
        self.form: Callable[[UOp], Form] = forms.__getitem__
        """The rows and lanes of a node's value (of what it writes, for a STORE)."""
        self.is_static: Callable[[UOp], bool] = Answers(is_static).__getitem__
        """Whether the value of a node is known now."""
        self.known = Static()
        self._uses: dict[tuple[UOp, int, int], _Use] = {}
        self._points: dict[tuple[UOp, ...], list[tuple[dict[UOp, int], Key]]] = {}
        for node in self.nodes:
            if node.op is ops.CARRY:
                self.carries.setdefault(node.src[0], []).append(node)
        accesses = [node for node in self.nodes if node.op is ops.LOAD or node.op is ops.STORE]
        self.addresses = {node.src[1]: address(node.src[1]) for node in accesses}
        """The parts of every index."""

    @cached_property
    def readers(self) -> Counter[UOp]:
        """How many nodes have each as a source."""
        return Counter(source for node in self.nodes for source in set(node.src))

    def constants(self) -> list[str]:
        """Definitions beside the function."""
        if not self.zeros:
            return []
        return [f"@zeros = internal constant [{self.zeros} x i8] zeroinitializer, align 64"]

    # --- values ---------------------------------------------------------------------------------

    def lanes_of(self, node: UOp) -> int:
        """The length of the vector that a node's value is; 0 for a scalar."""
        return self.form(node).lanes

    def points(self, rows: tuple[UOp, ...]) -> list[tuple[dict[UOp, int], Key]]:
        """Every combination of rows, and under which a value over them is kept there."""
        found = self._points.get(rows)
        if found is None:
            turns = itertools.product(*[range(extent(r)) for r in rows])
            found = self._points[rows] = [(dict(zip(rows, turn, strict=True)), turn) for turn in turns]
        return found

    def points_of(self, node: UOp) -> list[tuple[dict[UOp, int], Key]]:
        """Those of a node's value."""
        return self.points(self.form(node).rows)

    def key(self, node: UOp, at: At) -> Key:
        """Under which a node's value at these rows is kept."""
        return tuple([at[r] for r in self.form(node).rows])

    def index_bits(self, node: UOp, lanes: int) -> int:
        """The width in which INDEX values of an operation are computed: vectors are narrow where they fit."""
        if not lanes:
            return 64
        for each in (node, *node.src):
            if each.dtype is dtypes.index and not (-(1 << 31) <= each.vmin and each.vmax < 1 << 31):
                return 64
        return 32

    def operand(self, node: UOp, at: At, lanes: int, bits: int) -> str:
        """A node's value at these rows, as a vector of `lanes` (0: a scalar) with INDEX `bits` wide."""
        rows, texts, resized, spread = self._used_as(node, lanes, bits)
        key = tuple([at[r] for r in rows]) if rows else ()
        if texts is not None:
            known = texts.get(key)
            if known is None:
                known = texts[key] = self._literal(node, at, lanes, bits)
            return known
        value = self.values[node][key]
        if resized:
            value = self.text.once(resized.format(value))
        return self.text.splat(spread, value, lanes) if spread else value

    def operands(self, node: UOp, lanes: int, bits: int, rows: tuple[UOp, ...]) -> Operands:
        """What `operand` gives at each of these rows."""
        own, texts, resized, spread = self._used_as(node, lanes, bits)
        if texts is not None and not own:
            return texts.get(()) or self.operand(node, {}, lanes, bits)
        if texts is not None or resized:
            return lambda at, _: self.operand(node, at, lanes, bits)
        values = self.values[node]
        if not spread:
            return values if own == rows else values[()] if not own else _at(values, own)
        splat = self.text.splat
        if own == rows:
            return lambda _, key: splat(spread, values[key], lanes)
        return lambda at, _: splat(spread, values[tuple([at[r] for r in own])], lanes)

    def _used_as(self, node: UOp, lanes: int, bits: int) -> _Use:
        use = self._uses.get((node, lanes, bits))
        if use is None:
            use = self._uses[node, lanes, bits] = self._use(node, lanes, bits)
        return use

    def _use(self, node: UOp, lanes: int, bits: int) -> _Use:
        form, dtype = self.form(node), node.dtype
        if self.is_static(node):
            return form.rows, {}, "", ""
        rows, own = ((), 0) if node.op in (ops.SCALAR, ops.RANGE) else (form.rows, form.lanes)
        spread = type_name(dtype, 0, bits) if lanes and not own else ""
        width = self.index_bits(node, own) if dtype is dtypes.index else bits
        if width == bits:
            return rows, None, "", spread
        change = "trunc" if bits < width else "sext"
        return rows, None, f"{change} {type_name(dtype, own, width)} {{}} to {type_name(dtype, own, bits)}", spread

    def _literal(self, node: UOp, at: At, lanes: int, bits: int) -> str:
        dtype = node.dtype
        element = type_name(dtype, 0, bits)
        if node.op is ops.CONST:
            value = float_literal(dtype, node.arg) if dtype.is_float else literal(dtype, node.arg)
        else:
            lane = self.form(node).lane
            values = [literal(dtype, v) for v in self.known.lanes(node, at, lane)]
            if lane is not None:
                return vector_literal(element, values)
            (value,) = values
        return f"splat ({element} {value})" if lanes else value

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


def _at(values: Mapping[Key, str], rows: tuple[UOp, ...]) -> Row:
    """The values by rows of their own."""
    return lambda at, _: values[tuple([at[r] for r in rows])]


def row_of(operands: Operands) -> Row:
    """The same for values of any form."""
    if isinstance(operands, str):
        return lambda _, __: operands
    if isinstance(operands, dict):
        return lambda _, key: operands[key]
    return operands


def form_of(ranges: Iterable[UOp]) -> Form:
    """The row, lane and unit ranges among these."""
    found: dict[str, list[UOp]] = {"row": [], "lane": [], "unit": []}
    for r in by_order(ranges):
        if r.arg[1] in found:
            found[r.arg[1]].append(r)
    lane = found["lane"][0] if found["lane"] else None
    return Form(tuple(found["row"]), lane, tuple(found["unit"]), 0 if lane is None else extent(lane))


def registers_of(nodes: Sequence[UOp], told: Mapping[frozenset[UOp], frozenset[UOp]]) -> dict[UOp, frozenset[UOp]]:
    """The row, lane and unit ranges of listed nodes, but for those whose own ranges tell; `told` gives them of these.

    A state varies over what its first value or its next value varies over, so what depends on one is walked until that
    of no state changes.  An access varies as its place does, and not as what has filled the memory.
    """
    found: dict[UOp, frozenset[UOp]] = {}
    for node in nodes:
        if node.op in _UNTOLD or (node.op not in _LOOP and not found.keys().isdisjoint(node.src)):
            found[node] = _NOTHING
    steps = {node.src[0]: node for node in nodes if node.op is ops.FOR}
    valued = [(node, _value_sources(node, steps)) for node in found]
    states = [(node, sources) for node, sources in valued if node.op is ops.CARRY]

    def over(node: UOp, sources: Iterable[UOp]) -> frozenset[UOp]:
        own = _NOTHING
        for source in sources:
            known = found.get(source)
            if known is None:
                known = told[source.ranges]
            own = known if not own else own if known <= own else own | known
        if node.op is ops.REDUCE:
            return own.difference(node.src[1:])
        return own.difference(node.src[3:]) if node.op is ops.MMA else own

    while True:
        for node, sources in valued:
            found[node] = over(node, sources)
        if all(found[node] == over(node, sources) for node, sources in states):
            return found


def _registers(ranges: frozenset[UOp]) -> frozenset[UOp]:
    return frozenset([r for r in ranges if r.arg[1] in _REGISTERS])


def _value_sources(node: UOp, steps: Mapping[UOp, UOp]) -> Sequence[UOp]:
    """The nodes whose registers a node's value has."""
    if node.op is ops.CARRY:
        return node.src[1], steps[node.src[0]].src[1 + node.arg]
    if node.op is ops.FINAL:
        return (node.src[0].src[1 + node.arg],)
    if node.op in (ops.LOAD, ops.STORE):
        return node.src[1:]
    return node.src[: {ops.REDUCE: 1, ops.MMA: 3}.get(node.op)]
