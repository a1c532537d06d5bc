"""Angles as quarter turns and a rest: the digits of 1 / (2 pi), and the reduction of float64 by integers.

Takes an angle that is not negative; gives the number of quarter turns modulo 4 and the rest as a double
word.  The rest keeps full relative precision: no double is nearer to a multiple of pi / 2 than 2**-62 of
itself, and 128 binary places of the fraction are kept.
"""

from __future__ import annotations

from functools import cache

from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp
from lazulite.lower.build import both_halves, word
from lazulite.lower.double_word import fast_two_sum, two_product
from lazulite.lower.polynomial import Floats

PLACES = 1280
INVERSE_TURN = int(
    "28be60db9391054a7f09d5f47d4d377036d8a5664f10e4107f9458eaf7aef1586dc91b8e909374b8"
    "01924bba827464873f877ac72c4a69cfba208d7d4baed1213a671c09ad17df904e64758e60d4ce7d"
    "272117e2ef7e4a0ec7fe25fff7816603fbcbc462d6829b47db4d9fb3c9f2c26dd3d18fd9a797fa8b"
    "5d49eeb1faf97c5ecf41ce7de294a4ba9afed7ec47e357421580cc11bf1edaeafc33ef0826bd0d87",
    16,
)
"""1 / (2 pi) to 1280 binary places: the whole number below 2**1280 / (2 pi)."""

_SMALL = 2.0**-10
"""Angles below this are their own rest."""
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)


FAR = 2.0**77
"""From here on a float32 is a multiple of 2**54."""


@cache
def turn_pieces(far: bool) -> tuple[float, ...]:
    """1 / (2 pi) in doubles of at most 29 digits, whose products with a float32 are exact, and one with the rest.

    For floats below `FAR`, or from it on: the digits before the 54th place then make whole turns.
    """
    cuts = ((54, 83), (83, 112), (112, 141), (141, 194)) if far else ((0, 31), (31, 60), (60, 89), (89, 142))
    return tuple([_places(begin, end) * 2.0**-end for begin, end in cuts])


def _places(begin: int, end: int) -> int:
    """The digits of 1 / (2 pi) between two places."""
    return (INVERSE_TURN >> (PLACES - end)) & ((1 << (end - begin)) - 1)


def reduced_double(f: Floats, x: UOp) -> tuple[UOp, UOp, UOp]:
    """Quarter turns modulo 4 (a uint64), and the rest of the angle x in radians as a double word."""
    bits = word(x)
    exponent = bits >> 52
    digits = (bits & ((1 << 52) - 1)) | (1 << 52)
    high, low = _fraction(digits, _window(exponent))
    # The upper two of 128 places count quarter turns; the rest is signed, so the count rounds to nearest.
    turns = (high >> 62) + ((high >> 61) & 1)
    r, r_low = _radians(f, (high << 2) | (low >> 62), low << 2)
    small, nothing = x < _SMALL, x - x  # NaN for infinity and NaN
    return (
        small.where(UOp.const(dtypes.uint64, 0), turns),
        small.where(x, r + nothing),
        small.where(f.const(0.0), r_low),
    )


def _window(exponent: UOp) -> list[UOp]:
    """The 192 digits of 1 / (2 pi) that matter for a double with this exponent field, as three uint64.

    With x = digits * 2**e those are the places e + 1 to e + 192: the ones before make whole turns.  The
    table starts 64 places before the point.
    """
    start = exponent.maximum(1011) - 1011
    words = _select([UOp.const(dtypes.uint64, value) for value in _table()], start >> 6, 4)
    left = start & 63
    right = UOp.const(left.dtype, 63) - left
    return [(words[i] << left) | ((words[i + 1] >> 1) >> right) for i in range(3)]


def _table() -> list[int]:
    return [0] + [_places(begin, begin + 64) for begin in range(0, PLACES, 64)]


def _select(words: list[UOp], index: UOp, count: int) -> list[UOp]:
    """`count` consecutive words from a position up to 16 on, by five choices in each place."""
    for step in (16, 8, 4, 2, 1):
        chosen = (index & step).ne(0)
        needed = min(step - 1 + count, len(words))
        words = [chosen.where(words[i + step], words[i]) if i + step < len(words) else words[i] for i in range(needed)]
    return words


def _fraction(x: UOp, words: list[UOp]) -> tuple[UOp, UOp]:
    """The upper 128 of the 192 places of x times the words, whole turns dropped."""
    carried = _high_product(x, words[2])
    low = x * words[1] + carried
    carry = (low < carried).cast(dtypes.uint64)
    return x * words[0] + _high_product(x, words[1]) + carry, low


def _high_product(x: UOp, y: UOp) -> UOp:
    """The upper 64 bits of the product of two uint64."""
    x_low, x_high, y_low, y_high = x & 0xFFFFFFFF, x >> 32, y & 0xFFFFFFFF, y >> 32
    crossing = x_low * y_high
    middle = ((x_low * y_low) >> 32) + (crossing & 0xFFFFFFFF) + x_high * y_low
    return x_high * y_high + (crossing >> 32) + (middle >> 32)


def _radians(f: Floats, high: UOp, low: UOp) -> tuple[UOp, UOp]:
    """A signed fraction of a quarter turn in 128 places, as a double word of radians."""
    fourth, third = (part.cast(dtypes.float64) for part in both_halves(low))
    second, first = both_halves(high)
    leading = first.cast(dtypes.int32).cast(dtypes.float64) * 2.0**-32
    total, cut = fast_two_sum(leading, second.cast(dtypes.float64) * 2.0**-64)
    total, cut = fast_two_sum(total, cut + (third * 2.0**-96 + fourth * 2.0**-128))
    product, error = two_product(total, f.const(_HALF_PI[0]), f.fused)
    return product, error + (total * _HALF_PI[1] + cut * _HALF_PI[0])
