"""Laws of LOAD and STORE in kernels: gates that are decided, and indices under a gate.

Where a gate is false a LOAD gives 0 and a STORE does nothing, whatever the index.  Measure of
termination: the number of gates, then the number of divisions.
"""

from __future__ import annotations

from lazulite.ir import ops
from lazulite.ir.dtype import BOOL, INDEX
from lazulite.ir.uop import UOp
from lazulite.rewrite.pattern import each, var
from lazulite.rewrite.rule import No, RuleSet
from lazulite.simplify.division import assuming
from lazulite.simplify.facts import Facts, has_division

memory = RuleSet("memory")

m, x = var("m"), var("x")
p, b = var("p", INDEX), var("b", BOOL)


@memory.rule(each((ops.LOAD,), m, p, 1), each((ops.STORE,), m, p, x, 1))
def gate_always_open(root: UOp) -> UOp:
    """m[p if true]  ->  m[p]"""
    return UOp(root.op, root.dtype, root.src[:-1])


@memory.rule(each((ops.LOAD,), m, p, 0))
def gate_never_open(root: UOp) -> UOp:
    """m[p if false]  ->  0.0:float32"""
    return UOp.const(root.dtype, 0)


@memory.rule(each((ops.LOAD,), m, p, b), each((ops.STORE,), m, p, x, b))
def index_under_gate(root: UOp, p: UOp, b: UOp) -> UOp | No:
    """m[(p // 8) * 8 if p < 8]  ->  m[0 if p < 8]"""
    if not has_division(p):
        return No("the index has no division")
    return UOp(root.op, root.dtype, (root.src[0], assuming(p, Facts(b)), *root.src[2:]))
