"""What is counted: kernels, operations, bytes; and what costs nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lazulite import Context, GlobalCounters, Tensor

CONSTANTS: dict[str, Callable[[], Tensor]] = {
    "full": lambda: Tensor.full((3, 4), 7.5),
    "zeros": lambda: Tensor.zeros(5),
    "ones": lambda: Tensor.ones(2, 3, dtype="int64"),
    "arithmetic": lambda: (Tensor.ones(4) * 3 + 1) / 2,
    "two constants": lambda: Tensor.ones(4) + Tensor.full((4,), 2.0),
    "movement": lambda: Tensor.full((2, 3), 4).reshape(3, 2).permute(1, 0).expand(5, 2, 3).flip(0)[1:3],
    "comparison": lambda: Tensor.zeros(4) < 1,
    "choice": lambda: (Tensor.zeros(4) < 1).where(Tensor.ones(4), 5.0),
    "cast": lambda: Tensor.full((3,), 3.7).cast("int32"),
    "maximum": lambda: Tensor.full((3,), 3).maximum(4),
    "sum": lambda: Tensor.ones(3, 4).sum(),
    "like": lambda: Tensor([1.0, 2.0]).ones_like() * 2,
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_launch_no_kernel(name: str) -> None:
    """A21"""
    GlobalCounters.reset()
    value = CONSTANTS[name]().realize()
    assert (0, 0) == (GlobalCounters.kernel_count, GlobalCounters.programs_compiled)
    elements = set(value.flatten().tolist() if value.shape else [value.item()])
    assert 1 == len(elements) and 0 == GlobalCounters.kernel_count
    with Context(CACHE=0):
        there = CONSTANTS[name]().clone("PYTHON")
        assert elements == set(there.flatten().tolist() if there.shape else [there.item()])


def test_a_constant_among_operands_adds_no_kernel() -> None:
    """A21"""
    x = Tensor([1.0, 2.0, 3.0])
    GlobalCounters.reset()
    assert [4.5, 6.5, 8.5] == (x * Tensor.full((3,), 2.0) + Tensor.ones(3) * 2.5).tolist()
    assert 1 == GlobalCounters.kernel_count


@pytest.mark.parametrize("n", [8, 33, 64])
def test_a_product_of_matrices_is_2_n_cubed_operations(n: int) -> None:
    """A18: whatever steps the kernel has."""
    a, b = Tensor.rand(n, n).realize(), Tensor.rand(n, n).realize()
    for settings in ({}, {"OPT": 0}):
        with Context(CACHE=0, **settings):
            GlobalCounters.reset()
            (a @ b).realize()
            assert 2 * n**3 == GlobalCounters.global_ops
            assert 3 * 4 * n * n == GlobalCounters.global_mem


def test_operations_and_bytes_of_simple_kernels() -> None:
    """A18: memory that is read again counts once."""
    x, y = Tensor.rand(100).realize(), Tensor.rand(100).realize()
    GlobalCounters.reset()
    (x * y + x).realize()
    assert (200, 1200) == (GlobalCounters.global_ops, GlobalCounters.global_mem)
    GlobalCounters.reset()
    x.sum().realize()
    assert 99 <= GlobalCounters.global_ops <= 100 and 404 == GlobalCounters.global_mem
