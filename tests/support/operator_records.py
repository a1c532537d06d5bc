"""One record for each operator: what it is called, what NumPy says it is, where it is defined.

`meaning` takes and gives NumPy arrays of float64 (or of the integer type); torch's function of the same
operands, where there is one, is found by `torch_name`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any


@dataclass(frozen=True)
class Record:
    """An operator of one or two tensors."""

    name: str
    apply: Callable[..., Any]
    meaning: Callable[..., Array]
    operands: int = 1
    low: float = -3.0
    high: float = 3.0
    smooth: bool = True
    """Whether finite differences give the gradient everywhere in the domain."""
    torch_name: str = ""


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf)(x)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def method(name: str, meaning: Callable[..., Array], operands: int = 1, **facts: Any) -> Record:
    """A record of the method with this name."""
    return Record(name, lambda *x: getattr(x[0], name)(*x[1:]), meaning, operands, **({"torch_name": name} | facts))


UNARY = [
    method("neg", np.negative), method("abs", np.abs), method("square", np.square),
    method("sqrt", np.sqrt, low=0.1), method("rsqrt", lambda x: 1 / np.sqrt(x), low=0.1),
    method("reciprocal", np.reciprocal, low=0.3), method("exp", np.exp), method("exp2", np.exp2),
    method("log", np.log, low=0.1), method("log2", np.log2, low=0.1), method("log10", np.log10, low=0.1),
    method("sin", np.sin), method("cos", np.cos), method("tan", np.tan, low=-1.2, high=1.2),
    method("sinh", np.sinh), method("cosh", np.cosh), method("tanh", np.tanh), method("erf", _erf),
    method("asin", np.arcsin, low=-0.9, high=0.9), method("acos", np.arccos, low=-0.9, high=0.9),
    method("atan", np.arctan), method("asinh", np.arcsinh), method("acosh", np.arccosh, low=1.1, high=9.0),
    method("atanh", np.arctanh, low=-0.9, high=0.9),
    method("sigmoid", _sigmoid), method("sign", np.sign, smooth=False), method("floor", np.floor, smooth=False),
    method("ceil", np.ceil, smooth=False), method("trunc", np.trunc, smooth=False),
    method("round", np.round, smooth=False), method("relu", lambda x: np.maximum(x, 0)),
    method("silu", lambda x: x * _sigmoid(x), torch_name="nn.functional.silu"),
    method("softplus", lambda x: np.logaddexp(x, 0), torch_name="nn.functional.softplus"),
    method("elu", lambda x: np.where(x > 0, x, np.expm1(x)), torch_name="nn.functional.elu"),
    method("leaky_relu", lambda x: np.where(x > 0, x, x * 0.01), torch_name="nn.functional.leaky_relu"),
    method("mish", lambda x: x * np.tanh(np.logaddexp(x, 0)), torch_name="nn.functional.mish"),
    method("softsign", lambda x: x / (1 + abs(x)), torch_name="nn.functional.softsign"),
    method("hardswish", lambda x: x * np.clip(x + 3, 0, 6) / 6, low=-2.9, high=2.9,
           torch_name="nn.functional.hardswish"),
    Record("gelu", lambda x: x.gelu(approximate="none"), lambda x: x * 0.5 * (1 + _erf(x / math.sqrt(2))),
           torch_name="nn.functional.gelu"),
]  # fmt: skip

BINARY = [
    Record("add", lambda x, y: x + y, np.add, 2, torch_name="add"),
    Record("sub", lambda x, y: x - y, np.subtract, 2, torch_name="sub"),
    Record("mul", lambda x, y: x * y, np.multiply, 2, torch_name="mul"),
    Record("div", lambda x, y: x / y, np.divide, 2, low=0.3, torch_name="div"),
    Record("pow", lambda x, y: x**y, np.power, 2, low=0.3, torch_name="pow"),
    method("maximum", np.maximum, 2), method("minimum", np.minimum, 2),
    method("logaddexp", np.logaddexp, 2),
    Record("mod", lambda x, y: x % y, np.mod, 2, smooth=False, torch_name="remainder"),
    method("fmod", np.fmod, 2, smooth=False),
    Record("lerp", lambda x, y: x.lerp(y, 0.25), lambda x, y: x + (y - x) * 0.25, 2),
]  # fmt: skip

INTEGER = [
    Record("add", lambda x, y: x + y, np.add, 2), Record("sub", lambda x, y: x - y, np.subtract, 2),
    Record("mul", lambda x, y: x * y, np.multiply, 2), Record("floordiv", lambda x, y: x // y, np.floor_divide, 2),
    Record("mod", lambda x, y: x % y, np.mod, 2), Record("fmod", lambda x, y: x.fmod(y), np.fmod, 2),
    Record("and", lambda x, y: x & y, np.bitwise_and, 2), Record("or", lambda x, y: x | y, np.bitwise_or, 2),
    Record("xor", lambda x, y: x ^ y, np.bitwise_xor, 2), Record("maximum", lambda x, y: x.maximum(y), np.maximum, 2),
    Record("minimum", lambda x, y: x.minimum(y), np.minimum, 2), Record("lt", lambda x, y: x < y, np.less, 2),
    Record("le", lambda x, y: x <= y, np.less_equal, 2), Record("gt", lambda x, y: x > y, np.greater, 2),
    Record("ge", lambda x, y: x >= y, np.greater_equal, 2), Record("eq", lambda x, y: x == y, np.equal, 2),
    Record("ne", lambda x, y: x != y, np.not_equal, 2),
]  # fmt: skip
