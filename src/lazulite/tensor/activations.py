"""The functions between layers.

Each keeps the type of a float and takes integers as floats of the default type; values and gradients
stay finite where the exact ones are, however large the argument.
"""

from __future__ import annotations

import math
from typing import Any, Self

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.ir import ops
from lazulite.ir.uop import UOp
from lazulite.tensor.functions import FunctionMethods, expm1, log1p_of_fraction


class ActivationMethods(FunctionMethods):
    """Activation functions."""

    __slots__ = ()

    def relu(self) -> Self:
        """The value where it is above zero, else zero; the gradient at zero is zero.

        >>> Tensor([-1.0, 2.0]).relu().tolist()
        [0.0, 2.0]
        """
        return self._derived((self.uop <= 0).where(UOp.const(self.dtype, 0), self.uop))

    def relu6(self) -> Self:
        """relu, but not above 6.

        >>> Tensor([-1.0, 2.0, 7.0]).relu6().tolist()
        [0.0, 2.0, 6.0]
        """
        return self.hardtanh(0, 6)

    def hardtanh(self, min_val: float = -1, max_val: float = 1) -> Self:
        """The value cut at both bounds, where the gradient is zero; integers stay integers between such.

        >>> Tensor([-3.0, 0.5, 3.0]).hardtanh().tolist()
        [-1.0, 0.5, 1.0]
        """
        whole = isinstance(min_val, int) and isinstance(max_val, int) and self.dtype.is_int
        x = self.uop if whole else self._floating()
        raised = (x <= min_val).where(UOp.const(x.dtype, min_val), x)
        return self._derived((x >= max_val).where(UOp.const(x.dtype, max_val), raised))

    def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Self:
        """alpha * x + beta, cut to 0 and 1.

        >>> Tensor([-4.0, 0.0, 4.0]).hardsigmoid().tolist()
        [0.0, 0.5, 1.0]
        """
        return (self * alpha + beta).hardtanh(0, 1)

    def hardswish(self) -> Self:
        """x * relu6(x + 3) / 6.

        >>> Tensor([0.0, 3.0]).hardswish().tolist()
        [0.0, 3.0]
        """
        return self * (self + 3).relu6() * (1 / 6)

    def leaky_relu(self, neg_slope: float = 0.01) -> Self:
        """The value above zero, `neg_slope` times the value elsewhere.

        >>> Tensor([-2.0, 2.0]).leaky_relu(0.5).tolist()
        [-1.0, 2.0]
        """
        x = self._floating()
        return self._derived((x > 0).where(x, x * neg_slope))

    def sigmoid(self) -> Self:
        """1 / (1 + exp(-x)).

        >>> Tensor([0.0]).sigmoid().tolist()
        [0.5]
        """
        return self._derived(_sigmoid(self._floating()))

    def logsigmoid(self) -> Self:
        """log(sigmoid(x)).

        >>> Tensor([-1000.0]).logsigmoid().tolist()
        [-1000.0]
        """
        return -(-self).softplus()

    def silu(self) -> Self:
        """x * sigmoid(x).

        >>> Tensor([0.0]).silu().tolist()
        [0.0]
        """
        x = self._floating()
        return self._derived(x * _sigmoid(x))

    def swish(self) -> Self:
        """`silu` by its other name.

        >>> Tensor([0.0]).swish().tolist()
        [0.0]
        """
        return self.silu()

    def gelu(self, approximate: str = "tanh") -> Self:
        """x times the normal distribution function; by tanh, or exactly with `approximate="none"`.

        >>> Tensor([0.0]).gelu().tolist()
        [0.0]
        """
        x = self._floating()
        if approximate == "none":
            return self._derived(x * 0.5 * (UOp.apply(ops.ERF, x * math.sqrt(0.5)) + 1))
        if approximate != "tanh":
            raise ArgumentError("gelu", f"approximate is 'tanh' or 'none', not {approximate!r}")
        inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
        return self._derived(x * 0.5 * (UOp.apply(ops.TANH, inner) + 1))

    def quick_gelu(self) -> Self:
        """x * sigmoid(1.702 x).

        >>> Tensor([0.0]).quick_gelu().tolist()
        [0.0]
        """
        x = self._floating()
        return self._derived(x * _sigmoid(x * 1.702))

    def softplus(self, beta: float = 1.0) -> Self:
        """log(1 + exp(beta x)) / beta.

        >>> round(Tensor([0.0]).softplus().item(), 4)
        0.6931
        """
        x = self._floating() * beta
        above = (x < 0).where(UOp.const(x.dtype, 0), x)
        return self._derived((above + log1p_of_fraction(_decay(x))) * (1 / beta))

    def elu(self, alpha: float = 1.0) -> Self:
        """The value above zero, alpha * (exp(x) - 1) elsewhere.

        >>> Tensor([2.0, float("-inf")]).elu().tolist()
        [2.0, -1.0]
        """
        x = self._floating()
        below = (x > 0).where(UOp.const(x.dtype, 0), x)
        return self._derived((x > 0).where(x, expm1(below) * alpha))

    def celu(self, alpha: float = 1.0) -> Self:
        """The value above zero, alpha * (exp(x / alpha) - 1) elsewhere.

        >>> Tensor([2.0, float("-inf")]).celu(0.5).tolist()
        [2.0, -0.5]
        """
        x = self._floating()
        below = (x > 0).where(UOp.const(x.dtype, 0), x)
        return self._derived((x > 0).where(x, expm1(below * (1 / alpha)) * alpha))

    def selu(self, alpha: float = 1.67326, gamma: float = 1.0507) -> Self:
        """gamma * elu(x, alpha).

        >>> Tensor([0.0]).selu().tolist()
        [0.0]
        """
        return self.elu(alpha) * gamma

    def hardshrink(self, lambd: float = 0.5) -> Self:
        """Zero between -lambd and lambd, the value elsewhere.

        >>> Tensor([-2.0, 0.3]).hardshrink().tolist()
        [-2.0, 0.0]
        """
        return ((self >= -lambd) & (self <= lambd)).where(0.0, self)

    def prelu(self, weight: Self) -> Self:
        """The value above zero, the weight (one number, or one for each channel of axis 1) times it elsewhere.

        >>> Tensor([[-2.0, -2.0]]).prelu(Tensor([0.5, 0.25])).tolist()
        [[-1.0, -0.5]]
        """
        rank, count = len(self.shape), math.prod(weight.shape)
        if count not in (1, self.shape[1] if rank > 1 else 1):
            raise ShapeError("prelu", f"{weight.shape} is not one weight for each channel of {self.shape}")
        shape = (1, count, *(1,) * (rank - 2)) if rank > 1 else (1,) * rank
        slope = self._derived(UOp(ops.RESHAPE, weight.dtype, (weight.uop,), shape))
        return (self > 0).where(self, self * slope)

    def softsign(self) -> Self:
        """x / (1 + |x|).

        >>> Tensor([1.0]).softsign().tolist()
        [0.5]
        """
        return self / (self.abs() + 1)

    def mish(self) -> Self:
        """x * tanh(softplus(x)).

        >>> Tensor([0.0]).mish().tolist()
        [0.0]
        """
        return self * self.softplus().tanh()

    def sequential(self, ll: list[Any]) -> Self:
        """The functions of the list applied one after the other.

        >>> Tensor([-1.0]).sequential([Tensor.abs, Tensor.neg]).tolist()
        [-1.0]
        """
        x = self
        for layer in ll:
            x = layer(x)
        return x


def _decay(x: UOp) -> UOp:
    """exp(-|x|), from 0 to 1, with a slope on both sides of zero."""
    return UOp.apply(ops.EXP, (x < 0).where(x, -x))


def _sigmoid(x: UOp) -> UOp:
    """Neither branch overflows, so no gradient is inf * 0."""
    decay = _decay(x)
    return (x < 0).where(decay, UOp.const(x.dtype, 1)) / (decay + 1)
