"""Laws of CAST and BITCAST: chains that lose nothing, and arithmetic that moves into INDEX.

An integer expression over positions (a mask made of aranges, say) computes inside casts from INDEX.
Where the bounds prove that nothing wraps, the arithmetic moves under the cast, where every law of
whole numbers holds and where gates and addresses can use it.  Measure of termination: the number of
casts, then how far from the root they stand.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import BOOL, INDEX, INTS, DType, dtypes
from lazulite.ir.uop import UOp
from lazulite.rewrite.pattern import const, each, var
from lazulite.rewrite.rule import No, RuleSet
from lazulite.simplify.normal import normal

cast = RuleSet("cast")

x, b = var("x"), var("b", BOOL)
p, q = var("p", INDEX), var("q", INDEX)
c = const("c")
number = const("c", INTS)
COMPARISONS = (ops.LT, ops.LE, ops.EQ, ops.NE)
RING = (ops.ADD, ops.SUB, ops.MUL, ops.FLOORDIV, ops.MOD, ops.MAX, ops.MIN)


def holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of `narrow` is a value of `wide`."""
    if wide is narrow or narrow is dtypes.bool:
        return True
    if wide is dtypes.bool or narrow is dtypes.index:
        return False
    if wide is dtypes.index:
        return narrow.is_int
    if narrow.is_float and wide.bits == 8:
        return False  # each format of 8 bits has values that the others have not
    if narrow.is_float:
        return (
            wide.is_float and wide.exponent_bits >= narrow.exponent_bits and wide.mantissa_bits >= narrow.mantissa_bits
        )
    digits = narrow.bits - (narrow.kind == "int")
    if wide.is_float:
        return digits <= wide.mantissa_bits + 1 and narrow.max <= wide.largest
    return wide.min <= narrow.min and narrow.max <= wide.max


def fits(x: UOp, dtype: DType) -> bool:
    """Whether the bounds prove that an integral value is a value of the integer type."""
    return dtype.is_int and bool(dtype.min <= x.bounds[0] and x.bounds[1] <= dtype.max)


@cast.rule(c.cast())
def fold_cast(root: UOp, c: UOp) -> UOp | No:
    """(3:int32).cast(float32)  ->  3.0:float32"""
    if c.dtype.is_float and root.dtype is dtypes.index:
        return No("floats are not positions")
    return UOp.const(root.dtype, root.dtype.convert(c.value))


@cast.rule(each((ops.BITCAST,), c))
def fold_bitcast(root: UOp, c: UOp) -> UOp | No:
    """(1.0:float32).bitcast(uint32)  ->  1065353216:uint32"""
    dtype, source = root.dtype, c.dtype
    if dtypes.bool in (dtype, source) or dtype.bits != source.bits:
        return No("the widths differ")
    bits = c.arg & ((1 << source.bits) - 1)
    return UOp(ops.CONST, dtype, (), bits if dtype.is_float else int(dtype.round(bits)))


@cast.rule(x.cast(), each((ops.BITCAST,), x))
def cast_to_own_type(root: UOp, x: UOp) -> UOp | No:
    """i.cast(int32)  ->  i"""
    return x if x.dtype is root.dtype else No("the types differ")


@cast.rule(x.cast().cast())
def cast_through_wider_type(root: UOp, x: UOp) -> UOp | No:
    """i.cast(int64).cast(int16)  ->  i.cast(int16)

    From float to integer a cast saturates and between integers it wraps, so a detour of an integer
    through a float must end in a type that holds all of them.
    """
    between, final = root.src[0].dtype, root.dtype
    if not holds(between, x.dtype) and not (x.dtype is dtypes.index and fits(x, between)):
        return No("the type between does not hold every value")
    if between.is_float and x.dtype.is_integral and final.is_int and not holds(final, x.dtype):
        return No("the last cast saturates where a direct one wraps")
    return x.cast(final)


@cast.rule(each((ops.BITCAST,), each((ops.BITCAST,), x)))
def bitcast_twice(root: UOp, x: UOp) -> UOp | No:
    """i.bitcast(float32).bitcast(int32)  ->  i"""
    if not x.dtype.itemsize == root.src[0].dtype.itemsize == root.dtype.itemsize:
        return No("the widths differ")
    return x if x.dtype is root.dtype else UOp(ops.BITCAST, root.dtype, (x,))


@cast.rule(b.cast().ne(0))
def truth_of_cast_bool(b: UOp) -> UOp:
    """b.cast(int32) != 0  ->  b"""
    return b


@cast.rule(b.cast().eq(0))
def falsehood_of_cast_bool(b: UOp) -> UOp:
    """b.cast(int32) == 0  ->  ~b"""
    return ~b


@cast.rule(each(COMPARISONS, p.cast(), number), each(COMPARISONS, number, p.cast()))
def compare_position_with_number(root: UOp, p: UOp, c: UOp) -> UOp | No:
    """p.cast(int32) < 3  ->  p < 3"""
    if not fits(p, c.dtype):
        return No("the cast may wrap")
    limit = UOp.const(dtypes.index, c.value)
    return UOp(root.op, root.dtype, (limit, p) if root.src[0] is c else (p, limit))


@cast.rule(each(COMPARISONS, p.cast(), q.cast()))
def compare_positions(root: UOp, p: UOp, q: UOp) -> UOp | No:
    """p.cast(int32) < q.cast(int32)  ->  p < q"""
    dtype = root.src[0].dtype
    if not (fits(p, dtype) and fits(q, dtype)):
        return No("the cast may wrap")
    return UOp(root.op, root.dtype, tuple([source.src[0] for source in root.src]))


@cast.rule(each(RING, p.cast(), number), each(RING, number, p.cast()))
def compute_with_position(root: UOp, p: UOp, c: UOp) -> UOp | No:
    """p.cast(int32) + 3  ->  (p + 3).cast(int32)"""
    constant = UOp.const(dtypes.index, c.value)
    return _under_cast(root, (constant, p) if root.src[0] is c else (p, constant))


@cast.rule(each(RING, p.cast(), q.cast()))
def compute_with_positions(root: UOp) -> UOp | No:
    """p.cast(int32) + q.cast(int32)  ->  (p + q).cast(int32)"""
    return _under_cast(root, tuple([source.src[0] for source in root.src]))


def _under_cast(root: UOp, operands: tuple[UOp, ...]) -> UOp | No:
    result = UOp(root.op, dtypes.index, operands)
    if not all(fits(value, root.dtype) for value in (*operands, result)):
        return No("the result or an operand may wrap")
    return normal(root.op, dtypes.index, operands).cast(root.dtype)
