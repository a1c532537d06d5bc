"""Kernels that are run in chunks, one for each thread: every chunk has all that it needs."""

from __future__ import annotations

import numpy as np
import pytest

from lazulite import Context, Tensor


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n", [64, 66, 129])
def test_what_does_not_depend_on_the_parallel_loop_is_there_in_every_chunk(n: int, threads: int) -> None:
    """A31: the transposed operand's last corner is staged once, before the rows."""
    x = np.random.default_rng(0).normal(0, 2, (n, n)).astype(np.float32)
    with Context(CACHE=0, THREADS=threads):
        a = Tensor(x).realize()
        products = (a.reshape(n, 1, n) * a.T.reshape(1, n, n)).numpy()
    np.testing.assert_array_equal(x[:, None, :] * x.T[None, :, :], products)
