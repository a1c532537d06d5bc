"""Stores whose rows fill the gaps between their lanes, as LLVM assembly: one dense block instead of scattered elements.

This is how an operand is packed or transposed: each row is read along memory, and shuffles put the rows' lanes
side by side.  Where neighbours in the source are neighbours in the copy too, they move as one wider word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lazulite.analysis.access import coefficient
from lazulite.emit.llvm_memory import OPEN, stored_type
from lazulite.emit.llvm_transpose import TransposeWriter
from lazulite.emit.llvm_values import At
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import extent
from lazulite.lower.addresses import address

_MOST_ROWS = 64
_WORD_BYTES = (4, 8)


@dataclass(frozen=True, slots=True)
class _Block:
    """What one dense block is made of."""

    rows: tuple[UOp, ...]
    """The rows between the lanes, the one with the largest step first."""
    word: UOp | None
    """The row whose turns are neighbours on both sides."""

    @property
    def all_rows(self) -> tuple[UOp, ...]:
        return self.rows if self.word is None else (*self.rows, self.word)


class CopyWriter(TransposeWriter):
    """Writes stores of whole blocks."""

    def __init__(self, linear: UOp) -> None:
        super().__init__(linear)
        self._blocks = {node: block for node in self.nodes if (block := self._block(node)) is not None}
        self.moved = frozenset(store.src[2] for store, block in self._blocks.items() if block.word is not None)
        """Loads that are written together with their stores."""

    def row_beside_row(self, store: UOp) -> UOp | None:
        return None if store in self._blocks else super().row_beside_row(store)

    def store_block(self, node: UOp, at: At) -> bool:
        """With the last row of a block, the block; whether the store is part of one."""
        block = self._blocks.get(node)
        if block is None or any(at[r] != extent(r) - 1 for r in block.all_rows):
            return block is not None
        value, lanes = node.src[2], self.form(node).lanes
        size, element = value.dtype.itemsize, stored_type(value.dtype)
        first = {**at, **dict.fromkeys(block.all_rows, 0)}
        points = [{**first, **point} for point in self.points(block.rows)]
        if block.word is None:
            vectors = [self.operand(value, point, lanes, 64) for point in points]
            size, element, vectors = self._widened(size, element, lanes, vectors)
        else:
            group, size = extent(block.word), extent(block.word) * size
            element = f"i{8 * size}"
            vectors = [self.words(value, point, element, group, lanes) for point in points]
        kind = f"<{lanes} x {element}>"
        pointer = self.place(node.src[0], node.src[1], first, self.form(node).lane).pointer
        for number, vector in enumerate(self._interleaved(kind, lanes, vectors)):
            target = self.offset(pointer, number * lanes * size)
            self.text.line(f"store {kind} {vector}, ptr {target}, align {value.dtype.itemsize}")
        return True

    def _widened(self, size: int, element: str, lanes: int, vectors: list[str]) -> tuple[int, str, list[str]]:
        """Pairs of rows as rows of elements twice as large, as long as those are small: fewer shuffles are left."""
        while size < _WORD_BYTES[0] and len(vectors) > 1:
            picks = [lane + lanes * second for lane in range(lanes) for second in (0, 1)]
            kind, wide = f"<{lanes} x {element}>", f"i{16 * size}"
            pairs = [self.text.shuffle(kind, a, picks, b) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
            between = f"<{2 * lanes} x {element}>"
            vectors = [self.text.define(f"bitcast {between} {pair} to <{lanes} x {wide}>") for pair in pairs]
            size, element = 2 * size, wide
        return size, element, vectors

    def words(self, node: UOp, at: At, element: str, group: int, lanes: int) -> str:
        """A load of words of `group` neighbours."""
        place = self.place(node.src[0], node.src[1], at, self.form(node).lane)
        step = None if place.step is None else place.step // group
        gate = self.gate(node.src[2], at) if len(node.src) > 2 else OPEN
        if gate.never:
            return "zeroinitializer"
        place = replace(place, step=step, steps=[s // group for s in place.steps])
        return self.read(place, gate, element, group * node.dtype.itemsize, node.dtype.itemsize, lanes)

    def _interleaved(self, kind: str, lanes: int, vectors: Sequence[str]) -> list[str]:
        """As many vectors: the first lane of each, then the second lane of each, and so on.

        Recursion is as deep as the binary logarithm of their number.
        """
        if len(vectors) == 1:
            return list(vectors)
        halves = [self._interleaved(kind, lanes, vectors[first::2]) for first in (0, 1)]
        picks = [lane + lanes * second for lane in range(lanes) for second in (0, 1)]
        return [self.text.interleaving(kind, a, part, b) for a, b in zip(*halves, strict=True)
                for part in (picks[:lanes], picks[lanes:])]  # fmt: skip

    # --- which stores ---------------------------------------------------------------------------

    def _block(self, node: UOp) -> _Block | None:
        """How a store makes dense blocks; None where it does not."""
        if node.op is not ops.STORE or len(node.src) > 3 or node.src[2].dtype is dtypes.bool:
            return None
        form, parts = self.form(node), address(node.src[1])
        if form.lane is None or form.units or form.lanes % 2 or parts.mixed is not None or parts.static is None:
            return None
        steps = {r: coefficient(parts.static, r) or 0 for r in (form.lane, *form.rows)}
        word = self._word(node, steps)
        between = [r for r in form.rows if 0 < steps[r] < steps[form.lane] and r is not word]
        inner = sorted(between, key=lambda r: steps[r], reverse=True)
        dense = 1 if word is None else extent(word)
        for r in reversed(inner):
            if steps[r] != dense:
                return None
            dense *= extent(r)
        count = dense // (1 if word is None else extent(word))
        if steps[form.lane] != dense or dense == 1 or count & (count - 1) or count > _MOST_ROWS:
            return None
        return _Block(tuple(inner), word)

    def _word(self, node: UOp, steps: dict[UOp, int]) -> UOp | None:
        """The row of a copy whose turns are neighbours in what is read and in what is written."""
        load = node.src[2]
        if load.op is not ops.LOAD or self.readers[load] > 1 or address(load.src[1]).mixed is not None:
            return None
        rows = self.form(load).rows
        word = next((r for r in rows if steps.get(r) == 1 == coefficient(load.src[1], r)), None)
        if word is None or extent(word) * load.dtype.itemsize not in _WORD_BYTES:
            return None
        others = [s for r, s in steps.items() if r is not word]
        others += [coefficient(load.src[1], r) or 0 for r in (*rows, self.form(load).lane) if r not in (word, None)]
        gated = any(word in gate.ranges for gate in load.src[2:])
        return None if gated or any(step % extent(word) for step in others) else word
