"""Both sides of a rewrite rule compared on values: every value of small types, samples of wider ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.meaning import rounded
from lazulite.ir.parse import parse_expression
from lazulite.ir.uop import UOp, toposort
from lazulite.rewrite.pattern import Pattern
from lazulite.rewrite.rule import Rule

TYPES = (dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.float16, dtypes.index)
CAST_TYPES = (*TYPES, dtypes.int16, dtypes.uint16, dtypes.float32)
MEMORY = UOp(ops.PARAM, dtypes.float32, (), (0, (64,), "CPU"))
_MOST_VALUES = 3000
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 6e-8, -6e-8, 6.1e-5, 65504.0, -65504.0, math.inf, -math.inf, math.nan)
_CONSTANTS = (0, 1, -1, 2, 3, 4, 7, -2, 127, -128, 255, 0.25, -0.0, 6e-8, math.inf, math.nan)


def scalar(slot: int, dtype: DType, low: int | None = None, high: int | None = None) -> UOp:
    return UOp(ops.SCALAR, dtype, (), (slot, low, high))


def names() -> dict[str, UOp]:
    """The free names of the examples in docstrings, by what their letters mean there."""
    result = {name: scalar(slot, dtypes.float32) for slot, name in enumerate("xyzfg")}
    result |= {name: scalar(10 + slot, dtypes.int32) for slot, name in enumerate("ijnstwv")}
    result["m"] = MEMORY
    result |= {name: scalar(20 + slot, dtypes.bool) for slot, name in enumerate("ab")}
    return result | {name: scalar(30 + slot, dtypes.index, 0, 31) for slot, name in enumerate("pq")}


def example_of(rule: Rule) -> tuple[UOp, UOp]:
    """Both sides of the example in the docstring."""
    before, after = (parse_expression(side.strip(), dtypes.int32, names()) for side in rule.example.split("->"))
    return before, after


def evaluate(order: Sequence[UOp], known: Mapping[UOp, Scalar]) -> Scalar:
    """The value of the last node of a topological order."""
    values = dict(known)
    for node in order:
        if node.op is ops.CONST:
            values[node] = node.value
        elif node.op in (ops.LOAD, ops.STORE):
            values[node] = _touched(node, [values.get(s, 0) for s in node.src])
        elif node not in values and node is not MEMORY:
            values[node] = rounded(node)(*[values[s] for s in node.src])
    return values[order[-1]]


def _touched(node: UOp, operands: Sequence[Scalar]) -> Any:
    """What a LOAD gives from a memory of distinct elements; what a STORE writes where."""
    if node.op is ops.LOAD:
        return 0.0 if len(operands) > 2 and not operands[2] else 2.0 * operands[1] + 1.0
    return None if len(operands) > 3 and not operands[3] else (operands[1], repr(operands[2]))


def same(left: Scalar, right: Scalar) -> bool:
    """Equal to the bit, all NaN alike."""
    if isinstance(left, float) and isinstance(right, float):
        return (left != left and right != right) or (
            left == right and math.copysign(1, left) == math.copysign(1, right)
        )
    return left == right and type(left) is type(right)


def values_of(node: UOp, few: bool) -> list[Scalar]:
    """The values to try for a SCALAR."""
    dtype, (_, low, high) = node.dtype, node.arg
    if dtype.is_float:
        return [dtype.round(value) for value in _SPECIAL]
    if dtype is dtypes.bool:
        return [False, True]
    least, greatest = (low, high) if low is not None else (int(dtype.min), int(dtype.max))
    everything = range(least, greatest + 1)
    if len(everything) > 256 or (few and len(everything) > 14):
        ends = [*everything[:3], *everything[-3:], *everything[:: len(everything) // 7], -1, 0, 1]
        return sorted({value for value in ends if value in everything})
    return list(everything)


def counterexample(before: UOp, after: UOp) -> tuple[dict[UOp, Scalar], Scalar, Scalar] | None:
    """Values of the SCALARs for which the two expressions differ."""
    left, right = toposort(before), toposort(after)
    free = [node for node in toposort(before, after) if node.op is ops.SCALAR]
    few = math.prod([len(values_of(node, False)) for node in free]) > _MOST_VALUES
    for choice in itertools.product(*[values_of(node, few) for node in free]):
        known = dict(zip(free, choice, strict=True))
        results = evaluate(left, known), evaluate(right, known)
        if not same(*results):
            return known, *results
    return None


# --- instances of a left side ----------------------------------------------------------------------


def instances(pattern: Pattern) -> Iterator[UOp]:
    """Small expressions that the pattern matches, over SCALARs and constants of every kind."""
    leaves = sorted({part.name: part for part in _parts(pattern) if not part.src and part.name}.items())
    choices = [list(_leaf_choices(part, slot)) for slot, (_, part) in enumerate(leaves)]
    if len(choices) > 2:
        choices = [choice[:: 1 + len(choice) // 12] for choice in choices]
    for chosen in itertools.product(*choices):
        yield from _built(pattern, dict(zip([name for name, _ in leaves], chosen, strict=True)), None)


def _parts(pattern: Pattern) -> Iterator[Pattern]:
    yield pattern
    for part in pattern.src or ():
        yield from _parts(part)


def _leaf_choices(leaf: Pattern, slot: int) -> Iterator[UOp]:
    if leaf.name == "m":
        yield MEMORY
        return
    for dtype in TYPES:
        if leaf.dtypes is not None and dtype not in leaf.dtypes:
            continue
        if leaf.ops is not None:
            yield from {UOp.const(dtype, v): None for v in _CONSTANTS if dtype.is_float or v in range(-200, 300)}
        elif dtype is dtypes.index:
            yield from (
                scalar(slot, dtype, -3, 5),
                (scalar(9, dtype, -3, 5) + 3) // 6 + scalar(slot, dtype, -3, 5),
                scalar(slot, dtype, 4, 6) * 2 + 1,
                scalar(9, dtype, -3, 5),
                scalar(slot, dtype, 20, 24),
            )
        else:
            yield scalar(slot, dtype)
            if dtype in (dtypes.int8, dtypes.uint8):
                yield from (scalar(slot, dtype, 0, 6), scalar(slot, dtype, 6, 9))
            elif dtype is dtypes.bool:
                yield scalar(9, dtypes.index, -3, 5) < 3 + slot


def _built(pattern: Pattern, leaves: Mapping[str, UOp], like: DType | None) -> Iterator[UOp]:
    """The expressions of a pattern whose named leaves are chosen; `like` is the type for a literal."""
    if pattern.literal is not None:
        if like in pattern.literal:
            yield UOp(ops.CONST, like, (), pattern.literal[like])
        return
    if not pattern.src:
        yield leaves[pattern.name or ""]
        return
    for op in pattern.ops or ():
        first = ops.WHERE is op
        wanted = [dtypes.bool if first and place == 0 else None for place in range(len(pattern.src))]
        if op in (ops.LOAD, ops.STORE):
            operands = (next(_built(s, leaves, dtypes.bool)) for s in pattern.src)
            yield UOp(op, MEMORY.dtype if op is ops.LOAD else dtypes.void, tuple(operands))
            continue
        known = [None if s.literal else list(_built(s, leaves, None)) for s in pattern.src]
        types = {
            node.dtype for place, group in enumerate(known) if group and not (first and place == 0) for node in group
        }
        for dtype in types or {dtypes.bool}:
            groups = [
                group if group is not None else list(_built(s, leaves, hint or dtype))
                for s, group, hint in zip(pattern.src, known, wanted, strict=True)
            ]
            for operands in itertools.product(*groups):
                yield from _nodes(op, operands)


def _nodes(op: ops.Op, operands: tuple[UOp, ...]) -> Iterator[UOp]:
    kinds = [operand.dtype for operand in operands]
    if op in (ops.CAST, ops.BITCAST):
        for target in CAST_TYPES:
            if op is ops.BITCAST and (target.bits != kinds[0].bits or dtypes.index in (target, kinds[0])):
                continue
            if target is not dtypes.index or kinds[0].is_int:
                yield UOp(op, target, operands)
        return
    values = kinds[1:] if op is ops.WHERE else kinds
    if (
        len(set(values)) != 1
        or any(t not in op.accepts for t in values)
        or (op is ops.WHERE and kinds[0] is not dtypes.bool)
    ):
        return
    if dtypes.index in values and op in (ops.NEG, ops.SUB):
        return
    yield UOp.apply(op, *operands)
