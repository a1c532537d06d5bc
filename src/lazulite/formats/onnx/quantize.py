"""Operators on quantised numbers: to them, back, and products of them."""

from __future__ import annotations

from lazulite.formats.onnx.codes import decoded, encoded, is_integer
from lazulite.formats.onnx.products import conv
from lazulite.formats.onnx.proto import NAMES
from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.formats.onnx.values import CODED, Coded, Lift, Value, type_name
from lazulite.ir.dtype import by_name as dtype_named
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor


def _spread(t: Tensor, shape: tuple[int, ...], axis: int, block_size: int) -> Tensor:
    """A scale or zero point beside a tensor: one, one for each place of an axis, or one for each block of it."""
    if block_size:
        return t.repeat_interleave(block_size, axis).shrink([(0, size) for size in shape])
    if len(t.shape) != 1 or len(shape) < 2:
        return t if t.numel() > 1 else t.reshape(())
    return (
        t.reshape([-1 if n == axis % len(shape) else 1 for n in range(len(shape))]) if t.numel() > 1 else t.reshape(())
    )


def _number(x: Value, lift: Lift) -> Tensor:
    """The values of codes, anything else as it is."""
    return decoded(x) if isinstance(x, Coded) else lift(x)


def _limits(kind: str) -> tuple[int, int]:
    bits = CODED[kind] if kind in CODED else dtype_named(kind).bits
    return (0, (1 << bits) - 1) if kind.startswith("u") else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def rounded(value: Tensor, zero: Tensor | None, kind: str) -> Value:
    """The nearest integers (ties to even) moved by the zero point, saturating (B127)."""
    low, high = _limits(kind)
    moved = value.round()
    moved = moved if zero is None else moved + zero.cast(moved.dtype)
    number = moved.clip(low, high).cast(dtypes.int32)
    return encoded(number, kind) if kind in CODED else number.cast(kind)


@onnx_op("QuantizeLinear", since=10)
def quantize_linear(
    x: Tensor, scale: Tensor, zero_point: Value = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0,
    precision: int = 0, saturate: int = 1, call: Call,
) -> Value:  # fmt: skip
    kind = type_name(zero_point) if zero_point is not None else NAMES[output_dtype or 2]
    factor = _spread(scale, x.shape, axis, block_size)
    wide = dtype_named(NAMES[precision]) if precision else dtypes.promote(scale.dtype, dtypes.float32)
    value = x.cast(wide) / factor.cast(wide)
    zero = None
    if zero_point is not None:
        zero = _spread(_number(zero_point, call.lift), x.shape, axis, block_size)
    if not is_integer(kind):
        return encoded(value if zero is None else value + zero.cast(wide), kind, bool(saturate))
    return rounded(value, zero, kind)


@onnx_op("DequantizeLinear", since=10)
def dequantize_linear(
    x: Value, scale: Tensor, zero_point: Value = None, *, axis: int = 1, block_size: int = 0, output_dtype: int = 0,
    call: Call,
) -> Tensor:  # fmt: skip
    value = _number(x, call.lift)
    wide = dtypes.float32 if value.dtype.is_float else dtypes.int32
    value = value.cast(wide)
    if zero_point is not None:
        value = value - _spread(_number(zero_point, call.lift), x.shape, axis, block_size).cast(wide)
    made = value.cast(dtypes.float32) * _spread(scale, x.shape, axis, block_size).cast(dtypes.float32)
    return made.cast(NAMES[output_dtype] if output_dtype else scale.dtype)


@onnx_op("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(x: Tensor) -> tuple[Value, ...]:
    """uint8 by the range of the values, in which zero is exact."""
    low, high = x.min().minimum(0), x.max().maximum(0)
    scale = (high - low) / 255
    scale_or_one = scale.eq(0).where(1, scale)
    zero = (-low / scale_or_one).round().clip(0, 255)
    return rounded(x / scale_or_one, zero, "uint8"), scale, zero.cast(dtypes.uint8)


# --- products --------------------------------------------------------------------------------------


def _centred(x: Tensor, zero: Tensor | None, axis: int) -> Tensor:
    """Integers less their zero point, of which there may be one for each row or column."""
    wide = x.cast(dtypes.int32)
    if zero is None:
        return wide
    per_place = zero.reshape([-1 if n == axis % len(x.shape) else 1 for n in range(len(x.shape))])
    return wide - (zero.reshape(()) if zero.numel() == 1 else per_place if len(zero.shape) == 1 else zero).cast(
        wide.dtype
    )


@onnx_op("MatMulInteger", since=10)
def matmul_integer(a: Tensor, b: Tensor, a_zero: Tensor | None = None, b_zero: Tensor | None = None) -> Tensor:
    return _centred(a, a_zero, -2) @ _centred(b, b_zero, -1)


@onnx_op("ConvInteger", since=10)
def conv_integer(
    x: Tensor, w: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None, *, auto_pad: str = "NOTSET",
    dilations: list[int] | None = None, group: int = 1, kernel_shape: list[int] | None = None,
    pads: list[int] | None = None, strides: list[int] | None = None,
) -> Tensor:  # fmt: skip
    """Padding stands for the zero point, so it is zero here."""
    return conv(
        _centred(x, x_zero, 1), _centred(w, w_zero, 0), auto_pad=auto_pad, dilations=dilations, group=group, pads=pads,
        strides=strides,
    )  # fmt: skip


@onnx_op("QLinearMatMul", since=10)
def qlinear_matmul(
    a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor, y_scale: Tensor,
    y_zero: Tensor,
) -> Value:  # fmt: skip
    product = _centred(a, a_zero, -2) @ _centred(b, b_zero, -1)
    left = a_scale.unsqueeze(-1) if a_scale.numel() > 1 and len(a_scale.shape) == 1 else a_scale
    factor = left.cast(dtypes.float32) * b_scale.cast(dtypes.float32) / y_scale.cast(dtypes.float32)
    return rounded(product.cast(dtypes.float32) * factor, y_zero, y_zero.dtype.name)


@onnx_op("QLinearConv", since=10)
def qlinear_conv(
    x: Tensor, x_scale: Tensor, x_zero: Tensor, w: Tensor, w_scale: Tensor, w_zero: Tensor, y_scale: Tensor,
    y_zero: Tensor, b: Tensor | None = None, *, auto_pad: str = "NOTSET", dilations: list[int] | None = None,
    group: int = 1, kernel_shape: list[int] | None = None, pads: list[int] | None = None,
    strides: list[int] | None = None,
) -> Value:  # fmt: skip
    product = conv(
        _centred(x, x_zero, 1), _centred(w, w_zero, 0), b, auto_pad=auto_pad, dilations=dilations, group=group,
        pads=pads, strides=strides,
    )  # fmt: skip
    channels = w_scale.reshape((-1, *(1,) * (len(x.shape) - 2))) if w_scale.numel() > 1 else w_scale.reshape(())
    return rounded(product.cast(dtypes.float32) * (x_scale * channels / y_scale), y_zero, y_zero.dtype.name)
