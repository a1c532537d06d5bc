"""Inverse trigonometric functions, and the hyperbolic ones both ways.

All rest on the arctangent, the exponential or the logarithm, computed in float64 and rounded once, so that results
are exact to the last place of narrower types.  Outside the domain the result is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Self

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.tensor.base import detached, float_dtype
from lazulite.tensor.functions import FunctionMethods, expm1

_TERMS = 21
"""Terms of the series of the arctangent: the first left out is below 2**-60 of the sum at tan(pi / 8)."""


class InverseMethods(FunctionMethods):
    """Inverse and hyperbolic functions, and the exponential and logarithm near zero."""

    __slots__ = ()

    def atan(self) -> Self:
        """The angle from -pi/2 to pi/2 with this tangent.

        >>> round(Tensor([1.0]).atan().item(), 6)
        0.785398
        """
        return self._inverse(odd(self._double(), arctangent))

    def asin(self) -> Self:
        """The angle from -pi/2 to pi/2 with this sine; NaN outside [-1, 1].

        >>> round(Tensor([1.0]).asin().item(), 6)
        1.570796
        """
        return self._inverse(odd(self._double(), lambda x: arctangent(x / (_root(1 - x) * _root(x + 1) + 1)) * 2))

    def acos(self) -> Self:
        """The angle from 0 to pi with this cosine; NaN outside [-1, 1].

        >>> Tensor([1.0]).acos().item()
        0.0
        """
        x = self._double()
        size = (x < 0).where(-x, x)
        angle = arctangent(_root(1 - size) / _root(size + 1)) * 2
        return self._inverse((x < 0).where(math.pi - angle, angle))

    def asinh(self) -> Self:
        """The number with this hyperbolic sine.

        >>> Tensor([0.0]).asinh().item()
        0.0
        """
        return self._inverse(odd(self._double(), _asinh))

    def acosh(self) -> Self:
        """The number, at least 0, with this hyperbolic cosine; NaN below 1.

        >>> Tensor([1.0]).acosh().item()
        0.0
        """
        x = self._double()
        large = x > _LARGE
        above = large.where(UOp.const(x.dtype, 0), x - 1)
        small = log1p(above + _root(above) * _root(above + 2))
        return self._inverse(large.where(UOp.apply(ops.LOG, large.where(x, 1)) + math.log(2), small))

    def atanh(self) -> Self:
        """The number with this hyperbolic tangent; infinite at -1 and 1, NaN beyond.

        >>> Tensor([0.0]).atanh().item()
        0.0
        """
        return self._inverse(odd(self._double(), lambda x: (log1p(x) - log1p(-x)) * 0.5))

    def sinh(self) -> Self:
        """The hyperbolic sine.

        >>> Tensor([0.0]).sinh().tolist()
        [0.0]
        """
        return self._inverse(odd(self._double(), sinh))

    def cosh(self) -> Self:
        """The hyperbolic cosine.

        >>> Tensor([0.0]).cosh().tolist()
        [1.0]
        """
        x = self._double()
        return self._inverse(cosh(x.maximum(-x)))

    def log1p(self) -> Self:
        """log(1 + x), exact near zero; -inf at -1, NaN below.

        >>> Tensor([1e-10]).log1p().item() == Tensor([1e-10]).item()
        True
        """
        x = self._double()
        return self._inverse(x.eq(0).where(x, log1p(x)))

    def expm1(self) -> Self:
        """exp(x) - 1, exact near zero.

        >>> Tensor([1e-10]).expm1().item() == Tensor([1e-10]).item()
        True
        """
        x = self._double()
        large = x > _MIDDLE
        return self._inverse(large.where(UOp.apply(ops.EXP, x) - 1, expm1(large.where(UOp.const(x.dtype, 0), x))))

    def _double(self) -> UOp:
        return self.uop.cast(dtypes.float64)

    def _inverse(self, result: UOp) -> Self:
        return self._derived(result.cast(float_dtype(self.dtype)))


_MIDDLE = 20
"""From here on exp(-x) is below the last place of exp(x)."""
_LARGE = 1e100
"""From here on the square of a number is not needed, and may not exist."""


def odd(x: UOp, function: Callable[[UOp], UOp]) -> UOp:
    """An odd function from what it is at zero and above."""
    below = (x < 0) | (UOp.const(x.dtype, 1) / x < 0)
    value = function(below.where(-x, x))
    return below.where(-value, value)


def _root(x: UOp) -> UOp:
    return UOp.apply(ops.SQRT, x)


def arctangent(x: UOp) -> UOp:
    """The arctangent of x >= 0: by its series up to tan(pi / 8), from pi/4 and pi/2 beyond."""
    large = x > 1
    inner = large.where(1 / large.where(x, 1), x)
    middle = inner > math.tan(math.pi / 8)
    reduced = middle.where((inner - 1) / (inner + 1), inner)
    square = reduced * reduced
    series = square * (1 / (2 * _TERMS + 1))
    for power in range(2 * _TERMS - 1, 1, -2):
        series = (series + (-1.0) ** (power // 2) / power) * square
    angle = reduced + reduced * series
    angle = middle.where(angle + math.pi / 4, angle)
    return large.where(math.pi / 2 - angle, angle)


def _asinh(x: UOp) -> UOp:
    """The inverse hyperbolic sine of x >= 0."""
    large = x > _LARGE
    y = large.where(UOp.const(x.dtype, 0), x)
    square = y * y
    small = log1p(y + square / (_root(square + 1) + 1))
    return large.where(UOp.apply(ops.LOG, large.where(x, 1)) + math.log(2), small)


def log1p(x: UOp) -> UOp:
    """log(1 + x): what the sum lost is added back, as a constant for the gradient."""
    total = x + 1
    lost = ((total < math.inf) & (total > 0)).where((x - (total - 1)) / total, UOp.const(x.dtype, 0))
    return UOp.apply(ops.LOG, total) + detached(lost)


def sinh(x: UOp) -> UOp:
    """The hyperbolic sine of x >= 0: (e + e / (e + 1)) / 2 of e = exp(x) - 1, a square of exp(x/2) beyond."""
    large = x > _MIDDLE
    grown = expm1(large.where(UOp.const(x.dtype, 0), x))
    half = UOp.apply(ops.EXP, x * 0.5)
    return large.where(half * 0.5 * half, (grown + grown / (grown + 1)) * 0.5)


def cosh(x: UOp) -> UOp:
    """The hyperbolic cosine of x >= 0."""
    large = x > _MIDDLE
    y = large.where(UOp.const(x.dtype, 0), x)
    half = UOp.apply(ops.EXP, x * 0.5)
    return large.where(half * 0.5 * half, (UOp.apply(ops.EXP, y) + UOp.apply(ops.EXP, -y)) * 0.5)
