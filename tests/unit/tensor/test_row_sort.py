"""Short rows in one kernel, against NumPy and the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import Context, Tensor, vmap
from lazulite.ir.dtype import by_name
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp
from lazulite.ir.verify import verify
from lazulite.tensor.row_sort import _Form, _kernel, order_of_rows


def ordered(keys: Tensor, positions: Tensor | None = None) -> Tensor:
    return keys._derived(order_of_rows(keys.uop, None if positions is None else positions.uop))


def drawn(shape: tuple[int, int], dtype: str, seed: int, most: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, min(most, np.iinfo(dtype).max), shape).astype(dtype)


@given(
    st.sampled_from([(1, 2), (3, 33), (2, 1000), (40, 130), (1, 5000)]),
    st.sampled_from(["uint8", "uint16", "uint32"]), st.sampled_from([2, 300, 1 << 40]), st.integers(0, 99),
)  # fmt: skip
def test_rows_are_ordered_as_numpy_does_it_stably(shape: tuple[int, int], dtype: str, most: int, seed: int) -> None:
    keys = drawn(shape, dtype, seed, most)
    assert np.argsort(keys, -1, kind="stable").tolist() == ordered(Tensor(keys)).tolist()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads_share_the_rows(threads: int) -> None:
    keys = drawn((500, 200), "uint32", 0, 99)
    with Context(THREADS=threads):
        assert np.argsort(keys, -1, kind="stable").tolist() == ordered(Tensor(keys)).tolist()


def test_positions_that_are_given_are_what_is_ordered() -> None:
    low, high = drawn((3, 90), "uint32", 1, 4), drawn((3, 90), "uint32", 2, 4)
    first = ordered(Tensor(low))
    second = ordered(Tensor(high).gather(1, first), first)
    assert np.lexsort((low, high), axis=-1).tolist() == second.tolist()


@pytest.mark.parametrize("rows", [1, 3])
def test_the_interpreter_runs_the_same_statements(rows: int) -> None:
    keys = drawn((rows, 40), "uint16", 3, 300)
    assert np.argsort(keys, -1, kind="stable").tolist() == ordered(Tensor(keys, device="PYTHON")).tolist()


@pytest.mark.parametrize("rows", [1, 3])
def test_a_row_of_each_example_is_ordered(rows: int) -> None:
    """Also where the kernel has no loop of its own over rows."""
    keys = drawn((5 * rows, 150), "uint16", 4, 300)

    def order(part: Tensor) -> Tensor:
        return ordered(part.reshape(rows, 150)).reshape(part.shape)

    found = vmap(order)(Tensor(keys.reshape(5, rows * 150)))
    assert np.argsort(keys, -1, kind="stable").reshape(5, -1).tolist() == found.tolist()


def test_the_kernel_is_one_of_its_language_and_has_a_text_that_parses_back() -> None:
    from lazulite.ir.parse import parse

    kernel: UOp = _kernel(_Form(3, 20, by_name("uint16"), False))
    verify(kernel, "KERNEL")
    assert to_text(kernel, "KERNEL") == to_text(parse(to_text(kernel, "KERNEL")), "KERNEL")
