"""What a program over tensors should give: NumPy arrays beside bounds of what rounding may change.

A `Model` follows one value of a program.  Its elements are computed in the value's own type, so integers
and plain float arithmetic are compared bit by bit; `error` bounds what elementary functions and sums may
differ by, and `settled` tells whether every way to compile the program must give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lazulite.ir.dtype import DType, dtypes

Array = Any
MANTISSA = {dtypes.float16: 10, dtypes.bfloat16: 7, dtypes.float32: 23, dtypes.float64: 52}


@dataclass(repr=False)
class Model:
    """The expected elements; `error` is None where they are exact, `settled` false below a sum of floats."""

    dtype: DType
    array: Array
    error: Array | None = None
    settled: bool = True
    owner: bool = False
    """Whether it may be written to without anything else changing."""

    def __repr__(self) -> str:
        return f"{self.dtype.name}{self.shape}"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    @property
    def exact(self) -> bool:
        return self.error is None


def array_type(dtype: DType) -> Any:
    """The NumPy type that holds the elements (bfloat16 lies in float32)."""
    return np.dtype("float32" if dtype is dtypes.bfloat16 else dtype.name)


def epsilon(dtype: DType) -> float:
    """Half the distance of 1 to the next number, which bounds the relative error of one rounding."""
    return float(2.0 ** -(MANTISSA[dtype] + 1))


def fitted(dtype: DType, array: Array) -> Array:
    """Elements rounded to a type; only bfloat16 needs more than NumPy does."""
    array = np.asarray(array)
    if dtype is not dtypes.bfloat16:
        return array.astype(array_type(dtype))
    bits = array.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(array), np.float32(np.nan), rounded.view(np.float32)).astype(np.float32)


def converted(dtype: DType, array: Array) -> Array:
    """A cast: floats to integers saturate and NaN gives 0, integers wrap, bool asks for not zero."""
    if dtype is dtypes.bool:
        return array != 0
    if dtype.is_float or array.dtype.kind != "f":
        return fitted(dtype, array)
    limits = np.iinfo(array_type(dtype))
    flat = [0 if x != x else int(max(min(x, 2.0**70), -(2.0**70))) for x in array.reshape(-1).tolist()]
    inside = [min(max(x, int(limits.min)), int(limits.max)) for x in flat]
    return np.array(inside, array_type(dtype)).reshape(array.shape)


# --- elementwise -------------------------------------------------------------------------------


def worst(*models: Model) -> Array | None:
    """The sum of the operands' errors, or None where all are exact."""
    errors = [m.error for m in models if m.error is not None]
    return None if not errors else sum(errors[1:], errors[0])


def elementwise(function: Callable[..., Array], *operands: Model, result: DType | None = None) -> Model:
    """A function that rounds once and is not steeper than 1 in any operand."""
    dtype = operands[0].dtype if result is None else result
    array = fitted(dtype, function(*[o.array for o in operands]))
    error = worst(*operands)
    if error is not None:
        error = np.broadcast_to(error, array.shape) + slack(dtype, array)
    return Model(dtype, array, error, all(o.settled for o in operands))


def product(x: Model, y: Model) -> Model:
    """Errors grow by the other factor."""
    result = elementwise(lambda a, b: a * b, x, y)
    if x.exact and y.exact:
        return result
    e, f = [np.zeros(m.shape) if m.error is None else m.error for m in (x, y)]
    growth = np.abs(x.array).astype(float) * f + np.abs(y.array).astype(float) * e + e * f
    return Model(result.dtype, result.array, growth + slack(result.dtype, result.array), result.settled)


def approximate(function: Callable[[Array], Array], x: Model, ulps: float) -> Model:
    """An elementary function of exact operands, within some units in the last place."""
    assert x.exact
    wide = np.float64 if x.dtype is not dtypes.float64 else np.longdouble
    array = fitted(x.dtype, function(x.array.astype(wide)))
    return Model(x.dtype, array, 2 * (ulps + 1) * slack(x.dtype, array), x.settled)


def slack(dtype: DType, array: Array) -> Array:
    """What one rounding may change: relative to the value, or the smallest step near zero."""
    tiny = float(np.finfo(array_type(dtype)).smallest_subnormal) if dtype is not dtypes.bfloat16 else 2.0**-133
    finite = np.where(np.isfinite(array), np.abs(array), 0).astype(float)
    return epsilon(dtype) * finite * 2 + tiny


# --- movement and reductions -------------------------------------------------------------------


def moved(function: Callable[[Array], Array], *operands: Model) -> Model:
    """The same elements in other places."""
    error = None
    if any(o.error is not None for o in operands):
        errors = [np.zeros(o.shape) if o.error is None else np.broadcast_to(o.error, o.shape) for o in operands]
        error = function(*errors)
    return Model(operands[0].dtype, function(*[o.array for o in operands]), error, all(o.settled for o in operands))


def total(x: Model, axes: Sequence[int] | None, keep: bool, dtype: DType) -> Model:
    """A sum: exact for integers, else within 2 eps (log2 n + 1) sum|x| and one rounding."""
    axis = None if axes is None else tuple(axes)
    if dtype.is_int:
        return Model(dtype, np.sum(x.array.astype(array_type(dtype)), axis, array_type(dtype), keepdims=keep))
    wide = x.array.astype(np.float64)
    array = np.sum(wide, axis, keepdims=keep)
    count = x.array.size // max(array.size, 1)
    inner = dtypes.float32 if MANTISSA[dtype] < 23 else dtype
    bound = 2 * 2 * epsilon(inner) * (np.log2(max(count, 1)) + 1) * np.sum(np.abs(wide), axis, keepdims=keep)
    if x.error is not None:
        bound = bound + np.sum(np.broadcast_to(x.error, x.shape), axis, keepdims=keep)
    array = fitted(dtype, array)
    return Model(dtype, array, bound + slack(dtype, array), settled=count <= 1 and x.settled)


# --- comparing ---------------------------------------------------------------------------------


def same_bits(a: Array, b: Array) -> bool:
    """Equal element by element, -0 apart from 0; one NaN is as good as another."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    signs = np.signbit(a) == np.signbit(b)
    return bool(np.all((np.isnan(a) & np.isnan(b)) | ((a == b) & signs)))


def fault(model: Model, array: Array) -> str | None:
    """What is wrong with a result, or None."""
    if array.shape != model.shape or array.dtype != array_type(model.dtype):
        return f"{array.dtype}{array.shape} instead of {model.dtype.name}{model.shape}"
    allowed = np.broadcast_to(0.0 if model.error is None else model.error, array.shape)
    with np.errstate(all="ignore"):
        distance = np.abs(array.astype(np.float64) - model.array.astype(np.float64))
    same = (array == model.array) | ((array != array) & (model.array != model.array))
    wrong = ~(same | (distance <= allowed) | ~np.isfinite(allowed))
    if not wrong.any():
        return None
    at = tuple([int(place) for place in np.argwhere(wrong)[0]])
    text = f"{array[at]!r} instead of {model.array[at]!r} within {allowed[at]:.3g} at {list(at)}"
    return f"{text}, and {wrong.sum() - 1} more of {wrong.size}"
