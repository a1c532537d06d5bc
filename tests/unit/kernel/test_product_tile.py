"""The cheapest tile leaves no thread waiting and fits the registers."""

from lazulite.ir.target import target
from lazulite.kernel.borders import regroup
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.product_tile import Tile, best_tile, panel_share
from support.kernels import convolution, matmul

WIDE = target("CPU:LLVM", ("avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"), 48 << 10, 2 << 20)


def tile_of(facts: KernelFacts) -> Tile:
    tile = best_tile(facts)
    assert tile is not None
    return tile


def test_accumulators_vectors_and_a_scalar_fit_the_registers() -> None:
    for kernel in (
        matmul(64, 96, 32),
        matmul(100, 48, 300),
        convolution(1, 64, 64, 14, 14),
        convolution(1, 512, 512, 7, 7),
    ):
        tile = tile_of(KernelFacts(regroup(kernel), WIDE))
        rows = 1
        for size in tile.rows.values():
            rows *= size

        assert rows * tile.vectors + tile.vectors + 1 <= WIDE.registers


def test_panels_that_threads_share_are_even_in_number() -> None:
    tile = tile_of(KernelFacts(regroup(convolution(1, 512, 512, 7, 7)), WIDE))

    assert 512 // (16 * tile.vectors) % 2 == 0


def test_the_fewer_rows_there_are_the_more_of_the_work_is_the_copy() -> None:
    shares = []
    for images in (1, 4, 16):
        facts = KernelFacts(regroup(convolution(images, 512, 512, 7, 7)), WIDE)
        (weights,) = [load for load in facts.hot if load.src[0].arg[0] == 2]
        shares.append(panel_share(facts, tile_of(facts), weights))

    assert shares == sorted(shares, reverse=True)
    assert 0 < shares[-1] < shares[0] < 0.5


def test_rows_are_along_fewer_ranges_where_the_others_leave_a_rest() -> None:
    """A rest is a tile of its own, with a text of its own."""
    assert [7] == list(tile_of(KernelFacts(regroup(convolution(1, 64, 64, 7, 7)), WIDE)).rows.values())
