"""How one node is spelt when the spelling of its sources is known: the expressions of the text form.

A type is written only where it does not follow: a constant stands bare beside an operand of its type,
in an index and where memory gives the type, and as `1.5:float32` elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.placement import place_text
from lazulite.ir.size import Size
from lazulite.ir.uop import UOp

DEFAULT_DEVICES = {"TENSOR": "CPU"}
"""The device of memory that names none: a kernel runs where its memory is, so it has no name there."""

LEVELS: dict[Op, int] = {
    ops.LT: 0, ops.LE: 0, ops.EQ: 0, ops.NE: 0, ops.OR: 1, ops.XOR: 2, ops.AND: 3, ops.SHL: 4, ops.SHR: 4,
    ops.ADD: 5, ops.SUB: 5, ops.MUL: 6, ops.DIV: 6, ops.FLOORDIV: 6, ops.MOD: 6,
}  # fmt: skip
"""How tightly infix ops bind, as in Python; comparisons do not chain."""
UNARY, ATOM = 7, 8
PREFIX: dict[str, Op] = {"-": ops.NEG, "~": ops.NOT}

REDUCTIONS: dict[str, Op] = {
    "sum": ops.ADD, "product": ops.MUL, "max": ops.MAX, "min": ops.MIN, "all": ops.AND, "any": ops.OR,
    "maxnum": ops.MAXNUM, "minnum": ops.MINNUM,
}  # fmt: skip
_REDUCTION_NAMES = {op: name for name, op in REDUCTIONS.items()}


class Expression(NamedTuple):
    """A piece of text, and how tightly its outermost op binds."""

    text: str
    level: int

    def inside(self, level: int) -> str:
        """The text as an operand where only ops that bind at least this tightly stand bare."""
        return self.text if self.level >= level else f"({self.text})"


def express(node: UOp, sources: Sequence[Expression]) -> Expression:
    """The spelling of a node that is no range, memory or state."""
    op = node.op
    if op is ops.CONST:
        return Expression(constant(node), UNARY if constant(node).startswith("-") else ATOM)
    if op is ops.IOTA:
        return Expression(f"iota({size_text(node.arg)}):{node.dtype.name}", UNARY)
    if op in LEVELS and not (op is ops.SUB and node.dtype is dtypes.index):
        return _infix(node, _with_type(node, sources))
    if op in (ops.NEG, ops.NOT):
        text = f"({typed_constant(node.src[0])})" if node.src[0].op is ops.CONST else sources[0].inside(UNARY)
        return Expression(f"{op.symbol}{text}", UNARY)
    if op is ops.LOAD:
        gate = f" if {sources[2].text}" if len(sources) > 2 else ""
        hint = f" ahead {node.arg}" if node.arg else ""
        return Expression(f"{sources[0].inside(ATOM)}[{sources[1].text}{gate}{hint}]", ATOM)
    if op is ops.REDUCE and len(node.src) > 1:
        ranges = ", ".join(source.text for source in sources[1:])
        return Expression(f"{_REDUCTION_NAMES[node.arg[0]]}({_first(node, sources).text} for {ranges})", ATOM)
    if op is ops.MMA:
        operands, ranges = (", ".join(s.text for s in part) for part in (_with_type(node, sources)[:3], sources[3:]))
        return Expression(f"mma({operands} for {ranges})", ATOM)
    if op in (ops.LAUNCH, ops.FUNCTION):
        return Expression(f"{op.name}({', '.join([node.arg.to_text(), *[s.text for s in sources]])})", ATOM)
    if op in _METHODS or op in ops.MOVEMENT:
        return Expression(f"{_first(node, sources).inside(ATOM)}.{_method(node, sources)}", ATOM)
    return Expression(f"{op.name}({', '.join(s.text for s in _with_type(node, sources))})", ATOM)


# --- operands ----------------------------------------------------------------------------------


def _with_type(node: UOp, sources: Sequence[Expression]) -> list[Expression]:
    """The operands, the first constant with its type where no operand shows it."""
    result = list(sources)
    first = 1 if node.op is ops.WHERE else 0
    operands = node.src[first:]
    if node.op.family == "elementwise" and operands and all(s.op is ops.CONST for s in operands):
        result[first] = Expression(typed_constant(operands[0]), UNARY)
    elif node.op.family == "structure":
        result = [_typed(*pair) for pair in zip(node.src, sources, strict=True)]
    return result


def _typed(node: UOp, text: Expression) -> Expression:
    return Expression(typed_constant(node), UNARY) if node.op is ops.CONST else text


def _first(node: UOp, sources: Sequence[Expression]) -> Expression:
    return _typed(node.src[0], sources[0])


def _infix(node: UOp, sources: Sequence[Expression]) -> Expression:
    op, level = node.op, LEVELS[node.op]
    left, right = sources
    if op is ops.ADD and node.dtype is dtypes.index:
        subtracted = _subtracted(node.src[1], right)
        if subtracted is not None:
            return Expression(f"{left.inside(level)} - {subtracted}", level)
    symbol = "*" if op is ops.MUL and node.dtype is dtypes.index else f" {op.symbol} "
    return Expression(f"{left.inside(max(level, 1))}{symbol}{right.inside(level + 1)}", level)


def _subtracted(node: UOp, text: Expression) -> str | None:
    """An INDEX operand x of `+` that reads better as `- y`: there is no SUB on INDEX."""
    if node.op is ops.CONST and node.arg < 0:
        return str(-node.arg)
    negated = node.op is ops.MUL and node.src[1].is_const(-1) and node.src[0].op is not ops.CONST
    return text.text.removesuffix("*-1") if negated and text.text.endswith("*-1") else None


# --- methods -----------------------------------------------------------------------------------

_METHODS = frozenset({ops.CAST, ops.BITCAST, ops.REDUCE, ops.COPY, ops.WRITE})


def _method(node: UOp, sources: Sequence[Expression]) -> str:
    op = node.op
    if op in (ops.CAST, ops.BITCAST):
        return f"{op.name}({node.dtype.name})"
    if op is ops.REDUCE:
        return f"{_REDUCTION_NAMES[node.arg[0]]}({', '.join(map(str, node.arg[1]))})"
    if op is ops.COPY:
        return f"copy({place_text(node.arg)!r})"
    if op is ops.WRITE:
        region = ".".join(movement(name, arg) for name, arg in node.arg)
        value = sources[1] if node.src[0].op is not ops.CONST else _typed(node.src[1], sources[1])
        return f"write({region}{', ' if region else ''}{value.text})"
    return movement(op.name, node.arg)


def movement(name: str, arg: Any) -> str:
    """A movement as a method: `shrink(0..2, 1..3)`, `pad(1+1, 0+2)`, `permute(1, 0)`."""
    if name == "shrink":
        return f"shrink({', '.join(f'{size_text(begin)}..{size_text(end)}' for begin, end in arg)})"
    if name == "pad":
        return f"pad({', '.join(f'{size_text(before)}+{size_text(after)}' for before, after in arg)})"
    return f"{name}({', '.join(map(size_text, arg))})"


def size_text(size: int) -> str:
    """A size: a number, or in brackets an expression over scalars."""
    return f"({_size_expression(size.node).text})" if isinstance(size, Size) else str(size)


def _size_expression(node: UOp) -> Expression:
    if node.op is ops.SCALAR:
        return Expression(f"n{node.arg[0]}", ATOM)
    return express(node, [_size_expression(source) for source in node.src])


# --- constants and declarations ----------------------------------------------------------------


def typed_constant(node: UOp) -> str:
    text = constant(node)
    return text if node.dtype is dtypes.bool else f"{text}:{node.dtype.name}"


def constant(node: UOp) -> str:
    """A constant without its type: the shortest digits that give its bits."""
    dtype = node.dtype
    if dtype is dtypes.bool:
        return "true" if node.arg else "false"
    return _float_text(dtype, node.arg) if dtype.is_float else str(node.arg)


def _float_text(dtype: DType, bits: int) -> str:
    value = float(dtype.from_bits(bits))
    if math.isnan(value):
        return "nan" if bits == UOp.const(dtype, math.nan).arg else f"nan({bits:#x})"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    text = next(t for t in _decimals(value) if dtype.to_bits(dtype.round(float(t))) == bits)
    return text if "." in text or "e" in text else f"{text}.0"


def _decimals(value: float) -> list[str]:
    return [f"{value:.{digits}g}" for digits in range(1, 17)] + [repr(value)]


def declaration(node: UOp, language: str) -> tuple[str, str]:
    """The name of a PARAM, SCALAR or SCRATCH, and the line that declares it."""
    number, dtype = node.arg[0], node.dtype.name
    if node.op is ops.SCALAR:
        _, low, high = node.arg
        bounds = "" if low is None or high is None else f" {low}..{high}"
        return f"n{number}", f"scalar n{number} {dtype}{bounds}"
    if node.op is ops.SCRATCH:
        return f"s{number}", f"scratch s{number} {dtype}[{node.arg[1]}] align {node.arg[2]}"
    _, shape, device = node.arg
    place = "" if device == DEFAULT_DEVICES.get(language, "") else f" on {place_text(device)!r}"
    return f"p{number}", f"param p{number} {dtype}[{', '.join(map(size_text, shape))}]{place}"
