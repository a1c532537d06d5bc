"""Elementwise operations, conversions and reductions inside registers as LLVM assembly.

One instruction (or a few) for each row; the table of `llvm_table.py` says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from lazulite.emit.forms import form_of
from lazulite.emit.llvm_table import ADD_PAIRS, NATIVE, RANGE_CONTROL, REGISTER_BYTES, UNSIGNED_INDEX, instruction
from lazulite.emit.llvm_transpose import TransposeWriter
from lazulite.emit.llvm_types import type_name
from lazulite.emit.llvm_values import At, Row, row_of
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.target import Target
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import extent


def native(target: Target) -> Callable[[UOp], bool]:
    """Which nodes `Writer` can write for this target."""

    def writes(node: UOp) -> bool:
        op = node.op
        if op is ops.WHERE:
            return True
        if op is ops.BITCAST:  # a bool is a byte in memory, and one bit in a register
            return (node.dtype is dtypes.bool) is (node.src[0].dtype is dtypes.bool)
        if op is ops.CAST:
            return _converts(target, node.src[0].dtype, node.dtype)
        if op is ops.DOT2:
            lanes = form_of(node.ranges).lanes
            return lanes in ADD_PAIRS and 4 * lanes <= target.vector_bytes
        if op is ops.SCALEB and form_of(node.ranges).lanes * node.dtype.itemsize not in REGISTER_BYTES:
            return False
        if op in (ops.SHL, ops.SHR) and node.dtype is not dtypes.index:
            count = node.src[1]
            return count.vmin >= 0 and count.vmax < node.dtype.bits
        return target.has(op, node.src[0].dtype)

    return writes


def _converts(target: Target, source: DType, result: DType) -> bool:
    if dtypes.float16 in (source, result):  # the instructions convert from and to float32 only
        return dtypes.float32 in (source, result) and target.has(ops.CAST, dtypes.float16)
    return target.has(ops.CAST, source) and target.has(ops.CAST, result)


POSITIONS = {ops.ADD: "add", ops.MUL: "mul"}
"""What positions in memory are made of, on numbers that do not vary over registers."""
_Instruction = str | Callable[..., str]
"""What writes an operation with the texts of its operands: an instruction with braces for them, or a function."""
_Written = tuple[Sequence[tuple[UOp, int, int]], _Instruction]
"""The operands of a node, each with the lanes and bits that it is wanted in, and what writes it."""


class ComputeWriter(TransposeWriter):
    """Writes what is computed from values in registers."""

    def position(self, node: UOp, _: At) -> str:
        """One of `POSITIONS`.

        Where it comes from a counter it is hidden from the code generator, which else looks for a better split of
        addresses than they already have, in each loop anew.
        """
        left, right = map(self.number, node.src)
        result = self.text.define(f"{POSITIONS[node.op]} i64 {left}, {right}")
        counts = ops.RANGE in [source.op for source in node.src]
        return self.text.define(f"freeze i64 {result}") if counts else result

    def element(self, node: UOp, at: At) -> str:
        """A row of an elementwise node."""
        operands, write = self._written(node)
        texts = [self.operand(source, at, lanes, bits) for source, lanes, bits in operands]
        return self.text.define(write.format(*texts)) if isinstance(write, str) else write(*texts)

    def elements(self, node: UOp) -> Row:
        """The same for a node of many rows, with what they share found once."""
        operands, write = self._written(node)
        rows, define = self.form(node).rows, self.text.define
        found = [self.operands(source, lanes, bits, rows) for source, lanes, bits in operands]
        if not isinstance(write, str):
            each = list(map(row_of, found))
            return lambda key: write(*[row(key) for row in each])
        varied = [row_of(texts) for texts in found if not isinstance(texts, str)]
        spelled = write.format
        if len(varied) < len(found):
            spelled = spelled(*[texts if isinstance(texts, str) else "{}" for texts in found]).format
        return lambda key: define(spelled(*[row(key) for row in varied]))

    def _written(self, node: UOp) -> _Written:
        lanes = self.form(node).lanes
        bits = self.index_bits(node, lanes)
        operands = [(source, lanes, bits) for source in node.src]
        if node.op is ops.WHERE:
            operands[0] = node.src[0], self.lanes_of(node.src[0]), 64
        found = instruction(node.op, node.dtype, node.src[0].dtype, operands[0][1], lanes, bits)
        if found is None:
            return operands, self._function(node, lanes, bits)
        self.text.declarations.update(found.declared)
        return operands, found.text

    def _function(self, node: UOp, lanes: int, bits: int) -> Callable[..., str]:
        """What writes an operation that is no instruction."""
        op, kind = node.op, type_name(node.src[0].dtype, lanes, bits)
        if op in UNSIGNED_INDEX:
            return partial(self._divide, node, kind, lanes)
        if op is ops.CAST:
            half = dtypes.float16 in (node.dtype, node.src[0].dtype)
            return partial(self._half, new=node.dtype, lanes=lanes) if half else lambda value: value
        if op is ops.DOT2:
            return lambda *factors: self.dot_of_halves(factors, lanes)
        if op is ops.SCALEB:
            return lambda *operands: self._in_register("scalef", operands, kind, node.dtype, lanes)
        return partial(self._combine, op, node.dtype, lanes, kind)

    def dot_of_halves(self, factors: Sequence[str], lanes: int) -> str:
        """The sums of the products of neighbours of 16 bits in each of the lanes of 32."""
        words, halves = f"<{lanes} x i32>", f"<{2 * lanes} x i16>"
        pairs = [(halves, self.text.once(f"bitcast {words} {factor} to {halves}")) for factor in factors]
        return self.text.define(self.text.call(ADD_PAIRS[lanes], words, pairs, ()))

    def _half(self, value: str, new: DType, lanes: int) -> str:
        """Between float32 and half, whose values are bits."""
        half, bits, full = (f"<{lanes} x {t}>" if lanes else t for t in ("half", "i16", "float"))
        if new is dtypes.float16:
            value = self.text.define(f"fptrunc {full} {value} to {half}")
            return self.text.define(f"bitcast {half} {value} to {bits}")
        value = self.text.define(f"bitcast {bits} {value} to {half}")
        return self.text.define(f"fpext {half} {value} to {full}")

    def _in_register(
        self, name: str, operands: Sequence[str], kind: str, dtype: DType, lanes: int, control: int | None = None
    ) -> str:
        """An instruction of AVX-512 on a whole register: without a mask, rounded as usual."""
        bits = lanes * dtype.bits
        controls = [] if control is None else [("i32", str(control))]
        rest = [(kind, "zeroinitializer"), (f"i{max(lanes, 8)}", "-1"), *([("i32", "4")] if bits == 512 else [])]
        intrinsic = f"@llvm.x86.avx512.mask.{name}.p{'s' if dtype is dtypes.float32 else 'd'}.{bits}"
        values = [(kind, operand) for operand in operands]
        return self.text.define(self.text.call(intrinsic, kind, [*values, *controls, *rest], []))

    def _extreme(self, op: Op, dtype: DType, lanes: int, kind: str, pair: list[str]) -> str:
        """The larger or smaller number, in the smallest register that holds the lanes."""
        wide = next((n for b in REGISTER_BYTES if (n := b // dtype.itemsize) >= lanes), 0)
        if not wide:
            return self.text.define(self.text.call(NATIVE[op, "float"], kind, [(kind, each) for each in pair], [kind]))
        whole = [self.text.resized(type_name(dtype), value, lanes, wide) for value in pair]
        result = self._in_register("range", whole, type_name(dtype, wide), dtype, wide, RANGE_CONTROL[op])
        return self.text.resized(type_name(dtype), result, wide, lanes)

    def _divide(self, node: UOp, kind: str, lanes: int, x: str, y: str) -> str:
        """INDEX // and %, which round down; the divisor is positive."""
        if node.src[0].vmin >= 0:
            return self.text.define(f"{UNSIGNED_INDEX[node.op]} {kind} {x}, {y}")
        rest = self.text.define(f"srem {kind} {x}, {y}")
        past = self.text.define(f"icmp slt {kind} {rest}, zeroinitializer")
        gate = type_name(dtypes.bool, lanes)
        if node.op is ops.MOD:
            lifted = self.text.define(f"add {kind} {rest}, {y}")
            return self.text.define(f"select {gate} {past}, {kind} {lifted}, {kind} {rest}")
        quotient = self.text.define(f"sdiv {kind} {x}, {y}")
        less = self.text.define(f"sext {gate} {past} to {kind}")
        return self.text.define(f"add {kind} {quotient}, {less}")

    # --- reductions inside registers ------------------------------------------------------------

    def reduce(self, node: UOp) -> None:
        """Rows pairwise, then lanes pairwise: a fixed tree."""
        value, ranges, op = node.src[0], node.src[1:], node.arg[0]
        rows = tuple(r for r in ranges if r.arg[1] == "row")
        lane = next((r for r in ranges if r.arg[1] == "lane"), None)
        lanes = extent(lane) if lane is not None else self.form(value).lanes
        bits = self.index_bits(node, lanes)
        results = {}
        for at, key in self.points_of(node):
            parts = [self.operand(value, {**at, **more}, lanes, bits) for more, _ in self.points(rows)]
            kind = type_name(value.dtype, lanes, bits)
            total = self._tree(op, value.dtype, lanes, kind, parts)
            if lane is not None:
                total = self._across(op, value.dtype, total, lanes, bits)
            results[key] = total
        self.values[node] = results

    def _tree(self, op: Op, dtype: DType, lanes: int, kind: str, parts: list[str]) -> str:
        while len(parts) > 1:
            pairs = [self._combine(op, dtype, lanes, kind, a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
            parts = pairs + parts[len(pairs) * 2 :]
        return parts[0]

    def _across(self, op: Op, dtype: DType, vector: str, lanes: int, bits: int) -> str:
        """Halves of the vector combined until one lane is left; an odd lane waits at the end.

        Where no tree is better than another the code generator chooses.  It also takes a tree of halves of products
        of bytes for its dot product, of which it then forgets all lanes but the first.
        """
        scalar = type_name(dtype, 0, bits)
        if not dtype.is_float:
            kind, name = type_name(dtype, lanes, bits), NATIVE[op, dtype.kind].removeprefix("@llvm.")
            return self.text.define(self.text.call(f"@llvm.vector.reduce.{name}", scalar, [(kind, vector)], [kind]))
        waiting = []
        while lanes > 1:
            kind, half = type_name(dtype, lanes, bits), lanes // 2
            if lanes % 2:
                waiting.append(self.text.define(f"extractelement {kind} {vector}, i64 {lanes - 1}"))
            low = self.text.shuffle(kind, vector, range(half))
            high = self.text.shuffle(kind, vector, range(half, 2 * half))
            vector, lanes = self._combine(op, dtype, half, type_name(dtype, half, bits), low, high), half
        first = self.text.define(f"extractelement {type_name(dtype, 1, bits)} {vector}, i64 0")
        return self._tree(op, dtype, 0, scalar, [first, *waiting])

    def _combine(self, op: Op, dtype: DType, lanes: int, kind: str, left: str, right: str) -> str:
        if op in RANGE_CONTROL:
            return self._extreme(op, dtype, lanes, kind, [left, right])
        form = NATIVE[op, dtype.kind]
        if form.startswith("@"):
            return self.text.define(self.text.call(form, kind, [(kind, left), (kind, right)], [kind]))
        return self.text.define(f"{form} {kind} {left}, {right}")
