"""What the choice of steps wants to know about a kernel follows from its nodes alone."""

from lazulite.ir import ops
from lazulite.ir.target import target
from lazulite.ir.uop import UOp
from lazulite.kernel.facts import KernelFacts
from support.kernels import load, loop, matmul, param, reduce, sink, store

WIDE = target("CPU:LLVM", ("avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"), 48 << 10, 2 << 20)


def test_the_cost_of_a_turn_leaves_out_what_the_loop_does_not_repeat() -> None:
    i, k = loop(0, 10), loop(1, 8)
    once = UOp.apply(ops.SIN, load(param(2, 10), i))
    total = reduce(ops.ADD, load(param(1, 8), k) * once, k)

    assert {total: 1} == KernelFacts(sink(store(param(0, 10), i, total)), WIDE).turn_costs


def test_values_that_vary_with_the_same_ranges_cost_as_much_as_one_after_another() -> None:
    """Work is the same whether instructions are counted one by one or together."""
    i = loop(0, 1024)
    x = load(param(1, 1024), i)
    once, twice = (KernelFacts(sink(store(param(0, 1024), i, value)), WIDE) for value in (x * 2, x * 2 * 3))

    assert 1024 == twice.work(()) - once.work(())
    assert 1024 / WIDE.lanes(x.dtype) == twice.work((i,)) - once.work((i,))


def test_a_matrix_moves_over_no_windows() -> None:
    assert not any(KernelFacts(matmul(8, 8, 8), WIDE).windows.values())
