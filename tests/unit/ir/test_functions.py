"""FUNCTION keeps its gradient as data, and is its value for everyone else."""

from __future__ import annotations

import pytest

from lazulite.base.errors import FormatError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.evaluate import evaluate_tensors
from lazulite.ir.functions import Derivative, function_of, variable
from lazulite.ir.parse import parse
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp
from lazulite.ir.verify import verify

X = UOp(ops.PARAM, dtypes.float32, (), (0, (2,), "CPU"))
UPSTREAM = UOp(ops.PARAM, dtypes.float32, (), (1, (2,), "CPU"))


def test_it_prints_and_parses_back() -> None:
    node = function_of(X * X, [X], [UPSTREAM * 2])

    assert node is parse(to_text(node))
    assert variable(X, 1, 2) is parse(to_text(variable(X, 1, 2)))
    verify(node, "TENSOR")


def test_a_derivative_that_does_not_parse_is_a_format_error() -> None:
    for text in ("function('[]', p0)", "function('[\"\",[],[]]')"):
        with pytest.raises(FormatError, match="function"):
            parse(f"tensor\nparam p0 float32[2]\nreturn {text}")


def test_it_has_the_elements_of_its_value() -> None:
    assert [[4.0, 9.0]] == evaluate_tensors([function_of(X * X, [X], [None])], {X: [2.0, 3.0]})


def test_variables_of_one_value_are_told_apart_by_their_marks() -> None:
    assert variable(X, 0) is not variable(X, 1)
    assert variable(X, 0) is variable(X, 0)
    assert Derivative.from_text(Derivative(mark=(1, 2)).to_text()) == Derivative(mark=(1, 2))
