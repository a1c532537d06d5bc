"""Turns and order of a nest."""

from lazulite.ir import ops
from lazulite.kernel.nest import by_order, count, extent, nested
from support.kernels import load, loop, param, store


def test_a_nest_has_the_product_of_the_turns_of_its_loops():
    assert [3, 4] == [extent(loop(0, 3)), extent(loop(1, 4))]
    assert 12 == count([loop(0, 3), loop(1, 4)])
    assert 1 == count([])


def test_loops_are_ordered_outermost_first():
    outer, inner = loop(0, 9), loop(1, 2)

    assert [outer, inner] == by_order({inner, outer})


def test_effects_share_the_loops_that_both_vary_with_and_have_none_that_are_around_them():
    batch, i, j = loop(0, 2), loop(1, 3), loop(2, 4)
    row = store(param(0, 6), batch * 3 + i, load(param(1, 6), batch * 3 + i))
    cell = store(param(2, 24), (batch * 3 + i) * 4 + j, load(param(1, 6), batch * 3 + i))

    (inside,) = nested([row, cell], [batch])
    (whole,) = nested([row, cell])

    assert (ops.FOR, i) == (inside.op, inside.src[0])
    assert {batch} == inside.ranges
    assert (batch, inside) == whole.src
