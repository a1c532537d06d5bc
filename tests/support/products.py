"""Matrix products of narrow types as kernels, with what they must give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp
from support.kernels import Memory, load, loop, param, reduce, sink, store

BFLOAT16 = (dtypes.bfloat16, dtypes.bfloat16, dtypes.float32)
TYPES = (
    BFLOAT16, (dtypes.float16, dtypes.float16, dtypes.float32), (dtypes.int8, dtypes.int8, dtypes.int32),
    (dtypes.uint8, dtypes.uint8, dtypes.uint32), (dtypes.int8, dtypes.uint8, dtypes.int32),
    (dtypes.uint8, dtypes.int8, dtypes.int32),
)  # fmt: skip
"""The types of the left and the right factor and of the sum."""


@dataclass(frozen=True)
class Product:
    """relu(left @ right + bias) in `result`, the sums in the last of `types`; operands may be stored transposed."""

    rows: int
    columns: int
    depth: int
    types: tuple[DType, DType, DType] = BFLOAT16
    result: DType | None = None
    left_transposed: bool = False
    right_transposed: bool = False
    bias: bool = False
    batch: int = 1

    @property
    def kernel(self) -> UOp:
        m, n, k, (left, right, total) = self.rows, self.columns, self.depth, self.types
        b, i, j, p = loop(0, self.batch), loop(1, m), loop(2, n), loop(3, k)
        x = load(param(1, self.batch * m * k, left), b * (m * k) + (p * m + i if self.left_transposed else i * k + p))
        y = load(param(2, self.batch * k * n, right), b * (k * n) + (j * k + p if self.right_transposed else p * n + j))
        value = reduce(ops.ADD, x.cast(total) * y.cast(total), p)
        if self.bias:
            value = (value + load(param(3, n, total), j)).maximum(0)
        result = self.result or total
        return sink(store(param(0, self.batch * m * n, result), b * (m * n) + i * n + j, value.cast(result)))

    def check(self, memory: Memory, found: np.ndarray) -> None:
        """Integers are exact; floats within what each rounding of the sum and one of the result explain."""
        x, y = memory[1].astype(np.float64), memory[2].astype(np.float64)
        b, m, n, k = self.batch, self.rows, self.columns, self.depth
        x = x.reshape(b, k, m).transpose(0, 2, 1) if self.left_transposed else x.reshape(b, m, k)
        y = y.reshape(b, n, k).transpose(0, 2, 1) if self.right_transposed else y.reshape(b, k, n)
        exact, size = x @ y, np.abs(x) @ np.abs(y)
        if self.bias:
            exact, size = np.maximum(exact + memory[3], 0), size + np.abs(memory[3])
        if not self.types[2].is_float:
            np.testing.assert_array_equal(found, exact.ravel())
            return
        result = self.result or self.types[2]
        rounding = 2.0 ** -(result.mantissa_bits + 1) if result.bits < 32 else 0.0
        bound = (k + 2) * 2.0**-24 * size + rounding * np.abs(exact)
        assert (np.abs(found.astype(np.float64) - exact.ravel()) <= bound.ravel()).all()
