"""The table of instructions covers what targets promise."""

from lazulite.emit.llvm_table import NATIVE, UNSIGNED_INDEX
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import target

WRITTEN_OUT = {ops.WHERE, ops.CAST, ops.BITCAST, ops.DOT2}


def test_every_operation_that_a_target_has_is_in_the_table():
    widest = target("CPU:LLVM", ("fma", "sse4.1", "f16c"))
    missing = [(op, dtype) for op, dtype in widest.native
               if op not in WRITTEN_OUT and (op, dtype.kind) not in NATIVE
               and not (op in UNSIGNED_INDEX and dtype is dtypes.index)]  # fmt: skip

    assert [] == missing


def test_every_operation_in_the_table_is_elementwise():
    assert {op for op, _ in NATIVE} <= ops.ELEMENTWISE
