"""Estimates count what a kernel says."""

from lazulite.analysis.cost import estimate
from lazulite.ir.dtype import dtypes
from support.kernels import load, loop, matmul, param, sink, softmax, store


def _product(n: int) -> object:
    kernel = matmul(n, n, n)
    value = kernel.src[0].src[2].src[0].src[0]
    return sink(store(param(0, n * n), kernel.src[0].src[1], value))


def test_a_product_of_square_matrices_is_two_n_cubed():
    """A18: N x N matmul is 2N^3."""
    assert 2 * 64**3 == estimate(_product(64)).operations


def test_repeated_reads_are_loaded_often_and_touched_once():
    """A18: re-reads are capped at the buffer."""
    found = estimate(_product(64))

    assert 2 * 4 * 64**3 == found.bytes_loaded
    assert 3 * 4 * 64**2 == found.bytes_touched


def test_a_load_counts_at_every_turn_of_its_statement():
    i, j = loop(0, 8), loop(1, 4)
    kernel = sink(store(param(0, 32), i * 4 + j, load(param(1, 8), i) + load(param(2, 32), i * 4 + j)))
    found = estimate(kernel)

    assert (32, 4 * 64, 4 * 32, 4 * 72) == (
        found.operations, found.bytes_loaded, found.bytes_stored, found.bytes_touched,
    )  # fmt: skip


def test_indices_and_gates_are_free():
    i = loop(0, 8)
    kernel = sink(store(param(0, 8, dtypes.int32), i, load(param(1, 8, dtypes.int32), i * 2, i * 2 < 8)))

    assert 0 == estimate(kernel).operations


def test_a_row_that_is_read_three_times_is_touched_once():
    found = estimate(softmax(4, 16))

    assert (3 * 4 * 64, 2 * 4 * 64) == (found.bytes_loaded, found.bytes_touched)
    assert found.operations > 5 * 64
