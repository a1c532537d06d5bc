"""A batched kernel does for each example what the kernel does for one."""

from __future__ import annotations

import pytest

from lazulite.autograd.batching_kernels import batched_kernel
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.evaluate_kernel import run_kernel
from lazulite.ir.uop import UOp
from lazulite.ir.verify import verify


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("size", [1, 3])
def test_each_example_has_memory_of_its_own(shared: bool, size: int) -> None:
    """Running sums, which have an order, of numbers that may be the same for all."""
    sums, numbers = [UOp(ops.PARAM, dtypes.int32, (), (slot, (4,), "")) for slot in (0, 1)]
    i = UOp.range(4, 0)
    kernel = UOp.sink(sums[i].store(sums[i] + numbers[i] * 2))
    many = batched_kernel(kernel, {0} if shared else {0, 1}, size)
    verify(many, "KERNEL")
    memory = {0: list(range(4 * size)), 1: list(range(4 if shared else 4 * size))}
    expected = [n + 2 * (n % 4 if shared else n) for n in memory[0]]

    run_kernel(many, memory, {})

    assert expected == memory[0]
