"""A reduction outside of the loops of its statement adds blocks to what it has left in the result."""

from random import Random

from lazulite.ir import ops
from lazulite.ir.target import host
from lazulite.kernel.apply import apply
from lazulite.kernel.steps import Reorder, Split
from lazulite.lower.accumulate import accumulate
from support.kernels import assert_close, compiled, interpreted, listed, lowered, matmul, random_memory

STEPS = (Split((2,), 4), Reorder(((2, 0), (0,), (1,))))


def test_no_reduction_is_left_over_the_blocks():
    kernel = accumulate(apply(matmul(3, 5, 8), STEPS))
    (total,) = listed(kernel, ops.REDUCE)

    assert [(2, 1)] == [r.arg[0][1:] for r in total.src[1:]]


def test_the_first_block_reads_nothing_and_the_last_one_finishes():
    kernel = matmul(3, 5, 8)
    before = next(n for n in listed(accumulate(apply(kernel, STEPS)), ops.LOAD) if n.src[0] is kernel.src[0].src[0])

    assert 3 == len(before.src)
    assert 1 == len(listed(accumulate(apply(kernel, STEPS)), ops.WHERE))


def test_blocks_of_unequal_length_compute_the_same():
    """The last block ends early."""
    kernel = matmul(3, 5, 10)
    memory = random_memory(kernel, Random(2))
    lowered(kernel, host(), STEPS)

    assert_close(interpreted(kernel, memory), compiled(kernel, host(), STEPS, memory))


def test_other_kernels_stay_as_they_are():
    kernel = apply(matmul(3, 5, 8), ())

    assert kernel is accumulate(kernel)
