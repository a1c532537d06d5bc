"""The one table of operations: what each takes, gives and means.

An `Op` is an interned record.  `meaning` computes one element from Python scalars; the result is
rounded to the result type by the caller (`DType.round`), so a meaning is written as if numbers had
unlimited precision and width.  Ops without a meaning are structure: memory, movement, loops.
`docs/reference/languages.md` says which op may stand in which language.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from lazulite.ir.dtype import ANY, BOOL, FLOATS, INDEX, INTS, NUMBERS, DType, Scalar, dtypes

ResultType = Callable[..., DType]


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One operation.  Records are unique by name and compared by identity."""

    name: str
    number: int
    operands: int | None
    """How many sources; None where it varies."""
    family: str
    """``elementwise``, ``movement``, ``memory``, ``loop`` or ``structure``."""
    doc: str
    accepts: frozenset[DType] = ANY
    result: ResultType | None = None
    meaning: Callable[..., Scalar | Fraction] | None = None
    symbol: str | None = None
    """The infix or prefix spelling in the text form; None for call syntax."""
    commutes: bool = False
    associates: bool = False
    identity: Callable[[DType], Scalar] | None = None
    """For ops that can reduce: the value that changes nothing."""

    def __repr__(self) -> str:
        return self.name.upper()

    def __reduce__(self) -> tuple[object, ...]:
        return by_name, (self.name,)


OPS: dict[str, Op] = {}


def by_name(name: str) -> Op:
    """The op with this name; KeyError where there is none."""
    return OPS[name]


def op(name: str, operands: int | None, family: str, doc: str, **facts: object) -> Op:
    """Enter one operation into the table."""
    record = Op(name, len(OPS), operands, family, doc, **facts)  # type: ignore[arg-type]
    OPS[name] = record
    return record


def same_type(*types: DType) -> DType:
    return types[0]


def boolean(*types: DType) -> DType:
    return dtypes.bool


def second_type(*types: DType) -> DType:
    return types[1]


# --- elementwise: arithmetic -------------------------------------------------------------------


def _divide(x: float, y: float) -> float:
    if y != 0.0:
        return x / y
    if x == 0.0 or x != x:
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _maximum(x: Scalar, y: Scalar) -> Scalar:
    if x != x or y != y:
        return math.nan
    if x == y == 0 and isinstance(x, float):
        return x if math.copysign(1.0, x) > 0 else y
    return max(x, y)


def _minimum(x: Scalar, y: Scalar) -> Scalar:
    if x != x or y != y:
        return math.nan
    if x == y == 0 and isinstance(x, float):
        return x if math.copysign(1.0, x) < 0 else y
    return min(x, y)


def _number_of(choose: Callable[[Scalar, Scalar], Scalar]) -> Callable[[Scalar, Scalar], Scalar]:
    """The choice between two numbers; a NaN is not chosen beside a number."""
    return lambda x, y: y if x != x else x if y != y else choose(x, y)


def _fma(x: Scalar, y: Scalar, z: Scalar) -> Scalar | Fraction:
    """The exact result where it is finite, for the caller to round once."""
    if isinstance(x, int) or not all(math.isfinite(v) for v in (x, y, z)):
        return x * y + z
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    return exact if exact else x * y + z  # the sum of floats knows the sign of a zero


def _dot_of_halves(x: int, y: int) -> int:
    low_x, low_y = [((word + (1 << 15)) & 0xFFFF) - (1 << 15) for word in (x, y)]
    return low_x * low_y + (x >> 16) * (y >> 16)


def _floor_divide(x: int, y: int) -> int:
    return 0 if y == 0 else x // y


def _modulo(x: int, y: int) -> int:
    return 0 if y == 0 else x % y


def _truncating_divide(x: int, y: int) -> int:
    return x // y if (x < 0) == (y < 0) else -(-x // y)


def _zero(dtype: DType) -> Scalar:
    return dtype.round(0)


