"""Sizes that vary: arithmetic on them is arithmetic on their values, for every value."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite import DTypeError, ShapeError, Variable
from lazulite.ir import size as sizes
from lazulite.ir.size import Size, least, max_shape, most, rebound, room, size_form, size_node, varies

N, M = Variable("n", 1, 10), Variable("m", 0, 12, multiple_of=4)
Expression = Callable[[Any, Any], Any]


def expressions() -> st.SearchStrategy[Expression]:
    """Arithmetic over two numbers, as functions of both."""
    leaves: st.SearchStrategy[Expression] = st.one_of(
        st.just(lambda n, m: n), st.just(lambda n, m: m), st.integers(-3, 6).map(lambda constant: lambda n, m: constant)
    )
    binary = [operator.add, operator.sub, operator.mul]
    by_number = [operator.floordiv, operator.mod, operator.mul]

    def grown(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        return st.one_of(
            st.builds(lambda op, a, b: lambda n, m: op(a(n, m), b(n, m)), st.sampled_from(binary), inner, inner),
            st.builds(
                lambda op, a, c: lambda n, m: op(a(n, m), c), st.sampled_from(by_number), inner, st.integers(1, 5)
            ),
        )

    return st.recursive(leaves, grown, max_leaves=6)


@given(expressions(), st.integers(1, 10), st.integers(0, 3))
def test_arithmetic_is_that_of_the_values_and_stays_within_the_bounds(function: Expression, n: int, m: int) -> None:
    found, wanted = function(N.bind(n), M.bind(4 * m)), function(n, 4 * m)

    assert wanted == int(found)
    assert least(found) <= wanted <= most(found)
    assert not size_form(found - found).terms


@given(expressions(), expressions())
def test_equal_sizes_are_equal_for_every_value(one: Expression, other: Expression) -> None:
    left, right = one(N.bind(3), M.bind(8)), other(N.bind(3), M.bind(8))
    if left == right:
        assert all(one(n, m) == other(n, m) for n in range(1, 11) for m in range(0, 13, 4))
        assert hash(left) == hash(right)
        assert size_node(left) is size_node(right)


@given(expressions())
def test_other_leaves_in_a_size_make_the_size_over_them(function: Expression) -> None:
    table = {size_node(N.bind(3)): size_node(N.bind(7))}
    found = rebound(function(N.bind(3), M.bind(8)), lambda leaf: table.get(leaf, leaf))

    assert found == function(N.bind(7), M.bind(8))


@pytest.mark.parametrize(("value", "message"), [(11, r"n takes in \[1, 10\], got 11"), (0, "got 0")])
def test_binding_outside_of_the_range_names_the_variable_and_the_range(value: int, message: str) -> None:
    """A7"""
    with pytest.raises(ShapeError, match=message):
        N.bind(value)


def test_binding_to_something_between_multiples_is_refused() -> None:
    """A7"""
    with pytest.raises(ShapeError, match=r"m takes multiples of 4 in \[0, 12\], got 6"):
        M.bind(6)


@pytest.mark.parametrize("use", [int, range, lambda v: v + 1, lambda v: 2 * v, lambda v: [0][v]])
def test_an_unbound_variable_is_no_number(use: Callable[[Any], object]) -> None:
    """A7"""
    with pytest.raises(ShapeError, match=r"n in \[1, 10\] is not bound"):
        use(N)


def test_a_variable_takes_integers() -> None:
    assert int(N.bind(np.int64(3))) == 3
    with pytest.raises(DTypeError, match="n takes an integer, got float"):
        N.bind(2.5)  # type: ignore[arg-type]
    assert repr(M) == "Variable('m', 0, 12, multiple_of=4)"


@pytest.mark.parametrize("arguments", [(3, 2), (-1, 4), (1, 8, 4), (0, 6, 4), (0, 4, 0)])
def test_a_range_without_values_is_refused(arguments: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="n cannot lie in"):
        Variable("n", *arguments)


def test_a_multiple_can_be_divided() -> None:
    m = M.bind(8)

    assert (0, 2) == (m % 4, int(m // 4))
    assert m // 4 * 4 == m
    assert (m * 6) // m == 6


def test_a_variable_with_one_value_is_a_number() -> None:
    assert Variable("n", 3, 3).bind(3) == 3


def test_a_size_never_equals_a_number() -> None:
    assert N.bind(1) != 1
    assert N.bind(1) not in (0, 1)
    assert N.bind(1) != N.bind(2)


def test_bounds_decide_comparisons_and_the_value_only_where_they_do_not() -> None:
    seen: list[Size] = []
    sizes.OBSERVERS.append(seen.append)
    try:
        n = N.bind(3)
        assert (True, False, True, True) == (n > 0, n > 10, n <= 10, bool(n))
        assert not seen
        assert (True, False, 3) == (n < 4, n >= 4, len(range(n)))
        assert len(seen) == 3
    finally:
        sizes.OBSERVERS.remove(seen.append)


def test_shapes_have_room_for_the_most_elements() -> None:
    shape = (2, N.bind(3) + 1, 5)

    assert varies(shape)
    assert (2, 11, 5) == max_shape(shape)
    assert 110 == room(shape)
    assert "(2, n + 1 = 4, 5)" == str(shape)


def test_a_size_survives_pickling() -> None:
    size = N.bind(3) * 2 + 1

    assert size == pickle.loads(pickle.dumps(size))
