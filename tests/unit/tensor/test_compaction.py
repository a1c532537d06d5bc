"""Positions of true elements without gaps, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import Context, Tensor
from lazulite.tensor import compaction


@given(st.sampled_from([1, 2, 65, 1000]), st.floats(0, 1), st.sampled_from([0, 1, 40, 2000]), st.integers(0, 99))
def test_blocks_side_by_side_give_numpys_positions(room: int, share: float, size: int, seed: int) -> None:
    flags = np.random.default_rng(seed).random(room) < share
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "_BLOCK", 8)
        found = Tensor(flags).nonzero(size=size, fill_value=-1)
    assert [*np.flatnonzero(flags).tolist(), *[-1] * size][:size] == found.flatten().tolist()


def test_positions_do_not_depend_on_the_number_of_threads() -> None:
    flags = np.random.default_rng(0).random(200_000) < 0.5
    for threads in (1, 2, 4):
        with Context(THREADS=threads):
            found = Tensor(flags).nonzero(size=150_000, fill_value=-1).numpy()
        expected = np.flatnonzero(flags)
        assert expected.tolist() == found[: len(expected), 0].tolist()
        assert (found[len(expected) :] == -1).all()


def test_the_interpreter_compacts_as_the_processor_does() -> None:
    flags = np.random.default_rng(1).random(50) < 0.5
    assert np.flatnonzero(flags).tolist() == Tensor(flags, device="PYTHON").nonzero(int(flags.sum())).flatten().tolist()
