"""Ops by tinygrad's names."""

from __future__ import annotations

import pytest

from lazulite import Tensor, Variable
from lazulite.interop.tinygrad.nodes import AxisType, GroupOp, Ops, resolve, sym_infer
from lazulite.ir import ops


def test_ops_by_name() -> None:
    assert (ops.ADD, ops.LT, ops.REDUCE) == (Ops.ADD, Ops.CMPLT, Ops.REDUCE)
    assert ops.ADD in list(Ops) and ops.SIN in GroupOp.Unary and ops.ADD in GroupOp.Commutative
    assert AxisType.LOOP.name == "LOOP"
    for name in ("add", "NO_SUCH_OP"):
        with pytest.raises(AttributeError, match="no op"):
            getattr(Ops, name)


def test_sizes_are_resolved_where_they_can_be() -> None:
    n = Variable("n", 2, 8).bind(3)
    assert 3 == sym_infer(n, {})
    assert resolve(True) and not resolve(False)
    x = Tensor([1, 2]).uop
    assert x.is_realized and x.base is x and x.device == "CPU"
