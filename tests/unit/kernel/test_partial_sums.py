"""Which reductions may stand outside of the loops of their statement."""

import pytest

from lazulite.base.errors import StageError
from lazulite.kernel.apply import apply
from lazulite.kernel.partial_sums import partial_sums
from lazulite.kernel.steps import Reorder, Split, Vectorize
from support.kernels import matmul, softmax

OUTSIDE = Reorder(((2, 0), (0,), (1,)))


def test_the_blocks_of_a_sum_are_found():
    (store,) = apply(matmul(4, 4, 8), (Split((2,), 4), OUTSIDE)).src
    ((_, blocks),) = partial_sums(store)

    assert [(2, 0)] == [r.arg[0][1:] for r in blocks]


def test_a_reduction_inside_has_none():
    assert not partial_sums(apply(matmul(4, 4, 8), ()).src[0])


def test_a_sum_across_lanes_cannot_wait():
    with pytest.raises(StageError, match="cannot wait"):
        apply(matmul(4, 4, 8), (Split((2,), 4), Vectorize((2, 1)), OUTSIDE))


def test_a_reduction_that_another_one_needs_cannot_wait():
    with pytest.raises(StageError, match="cannot wait"):
        apply(softmax(4, 4), (Reorder(((2,), (0,), (1,))),))
