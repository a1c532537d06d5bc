"""Element types: their names, ranges, exact rounding and promotion.

A `DType` is one of a fixed set of interned values, compared by identity.  `DType.round` is the only
definition of what a value becomes when it is stored in a type: integers wrap, floats round to
nearest even and overflow to infinity.  Everything that computes a value outside a compiled kernel
(folding, the interpreter) goes through it.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache

Scalar = bool | int | float


class DType:
    """One element type.

    `kind` is one of ``bool``, ``int``, ``uint``, ``float``, ``index`` (mathematical integers with
    proved bounds, never stored) and ``void`` (the type of effects).
    """

    __slots__ = ("bits", "exponent_bits", "itemsize", "kind", "mantissa_bits", "name", "number", "specials")
    bits: int
    exponent_bits: int
    itemsize: int
    """Bytes of one element in memory."""
    kind: str
    mantissa_bits: int
    name: str
    number: int
    specials: str
    """Of a float, what its special codes are: those of IEEE 754 (``ieee``), one NaN for each sign and no infinity
    (``finite``), or one NaN in the place of -0.0 and nothing else (``unsigned``)."""

    def __init__(
        self, number: int, name: str, kind: str, bits: int, exponent_bits: int = 0, mantissa_bits: int = 0,
        specials: str = "ieee",
    ) -> None:  # fmt: skip
        self.number, self.name, self.kind, self.bits = number, name, kind, bits
        self.itemsize = max(1, bits // 8)
        self.exponent_bits, self.mantissa_bits, self.specials = exponent_bits, mantissa_bits, specials

    def __repr__(self) -> str:
        return f"dtypes.{self.name}"

    def __reduce__(self) -> tuple[object, ...]:
        return by_name, (self.name,)

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: object) -> DType:
        return self

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_int(self) -> bool:
        """Signed or unsigned stored integers; neither bool nor INDEX."""
        return self.kind in ("int", "uint")

    @property
    def is_integral(self) -> bool:
        """Anything whose values are Python integers: bool, stored integers and INDEX."""
        return self.kind in ("bool", "int", "uint", "index")

    @property
    def min(self) -> Scalar:
        """The smallest value (minus infinity for floats that have one)."""
        if self.kind == "float":
            return -math.inf if self.specials == "ieee" else -self.largest
        if self.kind == "int":
            return -(1 << (self.bits - 1))
        return 0

    @property
    def max(self) -> Scalar:
        """The largest value (infinity for floats that have one)."""
        if self.kind == "float":
            return math.inf if self.specials == "ieee" else self.largest
        if self.kind == "int":
            return (1 << (self.bits - 1)) - 1
        return (1 << self.bits) - 1

    @property
    def largest(self) -> float:
        """The largest finite value of a float type."""
        digits = self.mantissa_bits - (self.specials == "finite")  # there, the code above it is NaN
        return (2.0 - 2.0**-digits) * 2.0**self.largest_exponent

    @property
    def bias(self) -> int:
        """What the exponent field of 1.0 holds."""
        return (1 << (self.exponent_bits - 1)) - (self.specials != "unsigned")

    @property
    def largest_exponent(self) -> int:
        """The exponent of the largest finite value."""
        return (1 << self.exponent_bits) - 1 - (self.specials == "ieee") - self.bias

    @property
    def epsilon(self) -> float:
        """The distance from 1.0 to the next larger float."""
        return float(2.0**-self.mantissa_bits)

    def round(self, value: Scalar | Fraction) -> Scalar:
        """The value as this type holds it: integers wrap around, floats round once to nearest even."""
        kind = self.kind
        if kind == "float":
            return _ROUND_FLOAT[self.name](value) if self.bits > 8 else _round_to_eight_bits(self, _odd_double(value))
        if kind == "int":
            half = 1 << (self.bits - 1)
            return ((int(value) + half) & ((1 << self.bits) - 1)) - half
        if kind == "uint":
            return int(value) & ((1 << self.bits) - 1)
        return bool(value) if kind == "bool" else int(value)

    def convert(self, value: Scalar) -> Scalar:
        """What a CAST of the value to this type gives: float to integer saturates, NaN gives 0."""
        if self.is_int and isinstance(value, float):
            if value != value:
                return 0
            low, high = self.min, self.max
            return low if value <= low else high if value >= high else int(value)
        return value != 0 if self.kind == "bool" else self.round(value)

    def to_bits(self, value: Scalar) -> int:
        """The bit pattern that stores the value, as an unsigned integer."""
        if self.kind == "float":
            if self.name == "bfloat16":
                return int.from_bytes(struct.pack("<f", value), "little") >> 16
            if self.bits == 8:
                return _codes(self)[_sign_and_size(value)]
            return int.from_bytes(struct.pack(_FORMAT[self.name], value), "little")
        return int(value) & ((1 << max(self.bits, 1)) - 1)

    def from_bits(self, bits: int) -> Scalar:
        """The value that a bit pattern stores."""
        if self.kind == "float":
            if self.name == "bfloat16":
                return float(struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0])
            if self.bits == 8:
                return _values(self)[bits]
            return float(struct.unpack(_FORMAT[self.name], bits.to_bytes(self.itemsize, "little"))[0])
        return self.round(bits)


_FORMAT = {"float16": "<e", "float32": "<f", "float64": "<d"}


def _round_to_precision(value: float, exponent_bits: int, mantissa_bits: int, largest: float) -> float:
    """Round to nearest even in a narrow float format, straight from the double (never twice)."""
    if value != value or math.isinf(value) or value == 0.0:
        return value
    smallest_exponent = 2 - (1 << (exponent_bits - 1))
    exponent = max(math.frexp(value)[1] - 1, smallest_exponent)
    quantum = math.ldexp(1.0, exponent - mantissa_bits)
    rounded = round(value / quantum) * quantum
    if abs(rounded) > largest:
        return math.copysign(math.inf, value)
    return math.copysign(rounded, value)


def _round_to_eight_bits(dtype: DType, value: float) -> float:
    """Round to nearest even in a format of 8 bits; what is too large becomes what the format has for it."""
    smallest = 1 - dtype.bias
    overflow = math.copysign(math.inf, value) if dtype.specials == "ieee" else math.nan
    if value != value or math.isinf(value):
        return overflow if value == value else value
    exponent = max(math.frexp(value)[1] - 1, smallest) if value else smallest
    quantum = math.ldexp(1.0, exponent - dtype.mantissa_bits)
    rounded = round(value / quantum) * quantum
    if abs(rounded) > dtype.largest:
        return overflow
    return abs(rounded) if rounded == 0 and dtype.specials == "unsigned" else math.copysign(rounded, value)


@cache
def _values(dtype: DType) -> tuple[float, ...]:
    """What each code of 8 bits stands for."""
    return tuple([_value_of_code(dtype, code) for code in range(256)])


def _value_of_code(dtype: DType, code: int) -> float:
    size, sign = code & 0x7F, -1.0 if code & 0x80 else 1.0
    if (dtype.specials == "unsigned" and code == 0x80) or (dtype.specials == "finite" and size == 0x7F):
        return math.nan
    digits = dtype.mantissa_bits
    exponent, fraction = size >> digits, size & ((1 << digits) - 1)
    if dtype.specials == "ieee" and exponent == (1 << dtype.exponent_bits) - 1:
        return math.nan if fraction else sign * math.inf
    if exponent:
        fraction |= 1 << digits
    return sign * math.ldexp(fraction, max(exponent, 1) - dtype.bias - digits)


@cache
def _codes(dtype: DType) -> dict[tuple[float, float], int]:
    """The code of each value; of several NaN the one with the highest digit only, and no sign."""
    codes = {_sign_and_size(value): code for code, value in enumerate(_values(dtype)) if value == value}
    nan = {"ieee": 0x7E, "finite": 0x7F, "unsigned": 0x80}[dtype.specials]
    return codes | {_sign_and_size(math.nan): nan, _sign_and_size(-math.nan): nan}


def _sign_and_size(value: Scalar) -> tuple[float, float]:
    """A float as a key: zeros differ by their sign, all NaN are one."""
    return (0.0, -1.0) if value != value else (math.copysign(1.0, value), abs(value))


def _round_double(value: Scalar | Fraction) -> float:
    try:
        return float(value)
    except OverflowError:  # an exact number beyond the largest double
        return math.inf if value > 0 else -math.inf


def _odd_double(value: Scalar | Fraction) -> float:
    """A double from which any rounding to fewer digits is right: an inexact one has an odd mantissa."""
    if isinstance(value, float):
        return value
    nearest = _round_double(value)
    if math.isfinite(nearest) and Fraction(nearest) != value:
        mantissa = int(math.ldexp(math.frexp(nearest)[0], 53))
        if not mantissa & 1:
            return math.nextafter(nearest, math.inf if value > Fraction(nearest) else -math.inf)
    return nearest


_ROUND_FLOAT: dict[str, Callable[[Scalar | Fraction], float]] = {
    "float64": _round_double,
    "float32": lambda value: ctypes.c_float(_odd_double(value)).value,
    "float16": lambda value: _round_to_precision(_odd_double(value), 5, 10, 65504.0),
    "bfloat16": lambda value: _round_to_precision(_odd_double(value), 8, 7, 3.3895313892515355e38),
}


class dtypes:
    """The element types by name, and what is asked of them.

    >>> dtypes.promote(dtypes.int8, dtypes.uint8)
    dtypes.int16
    """

    void = DType(0, "void", "void", 0)
    bool = DType(1, "bool", "bool", 1)
    int8 = DType(2, "int8", "int", 8)
    uint8 = DType(3, "uint8", "uint", 8)
    int16 = DType(4, "int16", "int", 16)
    uint16 = DType(5, "uint16", "uint", 16)
    int32 = DType(6, "int32", "int", 32)
    uint32 = DType(7, "uint32", "uint", 32)
    int64 = DType(8, "int64", "int", 64)
    uint64 = DType(9, "uint64", "uint", 64)
    float16 = DType(10, "float16", "float", 16, 5, 10)
    bfloat16 = DType(11, "bfloat16", "float", 16, 8, 7)
    float32 = DType(12, "float32", "float", 32, 8, 23)
    float64 = DType(13, "float64", "float", 64, 11, 52)
    index = DType(14, "index", "index", 64)
    fp8e4m3 = DType(15, "fp8e4m3", "float", 8, 4, 3, "finite")
    fp8e5m2 = DType(16, "fp8e5m2", "float", 8, 5, 2)
    fp8e4m3fnuz = DType(17, "fp8e4m3fnuz", "float", 8, 4, 3, "unsigned")
    fp8e5m2fnuz = DType(18, "fp8e5m2fnuz", "float", 8, 5, 2, "unsigned")

    half, float, double = float16, float32, float64
    char, short, int, long = int8, int16, int32, int64
    uchar, ushort, uint, ulong = uint8, uint16, uint32, uint64
    default_float = float32
    default_int = int32

    @staticmethod
    def promote(*types: DType) -> DType:
        """The type of a result whose operands have these types (the lattice that JAX defines)."""
        return promote(*types)

    @staticmethod
    def promotion_table() -> str:
        """The whole lattice as text: a row and a column for every type, the result where they meet.

        >>> print(dtypes.promotion_table().splitlines()[0].split()[:3])
        ['bool', 'int8', 'uint8']
        """
        width = max(len(t.name) for t in STORED) + 1
        rows = ["".ljust(width) + "".join(t.name.ljust(width) for t in STORED)]
        for left in STORED:
            rows.append(left.name.ljust(width) + "".join(promote(left, r).name.ljust(width) for r in STORED))
        return "\n".join(row.rstrip() for row in rows)


STORED: tuple[DType, ...] = (
    dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32,
    dtypes.int64, dtypes.uint64,
    dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.fp8e4m3fnuz, dtypes.fp8e5m2fnuz,
    dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64,
)  # fmt: skip
ALL: tuple[DType, ...] = (*STORED, dtypes.index, dtypes.void)
BOOL: frozenset[DType] = frozenset({dtypes.bool})
INTS: frozenset[DType] = frozenset(t for t in STORED if t.is_int)
FLOATS: frozenset[DType] = frozenset(t for t in STORED if t.is_float)
EIGHT_BITS: frozenset[DType] = frozenset(t for t in FLOATS if t.bits == 8)
NARROW: frozenset[DType] = frozenset(t for t in FLOATS if t.bits < 32)
"""Floats whose arithmetic is that of float32, rounded."""
INDEX: frozenset[DType] = frozenset({dtypes.index})
NUMBERS: frozenset[DType] = INTS | FLOATS | INDEX
ANY: frozenset[DType] = NUMBERS | BOOL

_BY_NAME: dict[str, DType] = {t.name: t for t in ALL}
_BY_NAME |= {
    alias: getattr(dtypes, alias) for alias in "half float double char short int long uchar ushort uint ulong".split()
}


def by_name(name: str) -> DType:
    """The type with this name or alias; KeyError where there is none."""
    return _BY_NAME[name]


def names() -> Iterable[str]:
    """Every name and alias that `by_name` knows."""
    return _BY_NAME.keys()


# Each type and the types directly above it; a result is the lowest type above all operands.
_ABOVE: dict[DType, tuple[DType, ...]] = {
    dtypes.bool: (dtypes.int8, dtypes.uint8),
    dtypes.int8: (dtypes.int16,),
    dtypes.uint8: (dtypes.int16, dtypes.uint16),
    dtypes.int16: (dtypes.int32,),
    dtypes.uint16: (dtypes.int32, dtypes.uint32),
    dtypes.int32: (dtypes.int64,),
    dtypes.uint32: (dtypes.int64, dtypes.uint64),
    dtypes.int64: (dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.fp8e4m3fnuz, dtypes.fp8e5m2fnuz),
    dtypes.uint64: (dtypes.fp8e4m3, dtypes.fp8e5m2, dtypes.fp8e4m3fnuz, dtypes.fp8e5m2fnuz),
    dtypes.fp8e4m3: (dtypes.float16, dtypes.bfloat16),
    dtypes.fp8e5m2: (dtypes.float16, dtypes.bfloat16),
    dtypes.fp8e4m3fnuz: (dtypes.float16, dtypes.bfloat16),
    dtypes.fp8e5m2fnuz: (dtypes.float16, dtypes.bfloat16),
    dtypes.float16: (dtypes.float32,),
    dtypes.bfloat16: (dtypes.float32,),
    dtypes.float32: (dtypes.float64,),
    dtypes.float64: (),
}


@cache
def _upper_set(dtype: DType) -> frozenset[DType]:
    return frozenset({dtype}).union(*(_upper_set(above) for above in _ABOVE[dtype]))


@cache
def promote(*types: DType) -> DType:
    """The lowest type that is above all of these in the promotion lattice."""
    if len(set(types)) == 1:
        return types[0]
    common = frozenset.intersection(*(_upper_set(t) for t in types))
    lowest = [t for t in STORED if t in common and common <= _upper_set(t)]
    if lowest:
        return lowest[0]
    # Several are equally low: of int64 with uint64 the default float, of two formats of 8 bits float16.
    return dtypes.float16 if any(t.is_float for t in types) else dtypes.default_float