def _nan(dtype: DType) -> Scalar:
    return math.nan


def _one(dtype: DType) -> Scalar:
    return dtype.round(1)


ADD = op("add", 2, "elementwise", "Sum. Integers wrap around in their own width.", accepts=NUMBERS, result=same_type,
         meaning=operator.add, symbol="+", commutes=True, associates=True, identity=_zero)
SUB = op("sub", 2, "elementwise", "Difference.", accepts=NUMBERS, result=same_type, meaning=operator.sub, symbol="-")
MUL = op("mul", 2, "elementwise", "Product. Integers wrap around in their own width.", accepts=NUMBERS,
         result=same_type, meaning=operator.mul, symbol="*", commutes=True, associates=True, identity=_one)
DIV = op("div", 2, "elementwise", "Quotient of floats, correctly rounded.", accepts=FLOATS, result=same_type,
         meaning=_divide, symbol="/")
FLOORDIV = op("floordiv", 2, "elementwise", "Quotient of integers, rounded down; x // 0 is 0.", accepts=INTS | INDEX,
              result=same_type, meaning=_floor_divide, symbol="//")
MOD = op("mod", 2, "elementwise", "x - (x // y) * y; the sign of the divisor, and x % 0 is 0.", accepts=INTS | INDEX,
         result=same_type, meaning=_modulo, symbol="%")
CDIV = op("cdiv", 2, "elementwise", "Quotient rounded towards zero, as processors divide. Undefined for the divisor 0 "
          "and for an overflow: only lowering makes it, behind a guard. INDEX operands are not negative.",
          accepts=INTS | INDEX, result=same_type, meaning=_truncating_divide)
CMOD = op("cmod", 2, "elementwise", "The remainder that belongs to CDIV; undefined where CDIV is.",
          accepts=INTS | INDEX, result=same_type, meaning=lambda x, y: x - y * _truncating_divide(x, y))
MAX = op("max", 2, "elementwise", "The larger; NaN if either is, and 0.0 is larger than -0.0.", accepts=ANY,
         result=same_type, meaning=_maximum, commutes=True, associates=True, identity=lambda dtype: dtype.min)
MIN = op("min", 2, "elementwise", "The smaller; NaN if either is, and -0.0 is smaller than 0.0.", accepts=ANY,
         result=same_type, meaning=_minimum, commutes=True, associates=True, identity=lambda dtype: dtype.max)
MAXNUM = op("maxnum", 2, "elementwise", "The larger, but for a NaN the other operand; 0.0 is larger than -0.0. Only "
            "lowering makes it.", accepts=FLOATS, result=same_type, meaning=_number_of(_maximum), commutes=True,
            associates=True, identity=_nan)
MINNUM = op("minnum", 2, "elementwise", "The smaller, but for a NaN the other operand; -0.0 is smaller than 0.0. Only "
            "lowering makes it.", accepts=FLOATS, result=same_type, meaning=_number_of(_minimum), commutes=True,
            associates=True, identity=_nan)
NEG = op("neg", 1, "elementwise", "The negative; -0.0 for 0.0.", accepts=INTS | FLOATS, result=same_type,
         meaning=operator.neg, symbol="-")
DOT2 = op("dot2", 2, "elementwise", "The sum of the products of the two signed 16-bit halves of 32-bit integers, which "
          "wraps around.", accepts=frozenset({dtypes.int32}), result=same_type, meaning=_dot_of_halves, commutes=True)
FMA = op("fma", 3, "elementwise", "x * y + z with one rounding.", accepts=NUMBERS, result=same_type, meaning=_fma)

# --- elementwise: comparison, logic and choice -------------------------------------------------

LT = op("lt", 2, "elementwise", "x < y; false if either is NaN.", result=boolean, meaning=operator.lt, symbol="<")
LE = op("le", 2, "elementwise", "x <= y; false if either is NaN.", result=boolean, meaning=operator.le, symbol="<=")
EQ = op("eq", 2, "elementwise", "x == y; false if either is NaN.", result=boolean, meaning=operator.eq, symbol="==",
        commutes=True)
