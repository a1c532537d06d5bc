"""Sine, cosine and tangent, for every finite argument.

An angle is reduced to a fraction of a turn: x / (2 pi) modulo 1, for which only those digits of
1 / (2 pi) matter whose product with x is neither a whole turn nor negligible.  float32 arguments are
multiplied in float64 by pieces of 1 / (2 pi) so short that each product is exact and whole turns fall
off each product alone.  float64 arguments are multiplied as integers by the 192 digits that count
(Payne and Hanek 1983).  Then r, at most an eighth of a turn, goes into two short polynomials, and the
number of quarter turns says which is wanted, with which sign.  No branches; infinities give NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.lower.build import Native, Rule, absolute, flip_sign, sign_of
from lazulite.lower.coefficients import COSINE, SINE
from lazulite.lower.polynomial import Floats, floats
from lazulite.lower.quarter_turns import FAR, reduced_double, turn_pieces


@dataclass(frozen=True)
class Angle:
    """An angle as `turns` quarter turns (a word, modulo 4) and the rest, r + low, at most pi / 4."""

    turns: UOp
    r: UOp
    low: UOp | None


def reduced(f: Floats, size: UOp) -> Angle:
    """The parts of an angle that is not negative."""
    if f.dtype is dtypes.float32:
        return _reduced_float32(f.double(), size.cast(dtypes.float64))
    return Angle(*reduced_double(f, size))


def _reduced_float32(f: Floats, x: UOp) -> Angle:
    """By exact products in float64.

    Quarter turns are counted from the sum of the parts, but subtracted from the first part, before the
    smaller ones are added: so cancellation meets exact numbers only.
    """
    far = x >= FAR
    choices = zip(turn_pieces(far=True), turn_pieces(far=False), strict=True)
    *pieces, last = [far.where(f.const(distant), near) for distant, near in choices]
    products = [x * piece for piece in pieces]
    parts = [product - UOp.apply(ops.ROUND, product) for product in products]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    quarters = f.rounded(total, 4.0)
    rest = f.multiply_add(quarters.value, -0.25, parts[0])
    for part in parts[1:]:
        rest = rest + part
    rest = f.multiply_add(x, last, rest)
    return Angle(quarters.word.cast(dtypes.uint32), (rest * (2 * math.pi)).cast(dtypes.float32), None)


def _sine_and_cosine(f: Floats, angle: Angle) -> tuple[UOp, UOp]:
    """Of the rest alone."""
    r, low = angle.r, angle.low
    square = r * r
    half = square * 0.5
    sine_tail = (r * square) * f.polynomial(square, SINE[f.dtype])
    cosine_tail = (square * square) * f.polynomial(square, COSINE[f.dtype])
    leading = 1.0 - half
    if low is None:
        return r + sine_tail, leading + cosine_tail
    lost = (1.0 - leading) - half
    return r + (sine_tail + low * leading), leading + (lost + (cosine_tail - r * low))


def sin(f: Floats, x: UOp) -> UOp:
    """The sine or cosine of the rest; negative in the second half of a turn, and with x."""
    angle = reduced(f, absolute(x))
    sine, cosine = _sine_and_cosine(f, angle)
    value = _odd(angle).where(cosine, sine)
    return flip_sign(value, _second_half(angle.turns) ^ sign_of(x))


def cos(f: Floats, x: UOp) -> UOp:
    """The sine of a quarter turn more, of |x|."""
    angle = reduced(f, absolute(x))
    sine, cosine = _sine_and_cosine(f, angle)
    return flip_sign(_odd(angle).where(sine, cosine), _second_half(angle.turns + 1))


def tan(f: Floats, x: UOp) -> UOp:
    """Sine by cosine; after an odd number of quarter turns minus cosine by sine."""
    angle = reduced(f, absolute(x))
    sine, cosine = _sine_and_cosine(f, angle)
    odd = _odd(angle)
    value = odd.where(cosine, sine) / odd.where(sine, cosine)
    turned = (angle.turns & 1) << (f.dtype.bits - 1)
    return flip_sign(value, turned ^ sign_of(x))


def _odd(angle: Angle) -> UOp:
    return (angle.turns & 1).ne(0)


def _second_half(turns: UOp) -> UOp:
    """The sign bit where the number of quarter turns, modulo 4, is 2 or 3."""
    return (turns & 2) << (turns.dtype.bits - 2)


def _rule(function: Callable[[Floats, UOp], UOp]) -> Rule:
    def expand(node: UOp, native: Native) -> UOp:
        return function(floats(node.dtype, native), node.src[0])

    return expand


RULES: dict[Op, Rule] = {ops.SIN: _rule(sin), ops.COS: _rule(cos), ops.TAN: _rule(tan)}
