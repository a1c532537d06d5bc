"""Conjunctions: no condition that others imply, none twice, contradictions found."""

from __future__ import annotations

import pytest

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.simplify.boolean import conjuncts
from lazulite.simplify.normal import normalise
from support.index_grid import loop

M, N = loop(10, 0), loop(20, 1)
FALSE = UOp.const(dtypes.bool, False)


def only(node: UOp) -> UOp:
    return normalise(node)[0]


@pytest.mark.parametrize(("node", "expected"), [
    ((M < 3) & (M < 5), M < 3),
    ((M + N < 4) & (M < 5), (M + N) < 4),
    ((M * 2 < 7) & (M < 4), M < 4),
    ((N < M) & (N < M + 3), N < M),
    ((M < 3) & ((N < 5) & (M < 3)), (M < 3) & (N < 5)),
    ((M < 3) & (M > 4), FALSE),
    ((M < N) & (N < M + 1), FALSE),
    ((M.eq(3)) & ~(M.eq(3)), FALSE),
], ids=str)  # fmt: skip
def test_conjunctions_keep_what_is_needed(node, expected):
    assert only(node) is expected


def test_conditions_over_outer_ranges_come_first():
    inner, outer = N < 7, M < 3

    assert conjuncts(only(inner & outer)) == [outer, inner]


def test_a_double_gate_becomes_one():
    x = UOp(ops.SCALAR, dtypes.float32, (), (0, None, None))

    assert only((M < 3).where((N < 7).where(x, 0.0), 0.0)) is ((M < 3) & (N < 7)).where(x, 0.0)


def test_a_comparison_of_floats_is_not_turned_round():
    x, y = (UOp(ops.SCALAR, dtypes.float32, (), (slot, None, None)) for slot in range(2))

    assert normalise(~(x < y)) == [~(x < y)]
    assert normalise(~x.eq(y)) == [x.ne(y)]
