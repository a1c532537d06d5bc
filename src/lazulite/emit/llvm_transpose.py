"""Stores whose rows lie side by side in memory while their lanes lie apart, as LLVM assembly: blocks, transposed.

This is how an operand is packed or transposed, and how a tile of results goes to memory across its lanes: the vectors
of the rows are joined and interleaved until what belongs together stands together, and then written with as few
stores as the steps between the lanes allow.  Where neighbours in the source are neighbours in a copy too, they move
as one wider word.  Takes a `STORE` in a list of instructions; what is not of this form is left to `llvm_memory.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lazulite.analysis.access import coefficient
from lazulite.emit.llvm_memory import OPEN, MemoryWriter, Place, stored_type
from lazulite.emit.llvm_values import At, Key
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import count, extent

_MOST_ROWS = 64
_WORD_BYTES = (4, 8)
_PIECE_BYTES = 64
"""What a row of the result may fill, so that it stays a register."""


@dataclass(frozen=True, slots=True)
class _Block:
    """What is written together."""

    rows: tuple[UOp, ...]
    """The rows side by side, the one with the largest step first."""
    word: UOp | None
    """The row whose turns are neighbours on both sides."""

    @property
    def all_rows(self) -> tuple[UOp, ...]:
        return self.rows if self.word is None else (*self.rows, self.word)


class TransposeWriter(MemoryWriter):
    """Writes stores of whole blocks."""

    def __init__(self, linear: UOp) -> None:
        super().__init__(linear)
        self.blocks = {store: block for store in self.listed[ops.STORE] if (block := self._block(store)) is not None}
        self.moved = frozenset(store.src[2] for store, block in self.blocks.items() if block.word is not None)
        """Loads that are written together with their stores."""

    def store_blocks(self, node: UOp, only: str | None) -> Callable[[Key], None]:
        """What writes one of the `blocks` with the last of its rows; `only` is a condition on the whole statement."""
        rows, block = self.form(node).rows, self.blocks[node]
        ends = [(rows.index(r), extent(r) - 1) for r in block.all_rows]

        def write(key: Key) -> None:
            if all(key[place] == last for place, last in ends):
                self._store_block(node, block, dict(zip(rows, key, strict=True)), only)

        return write

    def _store_block(self, node: UOp, block: _Block, at: At, only: str | None) -> None:
        """A block, where its gate and `only` allow."""
        gate = self.gate(node.src[3], at) if len(node.src) > 3 else OPEN
        conditions = [c for c in (only, gate.text if not gate.vector else "") if c]
        if gate.never:
            return
        if not conditions:
            self._write_block(node, block, at)
            return
        inside, after = self.text.label("write"), self.text.label("after")
        condition = conditions[0] if len(conditions) == 1 else self.text.define(f"and i1 {', '.join(conditions)}")
        self.text.branch(condition, inside, after)
        self.text.open(inside)
        self._write_block(node, block, at)
        self.text.jump(after)
        self.text.open(after)

    def _write_block(self, node: UOp, block: _Block, at: At) -> None:
        value, lanes = node.src[2], self.form(node).lanes
        size, element = value.dtype.itemsize, stored_type(value.dtype)
        first = {**at, **dict.fromkeys(block.all_rows, 0)}
        points = [{**first, **point} for point, _ in self.points(block.rows)]
        if block.word is None:
            vectors = [self._stored(value, point, lanes) for point in points]
        else:
            group, size = extent(block.word), extent(block.word) * size
            element = f"i{8 * size}"
            vectors = [self.words(value, point, element, group, lanes) for point in points]
        size, element, vectors = self._widened(size, element, lanes, vectors)
        place = self.place(node.src[0], node.src[1], first, self.form(node).lane)
        most = _PIECE_BYTES // size
        for start in range(0, len(vectors), most):
            part = place._replace(pointer=self.offset(place.pointer, start * size))
            self._write_rows(node, at, part, (size, element), vectors[start : start + most])

    def _stored(self, value: UOp, at: At, lanes: int) -> str:
        """A vector of what goes to memory: of bools bytes."""
        vector = self.operand(value, at, lanes, 64)
        if value.dtype is not dtypes.bool:
            return vector
        return self.text.define(f"zext <{lanes} x i1> {vector} to <{lanes} x i8>")

    def _write_rows(self, node: UOp, at: At, place: Place, kind: tuple[int, str], vectors: list[str]) -> None:
        """As many rows as a register holds."""
        (size, element), alignment = kind, node.src[2].dtype.itemsize
        lanes, width = self.form(node).lanes, 1 << (len(vectors) - 1).bit_length()
        length, parts = self._transposed(element, lanes, [*vectors, *["poison"] * (width - len(vectors))])
        gated = len(node.src) > 3 and self.lanes_of(node.src[3]) > 0
        if len(vectors) == width and place.step is not None and place.step * alignment == width * size and not gated:
            for number, part in enumerate(parts):
                pointer = self.offset(place.pointer, number * length * size)
                self.text.line(f"store <{length} x {element}> {part}, ptr {pointer}, align {alignment}")
            return
        for lane, step in enumerate(place.steps):
            number, start = divmod(lane * width, length)
            piece = parts[number]
            if width < length:
                piece = self.text.shuffle(f"<{length} x {element}>", piece, range(start, start + width))
            pointer = self.offset(place.pointer, step * alignment)
            self._write_piece(node, at, lane, (f"<{width} x {element}>", piece), pointer, len(vectors), width)

    def _write_piece(
        self, store: UOp, at: At, lane: int, data: tuple[str, str], pointer: str, rows: int, width: int
    ) -> None:
        """What was in one lane of all rows, where the gate of that lane allows."""
        kind, size = data[0], store.src[2].dtype.itemsize
        gated = self.lanes_of(store.src[3]) if len(store.src) > 3 else 0
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

    # --- registers ------------------------------------------------------------------------------

    def _widened(self, size: int, element: str, lanes: int, vectors: list[str]) -> tuple[int, str, list[str]]:
        """Pairs of rows as rows of elements twice as large, as long as those are small: fewer shuffles are left."""
        while size < _WORD_BYTES[0] and len(vectors) % 2 == 0:
            picks = [lane + lanes * second for lane in range(lanes) for second in (0, 1)]
            kind, wide = f"<{lanes} x {element}>", f"i{16 * size}"
            pairs = [self.text.shuffle(kind, a, picks, b) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
            between = f"<{2 * lanes} x {element}>"
            vectors = [self.text.define(f"bitcast {between} {pair} to <{lanes} x {wide}>") for pair in pairs]
            size, element = 2 * size, wide
        return size, element, vectors

    def _transposed(self, element: str, lanes: int, vectors: list[str]) -> tuple[int, list[str]]:
        """The first lane of each vector, then the second lane of each, and so on: vectors of which length, and which.

        Rows that are shorter than their number are joined, those that are as many apart as there are lanes, which
        leaves squares side by side.  Then rounds interleave the first half with the second.
        """
        length = lanes
        while len(vectors) > lanes:
            pairs = [(i, i + lanes) for i in range(len(vectors)) if i // lanes % 2 == 0]
            vectors = [self._joined(element, length, vectors[i], vectors[k]) for i, k in pairs]
            length *= 2
        half, kind, squares = len(vectors) // 2, f"<{length} x {element}>", range(0, length, lanes)
        picks = [
            tuple(
                [square + turn // 2 + turn % 2 * length for square in squares for turn in range(start, start + lanes)]
            )
            for start in (0, lanes)
        ]
        for _ in range(len(vectors).bit_length() - 1):
            halves = zip(vectors[:half], vectors[half:], strict=True)
            vectors = [
                self.text.interleaving(kind, a, pick, b) if (a, b) != ("poison", "poison") else "poison"
                for a, b in halves
                for pick in picks
            ]
        return length, vectors

    def _joined(self, element: str, length: int, left: str, right: str) -> str:
        if (left, right) == ("poison", "poison"):
            return "poison"
        return self.text.shuffle(f"<{length} x {element}>", left, range(2 * length), right)

    def words(self, node: UOp, at: At, element: str, group: int, lanes: int) -> str:
        """A load of words of `group` neighbours."""
        place = self.place(node.src[0], node.src[1], at, self.form(node).lane)
        step = None if place.step is None else place.step // group
        gate = self.gate(node.src[2], at) if len(node.src) > 2 else OPEN
        if gate.never:
            return "zeroinitializer"
        place = place._replace(step=step, steps=[s // group for s in place.steps])
        return self.read(place, gate, element, group * node.dtype.itemsize, node.dtype.itemsize, lanes)

    # --- which stores ---------------------------------------------------------------------------

    def _block(self, node: UOp) -> _Block | None:
        """What a store writes together; None where its lanes are neighbours, or none of its rows are."""
        if self.is_static(node.src[2]):
            return None
        form, parts = self.form(node), self.addresses[node.src[1]]
        if form.lane is None or form.units or form.lanes & (form.lanes - 1) or self.form(node.src[2]).lane is None:
            return None
        if parts.mixed is not None or parts.static is None:
            return None
        step = coefficient(parts.static, form.lane)
        if step in (0, 1, -1, None):
            return None
        gates = node.src[3].ranges if len(node.src) > 3 else frozenset()
        steps = {r: coefficient(parts.static, r) or 0 for r in form.rows if r not in gates}
        copies = not gates and node.src[2].dtype is not dtypes.bool
        word = self._word(node, {**steps, form.lane: step}) if copies else None
        return self._side_by_side(steps, word, step)

    def _side_by_side(self, steps: dict[UOp, int], word: UOp | None, step: int) -> _Block | None:
        """The rows that fill a stretch of memory without gaps, none of which reaches the next lane."""
        rows: list[UOp] = []
        wide = 1 if word is None else extent(word)
        for r in sorted(steps, key=lambda r: steps[r]):
            if steps[r] == wide and wide * extent(r) <= abs(step) and count(rows) * extent(r) <= _MOST_ROWS:
                rows.append(r)
                wide *= extent(r)
        if wide == 1:
            return None
        return _Block(tuple(rows[::-1]), word)

    def _word(self, node: UOp, steps: dict[UOp, int]) -> UOp | None:
        """The row of a copy whose turns are neighbours in what is read and in what is written."""
        load = node.src[2]
        if load.op is not ops.LOAD or self.addresses[load.src[1]].mixed is not None:
            return None
        rows = self.form(load).rows
        word = next((r for r in rows if steps.get(r) == 1 == coefficient(load.src[1], r)), None)
        if word is None or extent(word) * load.dtype.itemsize not in _WORD_BYTES:
            return None
        others = [s for r, s in steps.items() if r is not word]
        others += [coefficient(load.src[1], r) or 0 for r in (*rows, self.form(load).lane) if r not in (word, None)]
        gated = any(word in gate.ranges for gate in load.src[2:])
        if gated or any(step % extent(word) for step in others):
            return None
        return word if all(reader is node for reader in self.nodes if load in reader.src) else None
