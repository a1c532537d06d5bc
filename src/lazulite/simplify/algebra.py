"""Laws of arithmetic on stored numbers, and folding of constants.

For floats only what holds for infinities, NaN and -0.0 as well; so x * 0, x - x and x / x stay.
Integers wrap, which keeps every ring law.  Constants go to the right.  Measure of termination: the
number of nodes, then the number of constants on the left.
"""

from __future__ import annotations

import math

from lazulite.ir import ops
from lazulite.ir.dtype import BOOL, FLOATS, INTS
from lazulite.ir.uop import UOp
from lazulite.rewrite.pattern import const, each, var
from lazulite.rewrite.rule import No, RuleSet
from lazulite.simplify.normal import shaped

algebra = RuleSet("algebra")
SIGNED = frozenset({t for t in INTS if t.kind == "int"})

x, y, z, b = var("x"), var("y"), var("z"), var("b", BOOL)
i, j = var("i", INTS), var("j", INTS)
s, t = var("s", SIGNED), var("t", INTS | BOOL)
n = var("n", INTS | FLOATS)
f, g = var("f", FLOATS), var("g", FLOATS)
c, c1, c2, c3 = const("c"), const("c1"), const("c2"), const("c3")

UNARY = (ops.NEG, ops.NOT, ops.SQRT, ops.FLOOR, ops.TRUNC, ops.ROUND)
BINARY = (ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.FLOORDIV, ops.MOD, ops.MAX, ops.MIN, ops.LT, ops.LE, ops.EQ, ops.NE,
          ops.AND, ops.OR, ops.XOR, ops.SHL, ops.SHR, ops.THREEFRY)  # fmt: skip
COMMUTATIVE = (ops.ADD, ops.MUL, ops.MAX, ops.MIN, ops.EQ, ops.NE, ops.AND, ops.OR, ops.XOR)


@algebra.rule(each(UNARY, c1), each(BINARY, c1, c2), each((ops.FMA, ops.WHERE), c1, c2, c3))
def fold_constants(root: UOp) -> UOp:
    """100:int8 + 100:int8  ->  -56:int8

    Only ops whose result is exactly rounded: what a kernel would compute is the same.
    """
    assert root.op.meaning is not None
    return UOp.const(root.dtype, root.op.meaning(*[source.value for source in root.src]))  # type: ignore[arg-type]


@algebra.rule(each(COMMUTATIVE, c, x))
def constant_on_the_right(root: UOp, c: UOp, x: UOp) -> UOp | No:
    """3 + x  ->  x + 3"""
    if x.op is ops.CONST:
        return No("both are constants")
    return UOp(root.op, root.dtype, (x, c))


@algebra.rule(t + 0, t - 0, t | 0, t ^ 0, t << 0, t >> 0)
def nothing_added(t: UOp) -> UOp:
    """i + 0  ->  i"""
    return t


@algebra.rule(f + -0.0, f - 0.0)
def negative_zero_added(f: UOp) -> UOp:
    """f - 0.0  ->  f

    Adding 0.0 is another matter: it turns -0.0 into 0.0.
    """
    return f


