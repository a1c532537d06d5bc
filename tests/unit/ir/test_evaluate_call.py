"""The interpreter runs the bodies of calls."""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.parse import parse
from lazulite.ir.uop import UOp
from lazulite.ir.verify import verify

OUT, X = [UOp(ops.PARAM, dtypes.int32, (), (slot, (3,), "CPU")) for slot in range(2)]
A, B = [UOp(ops.BUFFER, dtypes.int32, (), (number, 0, (3,), "CPU")) for number in range(2)]
MEMORY = {A: [1, 2, 3], B: [10, 20, 30]}
ADD = UOp.sink(OUT.store(OUT + X))


def test_a_kernel_changes_the_memory_it_is_given():
    kernel = parse("kernel\nparam p0 int32[3]\nparam p1 int32[3]\nloop r0 in 0..3\np0[r0] = p1[2 - r0] + 1")
    result = A.after(kernel.call(A, B)) * 2
    verify(result, "TENSOR")

    assert [[62, 42, 22]] == evaluate_tensors([result], MEMORY)


def test_the_calls_of_a_list_run_in_order():
    both = UOp(ops.LINEAR, dtypes.void, (ADD.call(OUT, X), ADD.call(X, OUT))).call(A, B)

    assert [[11, 22, 33], [21, 42, 63]] == evaluate_tensors([A.after(both), B.after(both)], MEMORY)


def test_a_copy_fills_its_destination():
    assert [[10, 20, 30]] == evaluate_tensors([A.after(UOp(ops.COPY, X.dtype, (X,), "CPU").call(A, B))], MEMORY)


def test_a_view_is_read_in_the_state_that_the_stores_left():
    part = UOp(ops.SHRINK, A.dtype, (A,), ((1, 3),))

    assert [[2, 7]] == evaluate_tensors([part.after(UOp(ops.SHRINK, A.dtype, (A,), ((2, 3),)).store(7))], MEMORY)
