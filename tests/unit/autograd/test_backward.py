"""The walk: paths, order, history, depth, and gradients of gradients."""

from __future__ import annotations

import itertools

import pytest

from lazulite.autograd.backward import gradient
from lazulite.base.errors import GradientError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from unit.autograd.graphs import differences, gradients, leaf, total, values


def test_squares_have_the_gradients_of_every_order() -> None:
    """A3: y = x*x, then squared again: [4, 6], [32, 108], second order [48, 108]."""
    x = leaf(0, (2,))
    memory = {x: [2.0, 3.0]}

    assert [[4.0, 6.0]] == gradients(total(x * x), memory)

    twice = (x * x) * (x * x)
    assert [[32.0, 108.0]] == gradients(total(twice), memory)
    (first,) = gradient(total(twice), [x])
    assert first is not None
    assert [[48.0, 108.0]] == gradients(total(first), memory)


def test_no_path_gives_none() -> None:
    """A3: an unrelated store is no path."""
    x, y = leaf(0, (2,)), leaf(1, (2,))

    assert gradient(total(x), [x, y])[1] is None
    assert [None] == gradient(UOp.const(dtypes.float32, 1.0), [x])
    assert [None] == gradient(total(x), [leaf(2, (2,), dtypes.int32)])


def test_a_target_may_be_computed_and_lie_on_the_path_of_another() -> None:
    x = leaf(0, (2,))
    y = x * 3.0
    for_x, for_y = gradient(total(y * y), [x, y])

    assert for_x is not None and for_y is not None
    assert [[18.0, 36.0], [6.0, 12.0]] == values([for_x, for_y], {x: [1.0, 2.0]})


def test_the_root_is_its_own_target_and_upstream_weighs_it() -> None:
    x, weight = leaf(0, (2,)), leaf(1, (2,))
    (one,) = gradient(x, [x])
    (found,) = gradient(x * x, [x], upstream=weight)

    assert one is not None and found is not None
    assert [[1.0, 1.0], [20.0, 600.0]] == values([one, found], {x: [1.0, 3.0], weight: [10.0, 100.0]})


def test_history_continues_through_a_stored_value() -> None:
    x, stored = leaf(0, (2,)), leaf(1, (2,))
    (found,) = gradient(total(stored * 2.0), [x], expand=lambda node: x * x if node is stored else None)

    assert found is not None
    assert [[4.0, 8.0]] == values([found], {x: [1.0, 2.0]})


def test_history_of_history_is_followed() -> None:
    leaves = [leaf(number, ()) for number in range(50)]
    origin = {after: before * 2.0 for before, after in itertools.pairwise(leaves)}
    (found,) = gradient(leaves[-1], [leaves[0]], expand=origin.get)

    assert found is not None
    assert [[2.0**49]] == values([found], {})


def test_the_same_program_gives_the_same_node() -> None:
    x = leaf(0, (3,))
    root = total(x * x + x * 2.0 - x)

    assert gradient(root, [x])[0] is gradient(root, [x])[0]


def test_a_chain_of_a_hundred_thousand_operations_is_differentiated() -> None:
    x = leaf(0, ())
    y = x
    for _ in range(100_000):
        y = y + x
    (found,) = gradient(y, [x])

    assert found is not None
    assert [[100_001.0]] == values([found], {x: [1.0]})


def test_an_op_without_a_derivative_raises_only_on_the_path() -> None:
    x, y = leaf(0, (2,)), leaf(1, (2,))
    opaque = UOp(ops.AFTER, x.dtype, (x,))

    assert gradient(total(opaque + y), [y])[0] is not None
    with pytest.raises(GradientError, match="after has no derivative"):
        gradient(total(opaque + y), [x])


def test_a_small_network_has_the_gradient_of_its_differences() -> None:
    x, w = leaf(0, (3,)), leaf(1, (3,))
    hidden = UOp.apply(ops.TANH, x * w + 0.1)
    root = total(UOp.apply(ops.EXP, hidden) / (hidden * hidden + 1.0))
    memory = {x: [0.5, -1.0, 2.0], w: [1.5, 0.3, -0.4]}

    for found, expected in zip(gradients(root, memory), differences(root, memory), strict=True):
        assert expected == pytest.approx(found, rel=1e-6)
