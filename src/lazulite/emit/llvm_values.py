"""Operands of a kernel as LLVM assembly: which rows and lanes a value has, and how it is written where it is used.

A value is kept under its rows, as a scalar or a vector over its lane range.  Where another needs it in
more lanes it is spread, where it is known now it is a constant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial

from lazulite.emit.forms import Answers, Form, forms_of
from lazulite.emit.llvm_text import Text
from lazulite.emit.llvm_types import constant, literal, type_name, vector_literal
from lazulite.emit.static import Static
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import extent
from lazulite.lower.addresses import address, is_static

At = Mapping[UOp, int]
"""Which row of each row range is being written."""


Rows = tuple[UOp, ...]
Key = tuple[int, ...]
"""The turns of the rows of a value."""
Row = Callable[[Key], str]
"""What gives a text for a row."""
Operands = str | dict[Key, str] | Row
"""A value at many rows: one text for all of them, those by row, or what gives them."""


class ValueWriter:
    """What writing a kernel shares: the text, and the value of every node."""

    def __init__(self, linear: UOp) -> None:
        self.text = Text()
        self.nodes = linear.src
        self.listed = defaultdict[Op, list[UOp]](list)
        """The nodes of each operation."""
        for node in self.nodes:
            self.listed[node.op].append(node)
        self.closers = {node.src[0]: node for node in self.listed[ops.FOR]}
        """The `FOR` of each loop."""
        self.values: dict[UOp, dict[Key, str]] = {}
        self.carries: dict[UOp, list[UOp]] = {}
        for carry in self.listed[ops.CARRY]:
            self.carries.setdefault(carry.src[0], []).append(carry)
        self.last = ""
        self.aligned: dict[UOp, str] = {}
        """Whether memory that is streamed to begins at a cache line."""
        self.zeros = 0
        self.scratch_bytes = 0
        self.form: Callable[[UOp], Form] = forms_of(self.nodes, self.listed).__getitem__
        """The rows and lanes of a node's value (of what it writes, for a STORE)."""
        self.is_static: Callable[[UOp], bool] = Answers(is_static).__getitem__
        """Whether the value of a node is known now."""
        self.known = Static()
        self._literals: dict[tuple[UOp, int, int, Key], str] = {}
        self.keys = Answers[Rows, list[Key]](lambda rows: _keys_within(rows, rows)).__getitem__
        """Every combination of turns of these rows."""
        accesses = [*self.listed[ops.LOAD], *self.listed[ops.STORE]]
        self.addresses = {place: address(place) for place in {node.src[1]: None for node in accesses}}
        """The parts of every index."""

    def constants(self) -> list[str]:
        """Definitions beside the function."""
        if not self.zeros:
            return []
        return [f"@zeros = internal constant [{self.zeros} x i8] zeroinitializer, align 64"]

    # --- values ---------------------------------------------------------------------------------

    def lanes_of(self, node: UOp) -> int:
        """The length of the vector that a node's value is; 0 for a scalar."""
        return self.form(node).lanes

    def points(self, rows: Rows) -> list[tuple[dict[UOp, int], Key]]:
        """Every combination of rows, and under which a value over them is kept there."""
        return [(dict(zip(rows, key, strict=True)), key) for key in self.keys(rows)]

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
            if each.dtype is dtypes.index and (each.vmin < -(1 << 31) or each.vmax >= 1 << 31):
                return 64
        return 32

    def operand(self, node: UOp, at: At, lanes: int, bits: int) -> str:
        """A node's value at these rows, as a vector of `lanes` (0: a scalar) with INDEX `bits` wide."""
        if node.op is ops.CONST:
            return constant(node.dtype, node.arg, lanes, bits)
        if node not in self.values and self.is_static(node):
            return self._known_operand(node, at, lanes, bits)
        form = self.form(node)
        value = self.values[node][tuple([at[r] for r in form.rows]) if form.rows else ()]
        if node.dtype is dtypes.index and (form.lanes or bits != 64):
            value = self._resized(node, value, form.lanes, bits)
        return self.text.splat(type_name(node.dtype, 0, bits), value, lanes) if lanes and not form.lanes else value

    def number(self, node: UOp) -> str:
        """The value of a node that does not vary over registers, with INDEX 64 bits wide."""
        return self.values[node][()] if node in self.values else self.operand(node, {}, 0, 64)

    def operands(self, node: UOp, lanes: int, bits: int, rows: Rows) -> Operands:
        """What `operand` gives at each of these rows."""
        if node.op is ops.CONST:
            return constant(node.dtype, node.arg, lanes, bits)
        form = self.form(node)
        if node not in self.values and self.is_static(node):
            return self._row_by_row(node, lanes, bits, rows) if form.rows else self.operand(node, {}, lanes, bits)
        if node.dtype is dtypes.index and self.index_bits(node, form.lanes) != bits:
            return self._row_by_row(node, lanes, bits, rows)
        values = self.values[node]
        if form.rows and form.rows != rows:
            own = [values[key] for key in _keys_within(rows, form.rows)]
            values = dict(zip(self.keys(rows), own, strict=True))
        if form.lanes or not lanes:
            return values if form.rows else values[()]
        splat, element = self.text.splat, type_name(node.dtype, 0, bits)
        if form.rows:
            return lambda key: splat(element, values[key], lanes)
        value = values[()]
        return lambda _: splat(element, value, lanes)

    def _row_by_row(self, node: UOp, lanes: int, bits: int, rows: Rows) -> Row:
        """The same for rows with nothing in common."""
        return lambda key: self.operand(node, dict(zip(rows, key, strict=True)), lanes, bits)

    def _resized(self, node: UOp, value: str, lanes: int, bits: int) -> str:
        """An INDEX that is `bits` wide."""
        width = self.index_bits(node, lanes)
        if width == bits:
            return value
        old, new = (type_name(dtypes.index, lanes, each) for each in (width, bits))
        return self.text.once(f"{'trunc' if bits < width else 'sext'} {old} {value} to {new}")

    def _known_operand(self, node: UOp, at: At, lanes: int, bits: int) -> str:
        """That of a node that is known now."""
        asked = node, lanes, bits, self.key(node, at)
        found = self._literals.get(asked)
        if found is None:
            lane, element = self.form(node).lane, type_name(node.dtype, 0, bits)
            spelled = str if node.dtype is dtypes.index else partial(literal, node.dtype)
            values = list(map(spelled, self.known.lanes(node, at, lane)))
            found = values[0] if lane is None and not lanes else vector_literal(element, values)
            self._literals[asked] = found
        return found

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


def _keys_within(rows: Rows, some: Rows) -> list[Key]:
    """At every combination of turns of rows those of some of them."""
    keys: list[Key] = [()]
    for r in rows:
        turns = [(turn,) if r in some else () for turn in range(extent(r))]
        keys = [key + turn for key in keys for turn in turns]
    return keys


def row_of(operands: Operands) -> Row:
    """The same for values of any form."""
    if isinstance(operands, str):
        return lambda _: operands
    return operands.__getitem__ if isinstance(operands, dict) else operands
