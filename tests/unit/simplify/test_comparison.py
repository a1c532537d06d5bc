"""INDEX comparisons in one form."""

from __future__ import annotations

import pytest

from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp, index
from lazulite.simplify.normal import normalise
from support.index_grid import loop

M, N, K = loop(10, 0), loop(20, 1), loop(4, 2)
TRUE, FALSE = UOp.const(dtypes.bool, True), UOp.const(dtypes.bool, False)


@pytest.mark.parametrize(("node", "expected"), [
    (M < 10, TRUE),
    (M * 4 + K < 0, FALSE),
    (M * 4 + K < 20, M < 5),
    (M * 4 + K <= 20, M * 4 + K < 21),
    (M * -1 < -3, index(3) < M),
    (M - 3 >= 0, index(2) < M),
    (M + 3 < N * 1 + 5, M < N + 2),
    (M // 3 < 2, M < 6),
    (N // 4 >= 2, index(7) < N),
    (N // 4 < M, N < M * 4),
    ((M * 6).eq(N * 4 + 2), (M * 3).eq(N * 2 + 1)),
    ((M * 6).eq(N * 4 + 1), FALSE),
    ((M * 6).ne(N * 4 + 1), TRUE),
    (N.eq(M), M.eq(N)),
    ((M + 1).eq(M + 1), TRUE),
    (M.eq(11), FALSE),
], ids=str)  # fmt: skip
def test_comparisons_come_out_in_normal_form(node, expected):
    assert normalise(node) == [expected]
