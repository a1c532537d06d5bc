"""Stores whose lanes lie apart in memory while rows lie side by side, as LLVM assembly.

A register tile that goes to memory across its lanes is transposed in registers: its rows are interleaved in pairs
until each output row is contiguous, and then written with a vector store for each lane.  Takes a `STORE` in a list
of instructions; what is not of this form is left to `llvm_memory.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from lazulite.analysis.access import coefficient
from lazulite.emit.llvm_memory import MemoryWriter
from lazulite.emit.llvm_types import type_name
from lazulite.emit.llvm_values import At
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import extent
from lazulite.lower.addresses import address


class TransposeWriter(MemoryWriter):
    """Writes tiles across their lanes."""

    def row_beside_row(self, store: UOp) -> UOp | None:
        """The range of rows whose elements are neighbours in memory, where those of the lanes are not."""
        form = self.form(store)
        parts = address(store.src[1])
        if (
            form.lane is None
            or form.lanes & (form.lanes - 1)
            or store.src[2].dtype is dtypes.bool
            or parts.static is None
        ):
            return None
        if parts.mixed is not None or coefficient(parts.static, form.lane) in (1, -1, None):
            return None
        gates = store.src[3].ranges if len(store.src) > 3 else frozenset()
        beside = [
            r for r in form.rows if coefficient(parts.static, r) == 1 and r not in gates and self._varies(store, r)
        ]
        return beside[0] if beside else None

    def _varies(self, store: UOp, r: UOp) -> bool:
        """Whether the value has rows over the range and is a vector."""
        form = self.form(store.src[2])
        return not self.is_static(store.src[2]) and r in form.rows and form.lane is not None

    def store_across(self, store: UOp, r: UOp, at: At, only: str | None) -> None:
        """Write all rows over `r` at once; `only` is a condition on the whole statement."""
        lanes = self.lanes_of(store)
        gate = self.operand(store.src[3], at, self.lanes_of(store.src[3]), 64) if len(store.src) > 3 else ""
        conditions = [c for c in (only, gate if gate and not self.lanes_of(store.src[3]) else None) if c]
        if conditions:
            inside, after = self.text.label("write"), self.text.label("after")
            condition = conditions[0] if len(conditions) == 1 else self.text.define(f"and i1 {', '.join(conditions)}")
            self.text.branch(condition, inside, after)
            self.text.open(inside)
        for first in range(0, extent(r), lanes):
            self._square(store, r, at, range(first, min(first + lanes, extent(r))))
        if conditions:
            self.text.jump(after)
            self.text.open(after)

    def _square(self, store: UOp, r: UOp, at: At, rows: range) -> None:
        """Write up to as many rows as there are lanes."""
        value, lane = store.src[2], self.form(store).lane
        assert lane is not None
        lanes, width = extent(lane), 1 << (len(rows) - 1).bit_length()
        kind, part = type_name(value.dtype, lanes), type_name(value.dtype, width)
        vectors = [self.operand(value, {**at, r: row}, lanes, 64) for row in rows]
        across = self._transposed(kind, lanes, vectors + ["poison"] * (width - len(rows)))
        place = self.place(store.src[0], store.src[1], {**at, r: rows[0]}, lane)
        size = value.dtype.itemsize
        for number, step in enumerate(place.steps):
            pointer = self.offset(place.pointer, step * size)
            holder, offset = divmod(number * width, lanes)
            data = across[holder]
            if width < lanes:
                picks = ", ".join(f"i32 {offset + turn}" for turn in range(width))
                data = self.text.define(f"shufflevector {kind} {data}, {kind} poison, <{width} x i32> <{picks}>")
            self._write_row(store, at, number, (part, data), pointer, len(rows), width)

    def _write_row(
        self, store: UOp, at: At, lane: int, data: tuple[str, str], pointer: str, rows: int, width: int
    ) -> None:
        """One row of the result: what was in one lane, where the gate of that lane allows."""
        kind, size = data[0], store.src[2].dtype.itemsize
        gated = len(store.src) > 3 and self.lanes_of(store.src[3])
        if rows == width and not gated:
            self.text.line(f"store {kind} {data[1]}, ptr {pointer}, align {size}")
            return
        mask_kind = f"<{width} x i1>"
        mask = "<" + ", ".join(f"i1 {'true' if turn < rows else 'false'}" for turn in range(width)) + ">"
        if gated:
            gates = self.operand(store.src[3], at, gated, 64)
            gate = self.text.once(f"extractelement <{gated} x i1> {gates}, i64 {lane}")
            mask = self.text.define(f"select i1 {gate}, {mask_kind} {mask}, {mask_kind} zeroinitializer")
        operands = [data, ("ptr", pointer), ("i32", str(size)), (mask_kind, mask)]
        self.text.line(self.text.call("@llvm.masked.store", "void", operands, [kind, "ptr"]))

    def _transposed(self, kind: str, lanes: int, vectors: Sequence[str]) -> Sequence[str]:
        """The vectors, read one after another, transposed: rounds that interleave the first half with the second."""
        half = len(vectors) // 2
        picks = [[start + turn // 2 + turn % 2 * lanes for turn in range(lanes)] for start in (0, lanes // 2)]
        rounds = len(vectors).bit_length() - 1
        for _ in range(rounds):
            pairs = [(vectors[i], vectors[i + half]) for i in range(half)]
            vectors = [
                self.text.interleaving(kind, a, pick, b) if (a, b) != ("poison", "poison") else "poison"
                for a, b in pairs
                for pick in picks
            ]
        return vectors
