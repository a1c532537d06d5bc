"""Quotients and remainders of linear forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir.bounds import linear
from lazulite.ir.uop import UOp, index
from lazulite.simplify.division import assuming, quotient, remainder
from lazulite.simplify.facts import Facts
from lazulite.simplify.normal import normalise
from lazulite.simplify.terms import sum_of
from support.index_grid import divisions, grid, loop, values

M, N, K = loop(4, 0), loop(6, 1), loop(5, 2)
FACTORS = st.integers(-30, 30)


@given(FACTORS, FACTORS, FACTORS, FACTORS, st.integers(1, 40))
def test_quotient_and_remainder_are_those_of_the_numbers(a, b, c, constant, divisor):
    form = linear(M * a + N * b + K * c + constant)
    known = grid((M, N, K))
    number = values(M * a + N * b + K * c + constant, known)
    found = values(sum_of(quotient(form, divisor)), known), values(sum_of(remainder(form, divisor)), known)

    assert np.array_equal(*np.broadcast_arrays(number // divisor, found[0]))
    assert np.array_equal(*np.broadcast_arrays(number % divisor, found[1]))


@pytest.mark.parametrize(("node", "expected"), [
    ((M * 6 + N) // 6, M),
    ((M * 6 + N) % 6, N),
    ((M * 30 + N * 5 + K) // 5 % 6, N),
    ((M * 6 + N) % 12, (M % 2) * 6 + N),
    ((M * 6 + N) // 12, M // 2),
    (N // 2 // 3, index(0)),
    ((M * 6 + N) // 2 // 3, M),
    (N % 4 % 2, N % 2),
    ((M * 6 + N) % 4 // 2, ((M * 6 + N) // 2) % 2),
    ((N * 5 + M) // 4, N + (M + N) // 4),
    (N - (N // 4) * 4, N % 4),
    (N % 2 + (N // 2) % 2 * 2, N % 4),
    (N // -2, N // -2),
    (N % 0, index(0)),
], ids=str)  # fmt: skip
def test_divisions_come_out_in_normal_form(node, expected):
    (result,) = normalise(node)

    assert result is normalise(expected)[0]
    assert len(divisions(result)) <= len(divisions(node))


def test_row_length_plus_dilation_divides_out():
    """The step of a convolution's adjoint: rows of 12 read as rows of 14."""
    row, column = loop(3, 0), loop(8, 1)
    place = row * 12 + column + 4

    assert normalise(place // 14, place % 14) == [row, normalise(row * -2 + column + 4)[0]]


def test_facts_remove_a_division_that_bounds_cannot():
    quotient_ = normalise((M * 6 + N + 2) // 6)[0]

    assert assuming(quotient_, Facts(N < 4)) is M
    assert assuming(quotient_, Facts(M < 3)) is quotient_


def test_an_expression_without_division_is_left_alone():
    node: UOp = normalise(M * 2 + N)[0]

    assert assuming(node, Facts(N < 4)) is node
