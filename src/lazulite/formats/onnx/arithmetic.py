"""Operators on each element: arithmetic, comparisons, logic, bits, and activations."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy

from lazulite.formats.onnx.proto import NAMES
from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.formats.onnx.values import Value
from lazulite.ir.dtype import by_name as dtype_named
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor

# --- one operand -----------------------------------------------------------------------------------


def _unary(name: str, function: Callable[..., Tensor]) -> None:
    @onnx_op(name)
    def apply(x: Tensor) -> Tensor:
        return function(x)


_UNARY: dict[str, Callable[..., Tensor]] = {
    "Abs": Tensor.abs, "Acos": Tensor.acos, "Acosh": Tensor.acosh, "Asin": Tensor.asin, "Asinh": Tensor.asinh,
    "Atan": Tensor.atan, "Atanh": Tensor.atanh, "BitwiseNot": Tensor.bitwise_not, "Ceil": Tensor.ceil,
    "Cos": Tensor.cos, "Cosh": Tensor.cosh, "Erf": Tensor.erf, "Exp": Tensor.exp, "Floor": Tensor.floor,
    "IsNaN": Tensor.isnan, "Log": Tensor.log, "Mish": Tensor.mish, "Neg": Tensor.neg, "Not": Tensor.logical_not,
    "Reciprocal": Tensor.reciprocal, "Relu": Tensor.relu, "Round": Tensor.round, "Sigmoid": Tensor.sigmoid,
    "Sign": Tensor.sign, "Sin": Tensor.sin, "Sinh": Tensor.sinh, "Softplus": Tensor.softplus,
    "Softsign": Tensor.softsign, "Sqrt": Tensor.sqrt, "Tan": Tensor.tan, "Tanh": Tensor.tanh,
}  # fmt: skip
for _name, _method in _UNARY.items():
    _unary(_name, _method)


@onnx_op("IsInf", since=10)
def isinf(x: Tensor, *, detect_negative: int = 1, detect_positive: int = 1) -> Tensor:
    return x.isinf(bool(detect_positive), bool(detect_negative))


@onnx_op("BitCast", since=26)
def bitcast(x: Tensor, *, to: int) -> Tensor:
    wanted = dtype_named(NAMES[to])
    if dtypes.bool in (x.dtype, wanted):
        return x.ne(0) if wanted is dtypes.bool else x.cast(dtypes.uint8).bitcast(wanted)
    return x.bitcast(wanted)


# --- two operands and more -------------------------------------------------------------------------


def aligned(a: Tensor, b: Tensor, axis: int | None, broadcast: int) -> Tensor:
    """The second operand as versions before 7 place it: its axes from `axis` on, by default the last."""
    if not broadcast or axis is None:
        return b
    behind = len(a.shape) - axis % max(len(a.shape), 1) - len(b.shape)
    return b.reshape((*b.shape, *(1,) * behind))


def _binary(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    @onnx_op(name)
    def apply(a: Tensor, b: Tensor, *, axis: int | None = None, broadcast: int = 0) -> Tensor:
        return function(a, aligned(a, b, axis, broadcast))


def _quotient(a: Tensor, b: Tensor) -> Tensor:
    return a / b if a.dtype.is_float else a.div(b, rounding_mode="trunc")


def _power(a: Tensor, b: Tensor) -> Tensor:
    """In the type of the base; an integer base with a float exponent goes through floats."""
    if a.dtype.is_float or b.dtype.is_float:
        wide = a.cast(dtypes.promote(a.dtype, dtypes.float32)) if not a.dtype.is_float else a
        return (wide ** b.cast(dtypes.promote(wide.dtype, b.dtype) if b.dtype.is_float else wide.dtype)).cast(a.dtype)
    return a ** b.cast(a.dtype)


for _name, _function in {
    "Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Div": _quotient, "Pow": _power,
    "And": operator.and_, "Or": operator.or_, "Xor": operator.xor, "BitwiseAnd": operator.and_,
    "BitwiseOr": operator.or_, "BitwiseXor": operator.xor, "Greater": operator.gt, "Less": operator.lt,
    "GreaterOrEqual": operator.ge, "LessOrEqual": operator.le,
}.items():  # fmt: skip
    _binary(_name, _function)


@onnx_op("Equal")
def equal(a: Value, b: Value, *, axis: int | None = None, broadcast: int = 0, call: Call) -> Value:
    if isinstance(a, numpy.ndarray) and isinstance(b, numpy.ndarray) and a.dtype.kind in "OUS":
        return numpy.asarray(a == b, "bool")
    left, right = call.lift(a), call.lift(b)
    return left.eq(aligned(left, right, axis, broadcast))


@onnx_op("Mod", since=10)
def mod(a: Tensor, b: Tensor, *, fmod: int = 0) -> Tensor:
    return a.fmod(b) if fmod else a % b


@onnx_op("BitShift", since=11)
def bit_shift(a: Tensor, b: Tensor, *, direction: str) -> Tensor:
    """Shifts by the width or more leave nothing of the bits (of a negative number shifted right, its sign)."""
    width, signed = a.dtype.bits, a.dtype.min != 0
    outside = b >= width
    if direction == "LEFT":
        return outside.where(0, a << outside.where(0, b))
    return outside.where((a < 0).where(-1, 0).cast(a.dtype) if signed else 0, a >> outside.where(0, b))


def _folded(name: str, function: Callable[[Any, Any], Any], finish: Callable[[Tensor, int], Tensor]) -> None:
    @onnx_op(name)
    def apply(*operands: Tensor) -> Tensor:
        return finish(reduce(function, operands), len(operands))


_folded("Sum", operator.add, lambda total, count: total)
_folded("Mean", operator.add, lambda total, count: total / count)
_folded("Max", lambda a, b: a.maximum(b), lambda top, count: top)
_folded("Min", lambda a, b: a.minimum(b), lambda low, count: low)


@onnx_op("Where", since=9)
def where(condition: Tensor, x: Value, y: Value, *, call: Call) -> Value:
    if isinstance(x, numpy.ndarray) and x.dtype.kind in "OUS":
        return numpy.where(condition.numpy(), x, y)
    return condition.where(call.lift(x), call.lift(y))


@onnx_op("Clip")
def clip(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    """Where the limits cross, the upper one counts."""
    low = x if min is None else x.maximum(min.cast(x.dtype))
    return low if max is None else low.minimum(max.cast(x.dtype))


# --- activations -----------------------------------------------------------------------------------


@onnx_op("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    return x.leaky_relu(alpha)


@onnx_op("PRelu")
def prelu(x: Tensor, slope: Tensor, *, call: Call) -> Tensor:
    if call.opset < 7 and len(slope.shape) == 1 and len(x.shape) > 1:
        slope = slope.reshape((-1, *(1,) * (len(x.shape) - 2)))
    return (x < 0).where(x * slope, x)


@onnx_op("Elu")
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x.elu(alpha)


@onnx_op("Celu", since=12)
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return x.celu(alpha)


@onnx_op("Selu")
def selu(x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Tensor:
    return x.selu(alpha, gamma)


@onnx_op("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return (x > alpha).where(x, 0)


@onnx_op("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return (x * alpha + beta).clip(0, 1)


@onnx_op("HardSwish", since=14)
def hard_swish(x: Tensor) -> Tensor:
    return x * (x / 6 + 0.5).clip(0, 1)


@onnx_op("Gelu", since=20)
@onnx_op("Gelu", domain="com.microsoft")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return x.gelu(approximate)


@onnx_op("FastGelu", domain="com.microsoft")
def fast_gelu(x: Tensor, bias: Tensor | None = None) -> Tensor:
    return (x if bias is None else x + bias).gelu("tanh")


@onnx_op("BiasGelu", domain="com.microsoft")
def bias_gelu(x: Tensor, bias: Tensor) -> Tensor:
    return (x + bias).gelu("none")


@onnx_op("QuickGelu", domain="com.microsoft")
@onnx_op("Swish", since=24)
def swish(x: Tensor, *, alpha: float | None = None) -> Tensor:
    return x * (x * (1.0 if alpha is None else alpha)).sigmoid()


@onnx_op("Shrink", since=9)
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    return (x < -lambd).where(x + bias, (x > lambd).where(x - bias, 0)).cast(x.dtype)


@onnx_op("SwiGLU", since=28)
def swiglu(a: Tensor, b: Tensor, *, alpha: float = 1.0) -> Tensor:
    return a * (a * alpha).sigmoid() * b


# --- along an axis ---------------------------------------------------------------------------------


def _along(name: str, function: Callable[[Tensor, int], Tensor]) -> None:
    """A function of the elements along an axis: before version 13 of all axes from the given one on."""

    @onnx_op(name)
    def flattened(x: Tensor, *, axis: int = 1) -> Tensor:
        lead = axis % len(x.shape)
        rows = x.reshape((math.prod(x.shape[:lead]), math.prod(x.shape[lead:])))
        return function(rows, 1).reshape(x.shape)

    @onnx_op(name, since=13)
    def apply(x: Tensor, *, axis: int = -1) -> Tensor:
        return function(x, axis)


def _hardmax(x: Tensor, axis: int) -> Tensor:
    """One at the first maximum, zero elsewhere."""
    places = Tensor.arange(x.shape[axis], device=x.device).reshape(
        (-1, *(1,) * (len(x.shape) - 1 - axis % len(x.shape)))
    )
    return x.argmax(axis, keepdim=True).eq(places).cast(x.dtype)


_along("Softmax", lambda x, axis: x.softmax(axis))
_along("LogSoftmax", lambda x, axis: x.log_softmax(axis))
_along("Hardmax", _hardmax)