NE = op("ne", 2, "elementwise", "x != y; true if either is NaN.", result=boolean, meaning=operator.ne, symbol="!=",
        commutes=True)
AND = op("and", 2, "elementwise", "Bitwise and.", accepts=INTS | BOOL, result=same_type, meaning=operator.and_,
         symbol="&", commutes=True, associates=True, identity=lambda dtype: dtype.round(-1))
OR = op("or", 2, "elementwise", "Bitwise or.", accepts=INTS | BOOL, result=same_type, meaning=operator.or_,
        symbol="|", commutes=True, associates=True, identity=_zero)
XOR = op("xor", 2, "elementwise", "Bitwise exclusive or.", accepts=INTS | BOOL, result=same_type,
         meaning=operator.xor, symbol="^", commutes=True, associates=True, identity=_zero)
NOT = op("not", 1, "elementwise", "Bitwise complement; logical not of a bool.", accepts=INTS | BOOL, result=same_type,
         meaning=lambda x: not x if isinstance(x, bool) else ~x, symbol="~")
SHL = op("shl", 2, "elementwise", "x shifted left by y bits; 0 where y is not below the width.", accepts=INTS | INDEX,
         result=same_type, meaning=lambda x, y: x << y if 0 <= y < 128 else 0, symbol="<<")
SHR = op("shr", 2, "elementwise", "x shifted right by y bits, keeping the sign.", accepts=INTS | INDEX,
         result=same_type, meaning=lambda x, y: x >> y if 0 <= y < 128 else -1 if x < 0 else 0, symbol=">>")
WHERE = op("where", 3, "elementwise", "The second where the first is true, else the third.", result=second_type,
           meaning=lambda gate, x, y: x if gate else y)

# --- elementwise: functions of floats ----------------------------------------------------------


def _guarded(function: Callable[..., float], overflow: Callable[..., float]) -> Callable[..., float]:
    """A function of `math` with IEEE results where Python raises."""

    def call(*x: float) -> float:
        if any(v != v for v in x):
            return math.nan
        try:
            return function(*x)
        except (OverflowError, ValueError, ZeroDivisionError):
            return overflow(*x)

    return call


def _log_limit(x: float) -> float:
    return -math.inf if x == 0.0 else math.nan


def _power(x: float, y: float) -> float:
    if x == 1.0 or y == 0.0:
        return 1.0
    if x != x or y != y:
        return math.nan
    odd = math.isfinite(y) and y == math.floor(y) and math.fmod(y, 2.0) != 0.0
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and odd else math.inf
    except ValueError:  # a zero to a negative power, or a negative base with a fractional one
        if x == 0.0:
            return math.copysign(math.inf, x) if odd else math.inf
        return math.nan


def _round_half_even(x: float) -> float:
    return math.copysign(float(round(x)), x) if math.isfinite(x) else x


def _scaled(x: float, n: float) -> float:
    """Rounded to float64; what is subnormal there is zero in every narrower type."""
    if x != x or n != n:
        return math.nan
    try:
        return math.ldexp(x, math.floor(max(-1e6, min(n, 1e6))))
    except OverflowError:
        return math.copysign(math.inf, x)


