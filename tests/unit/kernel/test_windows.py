"""Ranges that walk along one axis of an operand are found together, with the border around it."""

from lazulite.ir.uop import UOp, index
from lazulite.kernel.windows import windows
from support.kernels import load, loop, param


def names(found: list[list[UOp]]) -> list[list[int]]:
    return [[r.arg[0][0] for r in group] for group in found]


def test_the_places_of_a_window_and_its_elements_share_an_axis() -> None:
    c, y, x, p, q = map(loop, range(5), (4, 6, 6, 3, 3))
    row, column = y + p + -1, x + q + -1
    inside = (index(0) <= row) & (row < 6) & (index(0) <= column) & (column < 6)

    assert names(windows(load(param(0, 144), c * 36 + row * 6 + column, inside))) == [[0], [1, 3], [2, 4]]


def test_ranges_of_a_matrix_share_none() -> None:
    i, k = loop(0, 8), loop(1, 5)

    assert windows(load(param(0, 40), i * 5 + k)) == []


def test_a_condition_that_moves_otherwise_than_the_index_is_no_border() -> None:
    y, p = loop(0, 6), loop(1, 3)

    assert windows(load(param(0, 16), y + p, y * 2 + p < 9)) == []
