"""Matrix units as LLVM assembly: the tile registers of AMX; and dot products of neighbours in each lane of vectors.

A value over two ranges of kind `unit` is a tile: `MMA` multiplies two of them into a third, loads and stores
move them.  All tiles have the full size, so the unit is configured once, where the kernel begins, and
released where it ends.  Registers are handed out here: a state keeps its own through its loops until it is
stored, a factor has one until the end of the loop in which it is loaded.
"""

from __future__ import annotations

from lazulite.analysis.access import coefficient
from lazulite.base.errors import StageError
from lazulite.emit.llvm_compute import ComputeWriter
from lazulite.emit.llvm_table import ADD_PAIRS
from lazulite.emit.llvm_values import At
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.nest import extent

_REGISTERS, _ROWS, _ROW_BYTES, _WORD_BYTES = 8, 16, 64, 4
_CONFIGURATION = bytes([1] + [0] * 15 + [_ROW_BYTES, 0] * _REGISTERS + [0] * 16 + [_ROWS] * _REGISTERS + [0] * 8)
"""Palette 1; bytes in a row of each tile, two bytes each; rows of each tile."""

_MULTIPLY: dict[tuple[DType, DType], str] = {
    (dtypes.bfloat16, dtypes.bfloat16): "tdpbf16ps", (dtypes.float16, dtypes.float16): "tdpfp16ps",
    (dtypes.int8, dtypes.int8): "tdpbssd", (dtypes.int8, dtypes.uint8): "tdpbsud",
    (dtypes.uint8, dtypes.int8): "tdpbusd", (dtypes.uint8, dtypes.uint8): "tdpbuud",
}  # fmt: skip
_DOT = {4: "@llvm.x86.avx512.vpdpbusd.128", 8: "@llvm.x86.avx512.vpdpbusd.256", 16: "@llvm.x86.avx512.vpdpbusd.512"}
"""Adds four products of unsigned and signed bytes to each lane; the vectors of AVX2 have it too, under this name."""


