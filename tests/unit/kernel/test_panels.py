"""An operand in panels is known by its index, where it is a factor of a sum as it is."""

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.kernel.borders import regroup
from lazulite.kernel.panels import panels
from support.kernels import load, loop, param, reduce, sink, store

ROW, COLUMN, TURN = loop(0, 8), loop(1, 64), loop(2, 5)
IN_PANELS = load(param(2, 320), COLUMN // 32 * 160 + TURN * 32 + COLUMN % 32)


def product(right: UOp) -> UOp:
    return reduce(ops.ADD, load(param(1, 40), ROW * 5 + TURN) * right, TURN)


def test_it_is_found_with_the_range_and_the_width() -> None:
    assert panels([product(IN_PANELS)]) == {IN_PANELS: (COLUMN, 32)}


def test_what_is_converted_or_lies_in_rows_is_none() -> None:
    rows = load(param(2, 320), TURN * 64 + COLUMN)
    few_bits = load(param(2, 320, dtypes.int8), COLUMN // 32 * 160 + TURN * 32 + COLUMN % 32).cast(dtypes.float32)

    assert panels([product(rows), product(few_bits)]) == {}


def test_its_range_stays_whole_for_a_tile_to_cut() -> None:
    kernel = sink(store(param(0, 512), ROW * 64 + COLUMN, product(IN_PANELS)))
    converted = load(param(2, 320, dtypes.int8), COLUMN // 32 * 160 + TURN * 32 + COLUMN % 32).cast(dtypes.float32)
    other = sink(store(param(0, 512), ROW * 64 + COLUMN, product(converted)))

    assert COLUMN in regroup(kernel).ranges | {r for s in regroup(kernel).src for r in s.ranges}
    assert COLUMN not in {r for s in regroup(other).src for r in s.ranges}
