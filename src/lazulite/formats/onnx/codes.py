"""Element types without arithmetic of their own: what their codes mean, and the code nearest to a value.

A code is looked up in the table of the type's values.  The way back counts how many limits between
neighbouring values lie below a magnitude: exact, whatever the type's bits mean.  Ties go to the even code.
"""

from __future__ import annotations

from functools import cache
from math import inf, nan
from typing import NamedTuple

import numpy

from lazulite.formats.onnx.values import CODED, Coded, Host
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor


class _Float(NamedTuple):
    """A float of few bits: its fields, and the codes that are no finite numbers."""

    exponent: int
    mantissa: int
    bias: int
    infinity: int | None
    nans: tuple[int, ...]
    overflow: int
    """The code of a positive value too large, where it does not saturate."""
    negative_zero: bool = True


_FLOATS = {
    "float8_e4m3fn": _Float(4, 3, 7, None, (0x7F,), 0x7F),
    "float8_e4m3fnuz": _Float(4, 3, 8, None, (0x80,), 0x80, negative_zero=False),
    "float8_e5m2": _Float(5, 2, 15, 0x7C, (0x7D, 0x7E, 0x7F), 0x7C),
    "float8_e5m2fnuz": _Float(5, 2, 16, None, (0x80,), 0x80, negative_zero=False),
    "float4_e2m1fn": _Float(2, 1, 1, None, (), 7),
}
_POWERS = "float8_e8m0fnu"
"""Powers of two from 2**-127 on, and a NaN."""
_POWERS_NAN = 255


def is_integer(kind: str) -> bool:
    return "int" in kind


def value_table(kind: str) -> Host:
    """The value of each code: int8 for integers, float32 for floats."""
    codes = numpy.arange(1 << CODED[kind])
    if is_integer(kind):
        signed = not kind.startswith("u")
        return numpy.where(signed & (codes >= len(codes) // 2), codes - len(codes), codes).astype("int8")
    if kind == _POWERS:
        return numpy.append(numpy.ldexp(1.0, codes[:-1] - 127), nan).astype("float32")
    form = _FLOATS[kind]
    sign = len(codes) // 2
    values = numpy.append(_magnitudes(kind, sign), -_magnitudes(kind, sign))
    values[[code for place in form.nans for code in {place, place | sign}]] = nan
    if form.infinity is not None:
        values[[form.infinity, form.infinity | sign]] = inf, -inf
    return values.astype("float32")


def _magnitudes(kind: str, count: int) -> Host:
    form = _FLOATS[kind]
    exponent, mantissa = numpy.divmod(numpy.arange(count), 1 << form.mantissa)
    whole = mantissa + numpy.where(exponent > 0, 1 << form.mantissa, 0)
    return numpy.ldexp(whole.astype("float64"), numpy.maximum(exponent, 1) - form.bias - form.mantissa)


def decoded(x: Coded) -> Tensor:
    """The values: int8 for integers, float32 for floats."""
    return Tensor(value_table(x.kind), device=x.codes.device)[x.codes.cast(dtypes.int32)]


def encoded(x: Tensor, kind: str, saturate: bool = True, round_mode: str = "up") -> Coded:
    """The nearest codes.  Integers of a wider type keep their low bits; a float is cut first."""
    if is_integer(kind):
        return Coded((x.cast(dtypes.int64) & ((1 << CODED[kind]) - 1)).cast(dtypes.uint8), kind)
    value = x.cast(dtypes.float32)
    magnitude = value.abs()
    limits = _limits(kind, round_mode)
    number = (magnitude.unsqueeze(-1) > Tensor(limits, device=x.device)).sum(-1, dtype=dtypes.int32)
    if kind == _POWERS:
        top = number.minimum(_POWERS_NAN - 1) if saturate else number
        return Coded(value.isnan().where(_POWERS_NAN, top).cast(dtypes.uint8), kind)
    form, finite, sign = _FLOATS[kind], len(limits) - 1, 1 << (CODED[kind] - 1)
    beyond = finite if saturate or not form.nans else form.overflow
    code = (number > finite).where(beyond, number)
    negative = (value.bitcast(dtypes.int32) < 0) & (code.ne(0) if not form.negative_zero else code.eq(code))
    code = negative.where(code | sign, code)
    if form.nans:
        code = value.isnan().where(form.nans[-1], code)
    return Coded(code.cast(dtypes.uint8), kind)


@cache
def _limits(kind: str, round_mode: str) -> Host:
    """What a magnitude has to exceed for each next code; beyond the last one is no finite value."""
    if kind == _POWERS:
        grid = numpy.ldexp(1.0, numpy.arange(_POWERS_NAN) - 127)
        factor = {"up": 1.0, "nearest": 1.5, "down": 2.0}[round_mode]
        with numpy.errstate(over="ignore"):  # nothing exceeds the limit after the last one
            limits = (grid * factor).astype("float32")
        return limits if round_mode == "up" else numpy.nextafter(limits, numpy.float32(0))
    form = _FLOATS[kind]
    half = 1 << (CODED[kind] - 1)
    last = min((code for code in (form.infinity, *form.nans) if code is not None and code < half), default=half)
    grid = _magnitudes(kind, last)
    grid = numpy.append(grid, 2 * grid[-1] - grid[-2])
    middle = ((grid[:-1] + grid[1:]) / 2).astype("float32")
    even_above = numpy.arange(len(middle)) % 2 == 1
    return numpy.where(even_above, numpy.nextafter(middle, numpy.float32(0)), middle)