class MatrixWriter(ComputeWriter):
    """Writes what matrix units do."""

    def __init__(self, linear: UOp) -> None:
        super().__init__(linear)
        self.uses_tiles = any(self.form(node).units for node in self.listed[ops.MMA])
        self._free = list(range(_REGISTERS))
        self._borrowed: list[list[int]] = [[]]
        """The registers of the factors that each open loop has loaded, the outermost first."""

    def constants(self) -> list[str]:
        if not self.uses_tiles:
            return super().constants()
        content = "".join(f"\\{byte:02X}" for byte in _CONFIGURATION)
        return [*super().constants(), f'@tiles = internal constant [64 x i8] c"{content}", align 64']

    def configure(self) -> None:
        """Once, before the first tile."""
        if self.uses_tiles:
            self._tell("ldtilecfg", ("ptr", "@tiles"))

    def release(self) -> None:
        """Once, after the last tile."""
        if self.uses_tiles:
            self._tell("tilerelease")

    def enter_loop(self) -> None:
        self._borrowed.append([])

    def leave_loop(self) -> None:
        """What was loaded in the loop is of no use after it."""
        self._free += self._borrowed.pop()

    # --- tiles: the value of a node is the number of a register -----------------------------------

    def first_tile(self, node: UOp, at: At) -> str:
        """Where a sum begins: at zero in a register of its own, or in the register of a sum that goes on."""
        if node.op is not ops.CONST:
            return self.values[node][self.key(node, at)]
        register = self._register(node)
        self._tell("tilezero", ("i8", register))
        return register

    def multiply(self, node: UOp, at: At) -> str:
        """The sum with products added: of tiles, in the register where it began."""
        if not self.form(node).units:
            return self._add_dot_products(node, at)
        start, left, right = node.src[:3]
        total = self.first_tile(start, at)
        factors = [self.values[factor][self.key(factor, at)] for factor in (left, right)]
        self._tell(_MULTIPLY[left.dtype, right.dtype], *[("i8", tile) for tile in (total, *factors)])
        return total

    # --- neighbours in each lane -----------------------------------------------------------------

    def load_neighbours(self, node: UOp, at: At) -> str:
        """Neighbours as words, one for each lane, or one."""
        (group,) = self.form(node).units
        if extent(group) * node.dtype.itemsize != _WORD_BYTES or not node.dtype.is_integral:
            raise StageError(
                "emit.llvm", f"a vector adds words of neighbours, not {extent(group)} of {node.dtype.name}"
            )
        return self.words(node, {**at, group: 0}, "i32", extent(group), self.lanes_of(node))

    def _add_dot_products(self, node: UOp, at: At) -> str:
        """The products of each lane added to it."""
        start, left, right = node.src[:3]
        lanes = self.lanes_of(node)
        types = left.dtype, right.dtype
        total, words = self.operand(start, at, lanes, 64), f"<{lanes} x i32>"
        factors = {factor.dtype: self._neighbours(factor, at, lanes) for factor in (left, right)}
        if set(types) == {dtypes.uint8, dtypes.int8} and lanes in _DOT:
            operands = [(words, value) for value in (total, factors[dtypes.uint8], factors[dtypes.int8])]
            return self.text.define(self.text.call(_DOT[lanes], words, operands, ()))
        if set(types) != {dtypes.int16} or lanes not in ADD_PAIRS:
            names = " by ".join(dtype.name for dtype in types)
            raise StageError("emit.llvm", f"no instruction adds products of {names} in {lanes} lanes")
        return self._add_pairs(total, [self._neighbours(factor, at, lanes) for factor in (right, left)], lanes)

    def _neighbours(self, factor: UOp, at: At, lanes: int) -> str:
        """The neighbours of a factor in every lane."""
        if factor.op is ops.CONST:
            size = factor.dtype.bits
            return f"splat (i32 {sum((factor.arg % (1 << size)) << shift for shift in range(0, 32, size))})"
        value = self.values[factor][self.key(factor, at)]
        return value if self.lanes_of(factor) else self.text.splat("i32", value, lanes)

    def _add_pairs(self, total: str, factors: list[str], lanes: int) -> str:
        """Both products of each lane added to it; one instruction where the target has it."""
        return self.text.define(f"add <{lanes} x i32> {self.dot_of_halves(factors, lanes)}, {total}")

    # --- tiles ------------------------------------------------------------------------------------

    def load_tile(self, node: UOp, at: At) -> str:
        pointer, step = self._tile_place(node, at)
        register = self._register(node)
        self._borrowed[-1].append(int(register))
        self._tell("tileloadd64", ("i8", register), ("ptr", pointer), ("i64", str(step)))
        return register

    def store_tile(self, node: UOp, at: At) -> None:
        pointer, step = self._tile_place(node, at)
        value = node.src[2]
        register = self.values[value][self.key(value, at)]
        self._tell("tilestored64", ("i8", register), ("ptr", pointer), ("i64", str(step)))
        self._free.append(int(register))

    def _register(self, node: UOp) -> str:
        if not self._free:
            raise StageError("emit.llvm", f"{node.op.name} finds all {_REGISTERS} tile registers in use")
        return str(self._free.pop(0))

    def _tile_place(self, node: UOp, at: At) -> tuple[str, int]:
        """The first element of a tile in memory, and the bytes from row to row.

        The range with the largest step counts rows; the others are the elements of a row, side by side.
        """
        units = {r: coefficient(node.src[1], r) or 0 for r in self.form(node).units}
        rows, *inner = sorted(units, key=lambda r: units[r], reverse=True)
        size, beside = node.src[0].dtype.itemsize, 1
        for r in reversed(inner):
            if units[r] != beside:
                raise StageError("emit.llvm", "the elements of a tile's row do not stand side by side")
            beside *= extent(r)
        if extent(rows) != _ROWS or beside * size != _ROW_BYTES:
            raise StageError("emit.llvm", f"a tile has {_ROWS} rows of {_ROW_BYTES} bytes")
        corner = {**at, **dict.fromkeys(units, 0)}
        return self.place(node.src[0], node.src[1], corner, None).pointer, units[rows] * size

    def _tell(self, instruction: str, *operands: tuple[str, str]) -> None:
        self.text.line(self.text.call(f"@llvm.x86.{instruction}", "void", operands, ()))
