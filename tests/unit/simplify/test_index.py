"""INDEX products and limits."""

from __future__ import annotations

import pytest

from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.simplify.index import recombined
from lazulite.simplify.normal import normalise
from lazulite.simplify.terms import sum_of
from support.index_grid import loop

M, N = loop(4, 0), loop(6, 1)
S = UOp(ops.SCALAR, dtypes.index, (), (0, 1, 9))


@pytest.mark.parametrize(("node", "expected"), [
    (N * S, S * N),
    ((M + 2) * S, S * 2 + S * M),
    ((M * 3) * (N * 2), (M * N) * 6),
    (S * M - M * S, M * 0),
    (M - M, M * 0),
    (M.maximum(N + 4), N + 4),
    (M.minimum(7), M),
    (M.maximum(M - 1), M),
    (M << 2, M * 4),
    ((M * 4) >> 1, M * 2),
], ids=str)  # fmt: skip
def test_sums_products_and_limits_come_out_in_normal_form(node, expected):
    assert normalise(node) == normalise(expected)


def test_quotient_and_remainder_are_put_together():
    form = linear((N // 4) * 8 + (N % 4) * 2 + M)

    assert sum_of(recombined(form)) is M + N * 2
