"""Laws of wrapping integers at 64 bits, where values are too many to try: proved by z3."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest
import z3

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.uop import UOp, toposort
from lazulite.simplify.algebra import algebra
from lazulite.simplify.normal import normalise
from support.brute_force import example_of, scalar
from support.index_grid import loop

WIDTH = 64


def widened(root: UOp, dtype: DType) -> UOp:
    """The expression with every int32 replaced by the wider type."""
    table: dict[UOp, UOp] = {}
    for node in toposort(root):
        wide = dtype if node.dtype is dtypes.int32 else node.dtype
        if node.op is ops.CONST:
            table[node] = UOp.const(wide, node.value)
        else:
            table[node] = UOp(node.op, wide, tuple([table[s] for s in node.src]), node.arg)
    return table[root]


def formula(root: UOp) -> z3.ExprRef:
    """The expression over bit vectors (stored integers) and booleans."""
    terms: dict[UOp, z3.ExprRef] = {}
    for node in toposort(root):
        operands = [terms[s] for s in node.src]
        if node.op is ops.SCALAR:
            name = f"n{node.arg[0]}"
            terms[node] = z3.Bool(name) if node.dtype is dtypes.bool else z3.BitVec(name, WIDTH)
        elif node.op is ops.CONST:
            terms[node] = z3.BoolVal(node.value) if node.dtype is dtypes.bool else z3.BitVecVal(node.value, WIDTH)
        else:
            terms[node] = _FORMULAS[node.op](node, *operands)
    return terms[root]


def _ordered(signed, unsigned):
    return lambda node, a, b: signed(a, b) if node.src[0].dtype.kind == "int" else unsigned(a, b)


_BELOW = _ordered(lambda a, b: a < b, z3.ULT)
_FORMULAS = {
    ops.ADD: lambda node, a, b: a + b,
    ops.SUB: lambda node, a, b: a - b,
    ops.MUL: lambda node, a, b: a * b,
    ops.NEG: lambda node, a: -a,
    ops.NOT: lambda node, a: z3.Not(a) if node.dtype is dtypes.bool else ~a,
    ops.AND: lambda node, a, b: z3.And(a, b) if node.dtype is dtypes.bool else a & b,
    ops.OR: lambda node, a, b: z3.Or(a, b) if node.dtype is dtypes.bool else a | b,
    ops.XOR: lambda node, a, b: a ^ b,
    ops.LT: _BELOW,
    ops.LE: _ordered(lambda a, b: a <= b, z3.ULE),
    ops.MAX: lambda node, a, b: z3.If(_BELOW(node, a, b), b, a),
    ops.MIN: lambda node, a, b: z3.If(_BELOW(node, a, b), a, b),
    ops.WHERE: lambda node, gate, a, b: z3.If(gate, a, b),
}


def proved(left: UOp, right: UOp) -> bool:
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.add(formula(left) != formula(right))
    return solver.check() == z3.unsat


def integer_rules():
    for rule in algebra.rules:
        before, after = example_of(rule)
        known = {*_FORMULAS, ops.SCALAR, ops.CONST}
        if all(n.op in known and n.dtype in (dtypes.int32, dtypes.bool) for n in toposort(before, after)):
            yield pytest.param(before, after, id=rule.name)


@pytest.mark.parametrize("dtype", [dtypes.int64, dtypes.uint64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize(("before", "after"), list(integer_rules()))
def test_examples_over_integers_hold_at_64_bits(before, after, dtype):
    assert proved(widened(before, dtype), widened(after, dtype))


def expression(random: Random, leaves: list[UOp], depth: int) -> UOp:
    if depth == 0:
        return random.choice([*leaves, UOp.const(leaves[0].dtype, random.choice([0, 1, -1, 2, 3, 1 << 62]))])
    op = random.choice([ops.ADD, ops.SUB, ops.MUL, ops.NEG, ops.AND, ops.OR, ops.XOR, ops.NOT, ops.MAX, ops.MIN])
    operands = [expression(random, leaves, depth - 1) for _ in range(op.operands or 0)]
    if op is ops.MUL:
        operands[1] = UOp.const(operands[0].dtype, random.choice([0, 1, -1, 3, 8]))
    return UOp.apply(op, *operands)


@pytest.mark.parametrize("seed", range(12))
def test_normal_form_of_random_integer_expressions_is_equal(seed):
    dtype = dtypes.int64 if seed % 2 else dtypes.uint64
    leaves = [scalar(slot, dtype) for slot in range(3)]
    node = expression(Random(seed), leaves, 3)

    assert proved(node, normalise(node)[0])


# --- positions of any size --------------------------------------------------------------------------


def integers(root: UOp) -> z3.ArithRef:
    """An INDEX expression over z3 integers; z3 divides as we do for positive divisors."""
    terms: dict[UOp, z3.ExprRef] = {}
    for node in toposort(root, enter=lambda n: n.op is not ops.RANGE):
        operands = [terms[s] for s in node.src if s in terms]
        if node.op is ops.RANGE:
            terms[node] = z3.Int(f"r{node.arg[0][0]}")
        elif node.op is ops.CONST:
            terms[node] = z3.IntVal(node.value)
        else:
            terms[node] = {
                ops.ADD: lambda a, b: a + b, ops.MUL: lambda a, b: a * b, ops.SUB: lambda a, b: a - b,
                ops.FLOORDIV: lambda a, b: a / b, ops.MOD: lambda a, b: a % b,
            }[node.op](*operands)  # fmt: skip
    return terms[root]


RANGES = (loop(1 << 20, 0), loop(768, 1), loop(13, 2))


def positions(random: Random):
    while True:
        node = RANGES[0] * random.choice([1, 12, 768 * 13]) + RANGES[1] * random.choice([-1, 1, 13]) + RANGES[2]
        for _ in range(2):
            divisor = random.choice([3, 12, 13, 64, 768])
            node = node // divisor if random.random() < 0.5 else node % (divisor * 13)
            node = node + random.choice(RANGES) * random.choice([0, 13])
        yield node


@pytest.mark.parametrize("node", list(islice(positions(Random(5)), 10)))
def test_normal_form_of_large_positions_is_equal(node):
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    for range_ in RANGES:
        solver.add(0 <= integers(range_), integers(range_) <= range_.vmax)
    solver.add(integers(node) != integers(normalise(node)[0]))

    assert solver.check() == z3.unsat


def test_a_wrapping_sum_is_not_regrouped_across_a_comparison():
    x = scalar(0, dtypes.int64)
    node = (x + 1) < (x + 2)

    assert normalise(node) == [node]
