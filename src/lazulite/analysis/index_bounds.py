"""Whether the indices of a kernel stay in its memory: what ``CHECK=bounds`` asks of every kernel.

Takes a `KERNEL`.  An access is good when intervals, with what its gate says, show its index inside; where they do
not, z3 is asked, if it is installed.  Invariant: what passes cannot leave its memory; what is refused may be
right all the same, if nobody could show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lazulite.analysis.index_map import both
from lazulite.base.errors import IndexRangeError
from lazulite.ir import ops
from lazulite.ir.blocks import memory_of
from lazulite.ir.bounds import difference, linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.text import to_text
from lazulite.ir.uop import UOp, toposort
from lazulite.simplify.comparison import below_zero
from lazulite.simplify.facts import Facts

_PATIENCE = 2000
"""Milliseconds for one question to z3."""


def check_bounds(kernel: UOp) -> None:
    """Raise an IndexRangeError for the first load or store whose index may leave its memory."""
    for node in toposort(kernel):
        if node.op in (ops.LOAD, ops.STORE):
            memory, index, *rest = node.src
            gates = rest[1:] if node.op is ops.STORE else rest
            _check_access(node, memory, index, _with_extents(index, gates[0] if gates else None))


def _with_extents(index: UOp, gate: UOp | None) -> UOp | None:
    """The gate, and that ranges end where their extents say that are expressions."""
    for r in sorted(index.ranges, key=lambda r: r.arg[0]):
        if r.src[0].op is not ops.CONST:
            gate = both(gate, below_zero(difference(r, r.src[0])))
    return gate


def _check_access(node: UOp, memory: UOp, index: UOp, gate: UOp | None) -> None:
    memory = memory_of(memory)
    size = math.prod(memory.arg[1]) if memory.op is ops.PARAM else int(memory.arg[1])
    low, high = Facts(gate).bounds(linear(index))
    if (0 <= low and high < size) or (gate is not None and gate.is_const(False)) or _shown_inside(index, gate, size):
        return
    raise IndexRangeError(
        "kernel", f"a {node.op.name} can leave its memory: the index {_text(index)} runs from {low} to {high}, "
        f"and there are {size} elements",
        rule="CHECK=bounds wants every index inside, or under a gate that keeps it there.",
        hint="give the access a gate, or install z3-solver, which shows more" if gate is None else "a narrower gate",
        about={} if gate is None else {"the gate": _text(gate)},
    )  # fmt: skip


def _text(node: UOp) -> str:
    return to_text(node).splitlines()[-1].removeprefix("return ")


# --- by z3 -----------------------------------------------------------------------------------------


def _shown_inside(index: UOp, gate: UOp | None, size: int) -> bool:
    """Whether no values of the leaves make the gate true and the index leave the memory."""
    try:
        import z3
    except ImportError:
        return False
    solver = z3.Solver()
    solver.set("timeout", _PATIENCE)
    terms: dict[UOp, Any] = {}
    for node in toposort(index, *([] if gate is None else [gate])):
        terms[node] = _term(z3, solver, node, [terms.get(source) for source in node.src])
    if gate is not None:
        solver.add(terms[gate])
    solver.add(z3.Or(terms[index] < 0, terms[index] >= size))
    return bool(solver.check() == z3.unsat)


_MEANING: dict[ops.Op, Callable[..., Any]] = {
    ops.ADD: lambda z3, a, b: a + b,
    ops.SUB: lambda z3, a, b: a - b,
    ops.MUL: lambda z3, a, b: a * b,
    ops.LT: lambda z3, a, b: a < b,
    ops.LE: lambda z3, a, b: a <= b,
    ops.EQ: lambda z3, a, b: a == b,
    ops.NE: lambda z3, a, b: a != b,
    ops.MAX: lambda z3, a, b: z3.If(a < b, b, a),
    ops.MIN: lambda z3, a, b: z3.If(a < b, a, b),
    ops.WHERE: lambda z3, gate, a, b: z3.If(gate, a, b),
    ops.AND: lambda z3, a, b: z3.And(a, b),
    ops.OR: lambda z3, a, b: z3.Or(a, b),
    ops.NOT: lambda z3, a: z3.Not(a),
}
_LOGIC = frozenset({ops.AND, ops.OR, ops.NOT})


def _term(z3: Any, solver: Any, node: UOp, src: list[Any]) -> Any:
    """The node over integers; what z3 is not told of is any number within its bounds."""
    if node.op is ops.CONST and node.dtype.is_integral:
        return z3.BoolVal(bool(node.value)) if node.dtype is dtypes.bool else z3.IntVal(int(node.value))
    exact = node.dtype is dtypes.bool or node.dtype is dtypes.index  # numbers of other types may wrap
    alike = all(term is not None for term in src) and (node.op not in _LOGIC or node.dtype is dtypes.bool)
    if node.op in _MEANING and exact and alike:
        return _MEANING[node.op](z3, *src)
    if node.op in (ops.FLOORDIV, ops.MOD) and node.dtype is dtypes.index and alike and node.src[1].vmin > 0:
        return src[0] / src[1] if node.op is ops.FLOORDIV else src[0] % src[1]
    if not node.dtype.is_integral:
        return None
    if node.dtype is dtypes.bool:
        return z3.FreshBool()
    number = z3.FreshInt()
    solver.add(number >= int(node.vmin), number <= int(node.vmax))
    if node.op is ops.CAST and alike and node.src[0].dtype.is_int and node.dtype is dtypes.index:
        solver.add(number == src[0])
    return number
