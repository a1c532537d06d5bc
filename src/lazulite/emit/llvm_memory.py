"""Memory access of a kernel as LLVM assembly: addresses, loads, stores and their gates.

An address is a pointer that varies with loops plus an offset in bytes known now, which becomes part of
the instruction.  By its step from lane to lane an access is contiguous, reversed, or a gather; an
access without lanes is scalar and is spread over lanes where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lazulite.emit.forms import form_of
from lazulite.emit.llvm_table import REGISTER_BYTES
from lazulite.emit.llvm_types import literal, type_name, vector_literal
from lazulite.emit.llvm_values import At, Key, Row, ValueWriter, row_of
from lazulite.emit.static import stride
from lazulite.ir.blocks import memory_of
from lazulite.ir.bounds import linear
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import extent


class Place(NamedTuple):
    """Where an access goes: a pointer, and how lanes step from it."""

    pointer: str
    step: int | None
    """The step from lane to lane in elements; None where it is not constant."""
    steps: Sequence[int]
    """The position of each lane in elements, as far as it is known now."""
    positions: str
    """The rest of it, a vector of INDEX; empty where there is none."""
    bits: int


class Gate(NamedTuple):
    """Where an access may happen: a bool or a vector of them; empty text for everywhere."""

    text: str
    vector: bool
    never: bool
    only: int | None = None
    """The lane where it may, if it is known that there is but one."""


OPEN = Gate("", False, False)
_NEAR = (2, 4)
"""Steps at which reading what lies between is cheaper than a gather."""


_GATHERED = 4
"""Bytes of the smallest elements that processors gather."""


def stored_type(dtype: DType) -> str:
    """The type of an element in memory."""
    return "i8" if dtype is dtypes.bool else type_name(dtype)


def fills_lines(store: UOp) -> bool:
    """Whether a store of vectors writes whole registers at multiples of their size from where its memory begins."""
    lane = form_of(store.src[1].ranges).lane
    size = (extent(lane) if lane is not None else 1) * store.src[2].dtype.itemsize
    form = linear(store.src[1])
    steps = [form.constant, *[factor for term, factor in form.terms.items() if term is not lane]]
    return size in REGISTER_BYTES and all(step * store.src[2].dtype.itemsize % size == 0 for step in steps)


class MemoryWriter(ValueWriter):
    """Writes loads and stores."""

    def load(self, node: UOp, at: At) -> str:
        """Read memory where the gate allows, zero elsewhere."""
        lanes = self.form(node).lanes
        place = self.place(node.src[0], node.src[1], at, self.form(node).lane)
        gate = self.gate(node.src[2], at) if len(node.src) > 2 else OPEN
        element = stored_type(node.dtype)
        kind = f"<{lanes} x {element}>" if lanes else element
        if gate.never:
            return literal(node.dtype, 0) if not lanes else "zeroinitializer"
        if node.arg and lanes and place.step == 1:
            self._prefetch(self.offset(place.pointer, node.arg * node.dtype.itemsize))
        if (picks := self._window(node, at, place, gate)) is not None:
            value = self._window_load(place, gate, element, node.dtype.itemsize, picks)
        else:
            value = self.read(place, gate, element, node.dtype.itemsize, node.dtype.itemsize, lanes)
        if node.dtype is dtypes.bool:
            value = self.text.define(f"icmp ne {kind} {value}, zeroinitializer")
        return value

    def loads(self, node: UOp) -> Row | None:
        """What reads a row of a plain load; None for any other."""
        if len(node.src) > 2 or node.arg or node.dtype is dtypes.bool or self.form(node).units:
            return None
        pointer, define = self._pointers_of_rows(node), self.text.define
        if pointer is None:
            return None
        kind, size = type_name(node.dtype, self.form(node).lanes), node.dtype.itemsize
        return lambda key: define(f"load {kind}, ptr {pointer(key)}, align {size}")

    def stores(self, node: UOp) -> Callable[[Key], None] | None:
        """What writes a row of a plain store; None for any other."""
        value, form = node.src[2], self.form(node)
        if len(node.src) > 3 or node.arg == "stream" or value.dtype is dtypes.bool or form.units:
            return None
        pointer = self._pointers_of_rows(node)
        if pointer is None:
            return None
        line, data = self.text.line, row_of(self.operands(value, form.lanes, 64, form.rows))
        kind, size = type_name(value.dtype, form.lanes), value.dtype.itemsize

        def write(key: Key) -> None:
            place = pointer(key)
            line(f"store {kind} {data(key)}, ptr {place}, align {size}")

        return write

    def _pointers_of_rows(self, access: UOp) -> Callable[[Key], str] | None:
        """What gives the pointer of each row, as far from a pointer of the block as is known now; None where it is
        not, and where lanes are no neighbours."""
        parts, form, size = self.addresses[access.src[1]], self.form(access), access.src[0].dtype.itemsize
        if parts.mixed is not None:
            return None
        lines = self.known.lines(parts.static, form.rows, form.lane)
        if lines is None or (form.lane is not None and lines[1] != 1):
            return None
        text, once = self.text, self.text.once
        texts = [f", i64 {start * size}" if start else "" for start in lines[0]]
        offsets = dict(zip(self.keys(form.rows), texts, strict=True))
        base = block = ""

        def pointer(key: Key) -> str:
            nonlocal base, block
            if block != text.block:
                base, block = self.start(access.src[0], parts.dynamic), text.block
            offset = offsets[key]
            return once(f"getelementptr i8, ptr {base}{offset}") if offset else base

        return pointer

    def read(self, place: Place, gate: Gate, element: str, size: int, alignment: int, lanes: int) -> str:
        """A scalar (no lanes) or a vector, by the cheapest way that its steps and its gate leave."""
        kind = f"<{lanes} x {element}>" if lanes else element
        if not lanes or (place.step in (1, -1) and not gate.vector):
            return self._simple_load(place, gate, kind, size, alignment, lanes)
        if place.step in _NEAR and lanes % place.step == 0 and not gate.vector:
            return self._strided_load(place, gate, element, size, alignment, lanes)
        if place.step == 1:
            return self._call_load("@llvm.masked.load", kind, ("ptr", place.pointer), gate, alignment, lanes)
        pointers = self._pointers(place, element, lanes)
        if size < _GATHERED and alignment == size:
            return self._narrow_gather(pointers, gate, kind, size, lanes)
        return self._call_load("@llvm.masked.gather", kind, (f"<{lanes} x ptr>", pointers), gate, alignment, lanes)

    def _narrow_gather(self, pointers: str, gate: Gate, kind: str, size: int, lanes: int) -> str:
        """Elements that no instruction gathers, out of the aligned words in which they lie.

        A word is in the page of its element, so what lies around that may be read wherever it belongs.
        """
        text, longs, words, whole = self.text, f"<{lanes} x i64>", f"<{lanes} x i32>", f"<{lanes} x i{8 * size}>"
        addresses = text.define(f"ptrtoint <{lanes} x ptr> {pointers} to {longs}")
        aligned = text.define(f"and {longs} {addresses}, splat (i64 {-_GATHERED})")
        inside = text.define(f"and {longs} {addresses}, splat (i64 {_GATHERED - 1})")
        bits = text.define(f"shl {longs} {inside}, splat (i64 3)")
        shifts = text.define(f"trunc {longs} {bits} to {words}")
        places = (f"<{lanes} x ptr>", text.define(f"inttoptr {longs} {aligned} to <{lanes} x ptr>"))
        found = self._call_load("@llvm.masked.gather", words, places, gate, _GATHERED, lanes)
        value = text.define(f"trunc {words} {text.define(f'lshr {words} {found}, {shifts}')} to {whole}")
        return value if whole == kind else text.define(f"bitcast {whole} {value} to {kind}")

    def _simple_load(self, place: Place, gate: Gate, kind: str, size: int, alignment: int, lanes: int) -> str:
        pointer = self.offset(place.pointer, (1 - lanes) * size) if lanes and place.step == -1 else place.pointer
        if gate.text:
            self.zeros = max(self.zeros, size * max(lanes, 1))
            pointer = self.text.define(f"select i1 {gate.text}, ptr {pointer}, ptr @zeros")
        value = self.text.define(f"load {kind}, ptr {pointer}, align {alignment}")
        return self.text.shuffle(kind, value, range(lanes - 1, -1, -1)) if lanes and place.step == -1 else value

    def _strided_load(self, place: Place, gate: Gate, element: str, size: int, alignment: int, lanes: int) -> str:
        """Whole vectors between the first and the last element, of which every step-th is kept."""
        step = place.step or 1
        kind, last, each = f"<{lanes} x {element}>", (lanes - 1) * (step - 1), lanes // step
        starts = [min(part * lanes, last) for part in range(step)]
        windows = [place._replace(pointer=self.offset(place.pointer, start * size), step=1) for start in starts]
        parts = [self._simple_load(window, gate, kind, size, alignment, lanes) for window in windows]
        kept = [[lane * step - start for lane in range(part * each, part * each + each)]
                for part, start in enumerate(starts)]  # fmt: skip
        pairs = [self.text.shuffle(kind, parts[p], [*kept[p], *[lanes + k for k in kept[p + 1]]], parts[p + 1])
                 for p in range(0, step, 2)]  # fmt: skip
        while len(pairs) > 1:
            width = lanes // len(pairs)
            half = f"<{width} x {element}>"
            pairs = [self.text.shuffle(half, pairs[p], range(2 * width), pairs[p + 1]) for p in range(0, len(pairs), 2)]
        return pairs[0]

    def _window(self, node: UOp, at: At, place: Place, gate: Gate) -> list[int | None] | None:
        """From which element each lane reads (None: from none), if it is known now and two vectors hold them all.

        None where there is a plainer way.
        """
        lane = self.form(node).lane
        if lane is None or place.positions or place.step == 1 or (place.step in (-1, *_NEAR) and not gate.vector):
            return None
        if gate.vector and not self.is_static(node.src[2]):
            return None
        steps = list(place.steps) * (extent(lane) if len(place.steps) == 1 else 1)
        allowed = self.known.lanes(node.src[2], at, lane) if gate.vector else [True] * len(steps)
        picks = [step if open_ else None for step, open_ in zip(steps, allowed, strict=True)]
        read = [step for step in picks if step is not None]
        return picks if max(read) - min(read) < 2 * len(picks) else None

    def _window_load(self, place: Place, gate: Gate, element: str, size: int, picks: list[int | None]) -> str:
        """Lanes picked from the first and the last elements of a window, which are as many vectors as it takes."""
        lanes, read = len(picks), [step for step in picks if step is not None]
        first, span = min(read), max(read) - min(read) + 1
        count = min(lanes, 1 << (span.bit_length() - 1))
        pointer = self.offset(place.pointer, first * size)
        if gate.text and not gate.vector:
            self.zeros = max(self.zeros, size * span)
            pointer = self.text.define(f"select i1 {gate.text}, ptr {pointer}, ptr @zeros")
        kind, last = f"<{count} x {element}>", span - count
        ends = [self.text.define(f"load {kind}, ptr {self.offset(pointer, skipped * size)}, align {size}")
                for skipped in ((0, last) if last else (0,))]  # fmt: skip
        lanes_of_ends = [
            0 if p is None else p - first if p - first < count else p - first - last + count for p in picks
        ]
        value = self.text.shuffle(kind, ends[0], lanes_of_ends, ends[-1])
        if None in picks:
            mask = vector_literal("i1", ["false" if p is None else "true" for p in picks])
            whole = f"<{lanes} x {element}>"
            value = self.text.define(f"select <{lanes} x i1> {mask}, {whole} {value}, {whole} zeroinitializer")
        return value

    def _call_load(self, name: str, kind: str, place: tuple[str, str], gate: Gate, alignment: int, lanes: int) -> str:
        mask = (f"<{lanes} x i1>", self._mask(gate, lanes))
        operands = [place, ("i32", str(alignment)), mask, (kind, "zeroinitializer")]
        return self.text.define(self.text.call(name, kind, operands, [kind, place[0]]))

    def _prefetch(self, pointer: str) -> None:
        """Ask for a line of data to be brought near, for reading."""
        operands = [("ptr", pointer), ("i32", "0"), ("i32", "3"), ("i32", "1")]
        self.text.line(self.text.call("@llvm.prefetch", "void", operands, ["ptr"]))

    def store(self, node: UOp, at: At, only: str | None) -> None:
        """Write memory where the gate allows; `only` is a further condition on the whole statement."""
        form = self.form(node)
        lanes, value = form.lanes, node.src[2]
        place = self.place(node.src[0], node.src[1], at, form.lane)
        gate = self.gate(node.src[3], at) if len(node.src) > 3 else OPEN
        if gate.never:
            return
        data = self.operand(value, at, lanes, 64)
        if value.dtype is dtypes.bool:
            source, result = type_name(dtypes.bool, lanes), f"<{lanes} x i8>" if lanes else "i8"
            data = self.text.define(f"zext {source} {data} to {result}")
        if node.arg == "stream" and not gate.text and not only and place.step == 1 and fills_lines(node):
            self._stream(node.src[0], place, data, value.dtype, lanes)
            return
        conditions = [c for c in (only, gate.text if not gate.vector else "") if c]
        if not conditions:
            self._write(place, gate, data, value.dtype, lanes)
            return
        inside, after = self.text.label("write"), self.text.label("after")
        condition = conditions[0] if len(conditions) == 1 else self.text.define(f"and i1 {', '.join(conditions)}")
        self.text.branch(condition, inside, after)
        self.text.open(inside)
        self._write(place, gate, data, value.dtype, lanes)
        self.text.jump(after)
        self.text.open(after)

    def _stream(self, memory: UOp, place: Place, data: str, dtype: DType, lanes: int) -> None:
        """Past the caches, which takes an aligned place; the memory begins at one unless it came from elsewhere."""
        past, through, after = (self.text.label(p) for p in ("past", "through", "after"))
        kind = f"<{lanes} x {stored_type(dtype)}>"
        self.text.branch(self.aligned[memory], past, through)
        self.text.open(past)
        alignment = lanes * dtype.itemsize
        self.text.line(f"store {kind} {data}, ptr {place.pointer}, align {alignment}, !nontemporal !0")
        self.text.jump(after)
        self.text.open(through)
        self._write(place, OPEN, data, dtype, lanes)
        self.text.jump(after)
        self.text.open(after)

    def _write(self, place: Place, gate: Gate, data: str, dtype: DType, lanes: int) -> None:
        """Store data.

        One lane alone is written as a number: of a masked store of truncated data where one bit of the mask is set
        the code generator makes one that is as wide as the data was before.
        """
        element, size = stored_type(dtype), dtype.itemsize
        kind = f"<{lanes} x {element}>" if lanes else element
        if gate.only is not None and place.step == 1:
            data = self.text.define(f"extractelement {kind} {data}, i64 {gate.only}")
            place, gate = Place(self.offset(place.pointer, gate.only * size), 0, [0], "", 64), OPEN
            kind, lanes = element, 0
        mask = gate if gate.vector else OPEN
        if lanes and place.step == -1 and not mask.vector:
            data = self.text.shuffle(kind, data, range(lanes - 1, -1, -1))
            place = Place(self.offset(place.pointer, (1 - lanes) * size), 1, place.steps, "", 64)
        if not lanes or (place.step == 1 and not mask.vector):
            self.text.line(f"store {kind} {data}, ptr {place.pointer}, align {size}")
            return
        masked: list[tuple[str, str]] = [("i32", str(size)), (f"<{lanes} x i1>", self._mask(mask, lanes))]
        if place.step == 1:
            target, name = ("ptr", place.pointer), "@llvm.masked.store"
        else:
            target, name = (f"<{lanes} x ptr>", self._pointers(place, element, lanes)), "@llvm.masked.scatter"
        self.text.line(self.text.call(name, "void", [(kind, data), target, *masked], [kind, target[0]]))

    # --- addresses and gates --------------------------------------------------------------------

    def place(self, memory: UOp, index: UOp, at: At, lane: UOp | None) -> Place:
        """Where an access goes at these rows."""
        parts = self.addresses[index]
        pointer, mixed = self.start(memory, parts.dynamic), parts.mixed
        if mixed is not None and not self.lanes_of(mixed):
            position = self.operand(mixed, at, 0, 64)
            pointer = self.text.once(f"getelementptr {stored_type(memory.dtype)}, ptr {pointer}, i64 {position}")
            mixed = None
        if mixed is not None:
            lanes = self.lanes_of(mixed)
            bits = self.index_bits(mixed, lanes)
            steps = [int(v) for v in self.known.lanes(parts.static, at, lane)] if parts.static is not None else [0]
            return Place(pointer, None, steps, self.operand(mixed, at, lanes, bits), bits)
        return self._known_place(pointer, parts.static, at, lane, memory.dtype.itemsize)

    def start(self, memory: UOp, position: UOp | None) -> str:
        """A pointer to an element of memory that does not vary over registers."""
        pointer = self.values[memory_of(memory)][()]
        if position is None:
            return pointer
        place = self.number(position)
        return self.text.once(f"getelementptr {stored_type(memory.dtype)}, ptr {pointer}, i64 {place}")

    def _known_place(self, pointer: str, static: UOp | None, at: At, lane: UOp | None, size: int) -> Place:
        """So far from a pointer as is known now."""
        if static is None:
            return Place(pointer, 0, [0], "", 64)
        varies = lane is not None and lane in static.ranges
        line = self.known.line(static, at, lane)
        if line is not None:
            first, step = line
            steps: Sequence[int] = range(0, step * extent(lane), step) if varies and lane is not None and step else [0]
            return Place(self.offset(pointer, first * size), step, steps, "", 64)
        places = [int(v) for v in self.known.lanes(static, at, lane)]
        steps = [place - places[0] for place in places]
        return Place(self.offset(pointer, places[0] * size), stride(places) if varies else 0, steps, "", 64)

    def offset(self, pointer: str, amount: int) -> str:
        return self.text.once(f"getelementptr i8, ptr {pointer}, i64 {amount}") if amount else pointer

    def _pointers(self, place: Place, element: str, lanes: int) -> str:
        """A pointer for each lane."""
        kind = f"<{lanes} x i{place.bits}>"
        steps = list(place.steps) * (lanes if len(place.steps) == 1 else 1)
        constant = vector_literal(f"i{place.bits}", [str(s) for s in steps])
        positions = place.positions or constant
        if place.positions and any(steps):
            positions = self.text.once(f"add {kind} {place.positions}, {constant}")
        return self.text.once(f"getelementptr {element}, ptr {place.pointer}, {kind} {positions}")

    def gate(self, node: UOp, at: At) -> Gate:
        """Whether an access may happen at these rows."""
        lanes = self.lanes_of(node)
        if self.is_static(node):
            known: list[Scalar] = self.known.lanes(node, at, self.form(node).lane)
            if all(known):
                return OPEN
            if not any(known):
                return Gate("", False, True)
            if lanes and sum(map(bool, known)) == 1:
                return Gate(self.operand(node, at, lanes, 64), True, False, known.index(True))
        return Gate(self.operand(node, at, lanes, 64), bool(lanes), False)

    def _mask(self, gate: Gate, lanes: int) -> str:
        if not gate.text:
            return "splat (i1 true)"
        return gate.text if gate.vector else self.text.splat("i1", gate.text, lanes)
