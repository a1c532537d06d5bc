"""The canonical order of terms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir import ops
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index
from lazulite.simplify.terms import ZERO, in_order, multiple, nesting, plus, structure, sum_of
from support.index_grid import loop

M, N, K = loop(4, 0), loop(6, 1), loop(1, 2)
TERMS = (M, N, M // 3, N % 5, N // 2, M * N, UOp(ops.SCALAR, dtypes.index, (), (0, 0, 9)))


@given(st.permutations(TERMS))
def test_the_order_does_not_depend_on_the_order_given(terms):
    assert in_order(terms) == in_order(TERMS)


def test_terms_without_ranges_come_first_and_inner_ranges_last():
    assert in_order([M * N, N, TERMS[-1], M]) == [TERMS[-1], M, N, M * N]
    assert nesting(M * N) == ((1,), (0,))


@given(st.permutations(TERMS), st.integers(-3, 3))
def test_equal_forms_give_the_same_node(terms, constant):
    form = Linear(constant, {term: place + 1 for place, term in enumerate(TERMS)})
    again = Linear(constant, {term: TERMS.index(term) + 1 for term in terms})

    assert sum_of(form) is sum_of(again)
    assert linear(sum_of(form)) == form


def test_terms_of_one_value_join_the_constant():
    assert sum_of(Linear(3, {K: 7})) is index(3)
    assert sum_of(Linear(0, {M: 2, K: 1})) is M * 2


@pytest.mark.parametrize(("factor", "expected"), [(1, M), (3, M * 3), (-1, M * -1)])
def test_a_multiple_is_written_with_its_factor_behind(factor, expected):
    assert multiple(M, factor) is expected


def test_structure_knows_shared_nodes_and_gives_up_on_large_ones():
    deep = M
    for _ in range(100):
        deep = (deep + N) % 7

    assert structure(M * N) != structure(M * M)
    assert structure(deep) == structure(deep + M)


@given(st.permutations(TERMS))
def test_parts_are_added_in_the_order_given_and_zeros_are_not(terms):
    first, second, *_ = terms

    assert plus(first, second) == UOp(ops.ADD, dtypes.index, (first, second))
    assert plus(first, ZERO) is plus(ZERO, first) is first
    assert plus(index(0), index(0)) is ZERO
