"""Turns and order of a nest."""

from lazulite.kernel.nest import by_order, count, extent
from support.kernels import loop


def test_a_nest_has_the_product_of_the_turns_of_its_loops():
    assert [3, 4] == [extent(loop(0, 3)), extent(loop(1, 4))]
    assert 12 == count([loop(0, 3), loop(1, 4)])
    assert 1 == count([])


def test_loops_are_ordered_outermost_first():
    outer, inner = loop(0, 9), loop(1, 2)

    assert [outer, inner] == by_order({inner, outer})
