"""The cheapest tile leaves no thread waiting and fits the registers."""

from collections.abc import Callable

from lazulite.ir import ops
from lazulite.ir.target import target
from lazulite.ir.uop import UOp
from lazulite.kernel.borders import regroup
from lazulite.kernel.facts import KernelFacts
from lazulite.kernel.plan import rows_of
from lazulite.kernel.product_tile import Tile, best_tile, panel_share
from support.kernels import convolution, load, loop, matmul, param, reduce, sink, store

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


def test_dear_work_beside_a_sum_takes_rows_that_fill_the_vectors_of_memory() -> None:
    """Where tiles lie across memory, what is made of them is computed along their rows."""

    def rows(made: Callable[[UOp], UOp]) -> int:
        i, j, t = loop(0, 32), loop(1, 1024), loop(2, 64)
        total = reduce(ops.ADD, load(param(1, 2048), i * 64 + t) * load(param(2, 65536), j * 64 + t), t)
        tile = tile_of(KernelFacts(regroup(sink(store(param(0, 32768), i * 1024 + j, made(total)))), WIDE))
        (r,) = tile.rows
        return rows_of(r, tile.rows[r])

    assert 16 == rows(lambda total: UOp.apply(ops.EXP, UOp.apply(ops.EXP, total)))
    assert 16 > rows(lambda total: total)
