"""What gates prove about sums."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lazulite.ir.bounds import linear
from lazulite.simplify.facts import NOTHING, Facts, has_division, is_division
from lazulite.simplify.normal import normalise
from support.index_grid import grid, loop, values

M, N, K = loop(5, 0), loop(6, 1), loop(4, 2)
FACTORS = st.integers(-4, 4)


@st.composite
def sums(draw: st.DrawFn):
    return M * draw(FACTORS) + N * draw(FACTORS) + K * draw(FACTORS) + draw(st.integers(-9, 9))


@given(sums(), st.lists(st.tuples(sums(), st.integers(-10, 10)), min_size=1, max_size=3))
def test_bounds_hold_wherever_the_gate_is_true(value, limits):
    gate = limits[0][0] < limits[0][1]
    for left, limit in limits[1:]:
        gate = gate & (left < limit)
    (gate,) = normalise(gate)
    known = grid((M, N, K))
    number, inside = np.broadcast_arrays(values(value, known), values(gate, known))
    low, high = Facts(gate).bounds(linear(value))

    assert all(low <= n <= high for n in number[inside].tolist())


def test_a_bound_on_a_sum_carries_over_to_its_multiples():
    (gate,) = normalise((M + N < 4) & (M + N >= 2))

    assert Facts(gate).bounds(linear(M * 3 + N * 3 + 1)) == (7, 10)
    assert NOTHING.bounds(linear(M + N)) == (0, 9)


def test_only_positive_constants_count_as_divisors():
    assert is_division(M // 3)
    assert is_division(M % 3)
    assert not is_division(M // -3)
    assert not is_division(M // N)
    assert has_division(N + M % 3)
    assert not has_division(N + M)