@algebra.rule(x * 1, x / 1, x // 1)
def times_one(x: UOp) -> UOp:
    """x * 1  ->  x"""
    return x


@algebra.rule(t * 0, t & 0, t // 0, t % 0, t % 1)
def nothing_left(root: UOp) -> UOp:
    """i * 0  ->  0

    Division by zero gives zero by definition.
    """
    return shaped(UOp.const(root.dtype, 0), root)


@algebra.rule(t - t, t ^ t)
def cancelled(root: UOp) -> UOp:
    """i - i  ->  0"""
    return shaped(UOp.const(root.dtype, 0), root)


@algebra.rule(each((ops.MAX, ops.MIN), x, x), t & t, t | t)
def same_twice(root: UOp) -> UOp:
    """max(x, x)  ->  x"""
    return root.src[0]


@algebra.rule(t & c)
def all_bits_kept(t: UOp, c: UOp) -> UOp | No:
    """i & -1  ->  i"""
    return t if c.value == c.dtype.round(-1) else No("some bits are cleared")


@algebra.rule(-(-x), ~~x)
def twice_reversed(root: UOp) -> UOp:
    """-(-x)  ->  x"""
    return root.src[0].src[0]


@algebra.rule(n * c, n / c)
def times_minus_one(n: UOp, c: UOp) -> UOp | No:
    """n * -1  ->  -n"""
    if c.value != c.dtype.round(-1):
        return No("the factor is not -1")
    return UOp(ops.NEG, n.dtype, (n,))


@algebra.rule(x + -y)
def add_negative(x: UOp, y: UOp) -> UOp:
    """x + (-y)  ->  x - y"""
    return x - y


@algebra.rule(x - -y)
def subtract_negative(x: UOp, y: UOp) -> UOp:
    """x - (-y)  ->  x + y"""
    return x + y


@algebra.rule((-x) * (-y), (-x) / (-y))
def both_negative(root: UOp, x: UOp, y: UOp) -> UOp:
    """(-x) * (-y)  ->  x * y"""
    return UOp(root.op, root.dtype, (x, y))


@algebra.rule(s - c)
def subtract_constant(s: UOp, c: UOp) -> UOp:
    """s - 3  ->  s + -3

    Unsigned integers are left alone: s + 253 hides that nothing wraps.
    """
    return s + UOp.const(c.dtype, -c.value)


@algebra.rule((t + c1) + c2, (t * c1) * c2, (t & c1) & c2, (t | c1) | c2, (t ^ c1) ^ c2)
def gather_constants(root: UOp, t: UOp, c1: UOp, c2: UOp) -> UOp:
    """(i + 1) + 2  ->  i + 3"""
    both = fold_constants(UOp(root.op, root.dtype, (c1, c2)))
    return UOp(root.op, root.dtype, (t, both))


@algebra.rule(*[each((op,), each((op,), x, c1), c2) for op in (ops.MAX, ops.MIN)])
def gather_limits(root: UOp, x: UOp, c1: UOp, c2: UOp) -> UOp:
    """max(max(x, 1), 2)  ->  max(x, 2)

    Holds for floats too: max and min pick one operand, and pass on NaN.
    """
    return UOp(root.op, root.dtype, (x, fold_constants(UOp(root.op, root.dtype, (c1, c2)))))


@algebra.rule(f / c)
def multiply_by_reciprocal(f: UOp, c: UOp) -> UOp | No:
    """f / 4  ->  f * 0.25

    Exact where the divisor is a power of two whose reciprocal is a normal number.
    """
    value = float(c.value)
    if not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return No("the divisor is not a power of two")
    smallest = 2.0 ** (2 - (1 << (c.dtype.exponent_bits - 1)))
    if abs(value) < smallest or not smallest <= abs(1 / value) <= c.dtype.largest:
        return No("the reciprocal is not a normal number")
    return f * (1 / value)


@algebra.rule(i // c)
def quotient_by_bounds(root: UOp, i: UOp, c: UOp) -> UOp | No:
    """min(i & 15, 7) // 8  ->  0"""
    low, high = (int(end) for end in i.bounds)
    divisor = int(c.value)
    if divisor <= 0 or low // divisor != high // divisor:
        return No("the quotient varies")
    return shaped(UOp.const(root.dtype, low // divisor), root)


@algebra.rule(i % c)
def remainder_by_bounds(i: UOp, c: UOp) -> UOp | No:
    """(i & 7) % 8  ->  i & 7"""
    low, high = (int(end) for end in i.bounds)
    return i if 0 <= low and high < int(c.value) else No("the dividend may leave 0 .. divisor - 1")


@algebra.rule(each((ops.MAX, ops.MIN), i, j))
def limit_by_bounds(root: UOp, i: UOp, j: UOp) -> UOp | No:
    """max(i & 7, 9)  ->  9"""
    if i.bounds[0] >= j.bounds[1]:
        larger, smaller = i, j
    elif j.bounds[0] >= i.bounds[1]:
        larger, smaller = j, i
    else:
        return No("either may be the larger")
    return shaped(larger if root.op is ops.MAX else smaller, root)


@algebra.rule(each((ops.WHERE,), 1, x, y))
def choice_is_yes(root: UOp, x: UOp) -> UOp:
    """where(true, x, y)  ->  x"""
    return shaped(x, root)


@algebra.rule(each((ops.WHERE,), 0, x, y))
def choice_is_no(root: UOp, y: UOp) -> UOp:
    """where(false, x, y)  ->  y"""
    return shaped(y, root)


@algebra.rule(b.where(x, x))
def no_choice(root: UOp, x: UOp) -> UOp:
    """where(b, x, x)  ->  x"""
    return shaped(x, root)


@algebra.rule((~b).where(x, y))
def choice_of_the_opposite(b: UOp, x: UOp, y: UOp) -> UOp:
    """where(~b, x, y)  ->  where(b, y, x)"""
    return b.where(y, x)


@algebra.rule(b.where(b.where(x, y), z), b.where(x, b.where(y, z)))
def choice_made_before(root: UOp, b: UOp, x: UOp, z: UOp) -> UOp:
    """where(b, where(b, x, y), z)  ->  where(b, x, z)"""
    return shaped(UOp(ops.WHERE, x.dtype, (b, x, z)), root)