def _integral(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: math.copysign(float(function(x)), x) if math.isfinite(x) else x


def _function(name: str, doc: str, meaning: Callable[..., float], operands: int = 1) -> Op:
    return op(name, operands, "elementwise", doc, accepts=FLOATS, result=same_type, meaning=meaning)


SQRT = _function("sqrt", "Square root, correctly rounded; NaN below zero.", _guarded(math.sqrt, lambda x: math.nan))
EXP = _function("exp", "e to the power x.", _guarded(math.exp, lambda x: math.inf))
EXP2 = _function("exp2", "2 to the power x.", _guarded(lambda x: 2.0**x, lambda x: math.inf))
LOG = _function("log", "Natural logarithm; -inf at zero, NaN below.", _guarded(math.log, _log_limit))
LOG2 = _function("log2", "Logarithm to base 2; -inf at zero, NaN below.", _guarded(math.log2, _log_limit))
SIN = _function("sin", "Sine of x, an angle in radians.", _guarded(math.sin, lambda x: math.nan))
COS = _function("cos", "Cosine of x, an angle in radians.", _guarded(math.cos, lambda x: math.nan))
TAN = _function("tan", "Tangent of x, an angle in radians.", _guarded(math.tan, lambda x: math.nan))
TANH = _function("tanh", "Hyperbolic tangent.", _guarded(math.tanh, lambda x: math.nan))
ERF = _function("erf", "The error function.", _guarded(math.erf, lambda x: math.nan))
POW = _function("pow", "x to the power y, with the special cases of IEEE 754.", _power, operands=2)
SCALEB = _function("scaleb", "x * 2**floor(n), rounded once. Only lowering makes it, for an n that is not infinite.",
                   _scaled, operands=2)  # fmt: skip
FLOOR = _function("floor", "The largest integer not above x.", _integral(math.floor))
TRUNC = _function("trunc", "The integer part of x.", _integral(math.trunc))
ROUND = _function("round", "The nearest integer, ties to even.", _round_half_even)

# --- elementwise: types and random bits --------------------------------------------------------


def _threefry(counter: int, key: int) -> int:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011); the two halves of each word are lanes."""
    mask, x, k = 0xFFFFFFFF, [counter & 0xFFFFFFFF, counter >> 32], [key & 0xFFFFFFFF, key >> 32]
    k.append(k[0] ^ k[1] ^ 0x1BD11BDA)
    x = [(x[0] + k[0]) & mask, (x[1] + k[1]) & mask]
    for group, rotations in enumerate(((13, 15, 26, 6), (17, 29, 16, 24)) * 2 + ((13, 15, 26, 6),)):
        for r in rotations:
            x[0] = (x[0] + x[1]) & mask
            x[1] = ((x[1] << r | x[1] >> (32 - r)) & mask) ^ x[0]
        x = [(x[0] + k[(group + 1) % 3]) & mask, (x[1] + k[(group + 2) % 3] + group + 1) & mask]
    return x[1] << 32 | x[0]


THREEFRY = op("threefry", 2, "elementwise", "64 random bits from a counter and a key: Threefry-2x32, 20 rounds.",
              accepts=frozenset({dtypes.uint64}), result=same_type, meaning=_threefry)
CAST = op("cast", 1, "elementwise", "The value in another type; float to integer saturates and NaN gives 0.")
BITCAST = op("bitcast", 1, "elementwise", "The same bits read as another type; widths differ only in `TENSOR`, "
             "where the last axis changes in proportion.")

# --- values without elements of their own ------------------------------------------------------

CONST = op("const", 0, "structure", "A constant of rank 0; `arg` holds its bits.")
IOTA = op("iota", 0, "structure", "The vector 0, 1, .. `arg` - 1.")
SCALAR = op("scalar", 0, "structure", "A rank-0 argument passed by value; `arg` = (slot, low, high), bounds or None.")
BUFFER = op("buffer", 0, "memory", "The contents of one storage; `arg` = (storage number, version, shape, device).")
PARAM = op("param", 0, "memory", "The memory argument of a graph or kernel; `arg` = (slot, shape, device).")
SCRATCH = op("scratch", 0, "memory", "Memory private to one thread of a kernel; `arg` = (number, size, alignment).")

# --- movement: `arg` says where each element of the result comes from --------------------------

RESHAPE = op("reshape", 1, "movement", "The same elements in row-major order in another shape, `arg`.")
PERMUTE = op("permute", 1, "movement", "Axis i of the result is axis `arg`[i] of the source.")
EXPAND = op("expand", 1, "movement", "Axes of size 1 repeated to the shape `arg`, which may have more leading axes.")
PAD = op("pad", 1, "movement", "Zeros around the source; `arg` = ((before, after), ..) for each axis.")
SHRINK = op("shrink", 1, "movement", "The box `arg` = ((begin, end), ..) of the source.")
FLIP = op("flip", 1, "movement", "The axes in `arg` reversed.")

# --- whole tensors -----------------------------------------------------------------------------

REDUCE = op("reduce", None, "structure", "Combine along axes or ranges. `TENSOR`: `arg` = (op, axes), the axes stay "
            "with size 1. `KERNEL`: `arg` = (op, ()), the ranges follow the value.")
MMA = op("mma", None, "structure", "What a matrix unit does: (a, x, y, ranges..) is a plus the sum over the ranges of "
         "x * y, in the type of a. Products are exact; a float sum rounds once for each term at most, in any order.")
GATHER = op("gather", None, "structure", "Elements of the first source picked by the others, int32 positions of one "
            "shape for its first axes: result[i.., j..] = x[p(i).., j..], and 0 where a position lies outside.")
DETACH = op("detach", 1, "structure", "The source, through which no gradient passes.")
FUNCTION = op("function", None, "structure", "The first source as a function of the others, with the gradient that "
              "`arg`, a `Derivative`, tells.")
COPY = op("copy", 1, "structure", "The source on the device `arg`.")
WRITE = op("write", 2, "structure", "The first source with the region `arg` replaced by the second; `arg` is the chain "
           "of movements ((name, arg), ..) that leads from the first source to a view of the second's shape.")
CALL = op("call", None, "structure", "A body (first source) applied to arguments, `arg` of them: an effect.")
PROGRAM = op("program", None, "structure", "A finished program, as the body of a CALL; `arg` tells its accesses.")
LAUNCH = op("launch", None, "structure", "What one memory holds after a hand-written kernel ran; the sources are what "
            "its memories held before, `arg` is a `Run`.")

# --- memory and order --------------------------------------------------------------------------

LOAD = op("load", None, "memory", "memory[index]; with a third source, 0 where that gate is false. `arg` may hint that "
          "what lies `arg` elements further, if there is such a place, is read soon.")
STORE = op("store", None, "memory", "memory[index] = value; with a fourth source, only where that gate is true. In "
           "`TENSOR`: (destination, value). `arg` may be a hint: \"stream\" is not read soon.")
AFTER = op("after", None, "structure", "The first source, once the others are done.")
SINK = op("sink", None, "structure", "The root of a graph with several ends.")

# --- loops -------------------------------------------------------------------------------------

RANGE = op("range", 1, "loop", "0 .. extent - 1; `arg` = (nesting order, kind), kind one of `RANGE_KINDS`.")
CARRY = op("carry", None, "loop", "State `arg` of the loop over the first source, which begins as the second.")
FOR = op("for", None, "loop", "A loop: (range, yields.., effects..); `arg` is the number of yields.")
FINAL = op("final", 1, "loop", "State `arg` of a `FOR` after its last turn.")
LINEAR = op("linear", None, "structure", "Nodes in the order in which the emitter writes them.")

RANGE_KINDS = ("loop", "parallel", "lane", "row", "unit")
ELEMENTWISE = frozenset(o for o in OPS.values() if o.family == "elementwise")
MOVEMENT = frozenset(o for o in OPS.values() if o.family == "movement")
ONLY_LOWERED = frozenset({CDIV, CMOD, MAXNUM, MINNUM, SCALEB})
"""Elementwise ops that occur below `KERNEL` only, so they need no gradient."""
COMPARISONS = frozenset({LT, LE, EQ, NE})
REDUCING = frozenset({ADD, MUL, MAX, MIN, MAXNUM, MINNUM, AND, OR})
