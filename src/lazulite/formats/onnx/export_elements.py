"""Elementwise operations as ONNX operators: one entry, or one small function, for each op.

Takes names of operands and the type of their elements, gives the name of the result.  ONNX's integers divide
towards zero, its casts of floats out of range and its shifts by more than a word are undefined: what is written
here means what `ir/ops.py` says.  Types that an operator lacks in ONNX Runtime are widened around it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from lazulite.formats.onnx.export_graph import GraphWriter, Value
from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.ops import Op

Operands = Sequence[Value]
Rule = Callable[[GraphWriter, Operands, DType], Value]
"""The writer, the operands and the type of their elements (of a WHERE, of its second operand)."""

NUMBERS = {
    ops.ADD: "Add", ops.SUB: "Sub", ops.MUL: "Mul", ops.DIV: "Div",
    ops.EQ: "Equal", ops.SQRT: "Sqrt", ops.EXP: "Exp", ops.LOG: "Log", ops.SIN: "Sin", ops.COS: "Cos", ops.TAN: "Tan",
    ops.TANH: "Tanh", ops.ERF: "Erf", ops.POW: "Pow", ops.FLOOR: "Floor", ops.ROUND: "Round", ops.MAX: "Max",
    ops.MIN: "Min", ops.AND: "BitwiseAnd", ops.OR: "BitwiseOr", ops.XOR: "BitwiseXor", ops.NOT: "BitwiseNot",
}  # fmt: skip
"""Operators that mean what the op means, of numbers."""
_BOOLS = {
    ops.AND: "And", ops.OR: "Or", ops.XOR: "Xor", ops.NOT: "Not", ops.EQ: "Equal", ops.NE: "Xor", ops.MAX: "Or",
    ops.MIN: "And",
}  # fmt: skip
_SHORT = frozenset({dtypes.int16, dtypes.uint16})
_NARROW = _SHORT | {dtypes.int8, dtypes.uint8}


def carrier(operator: str, dtype: DType) -> DType:
    """The type in which an operator computes elements of a type; the result is cast back.

    Floats narrower than float16's kernels go through float32, as they do here; integers through a type that wraps
    alike or holds all of them.
    """
    if dtype.is_float:
        return dtype if dtype.bits > 16 or dtype is dtypes.float16 else dtypes.float32
    if dtype in _SHORT and operator in ("Max", "Min", "Where", "Pad"):
        return dtypes.int32
    if operator == "Where" and dtype is dtypes.uint64:
        return dtypes.int64
    if operator.startswith("Reduce"):
        whole = dtype is dtypes.uint64 and operator in ("ReduceSum", "ReduceProd")
        return dtypes.int32 if dtype in _NARROW else dtypes.int64 if whole or dtype is dtypes.uint32 else dtype
    return dtype


def computed(
    graph: GraphWriter, operator: str, operands: Operands, dtype: DType, *more: Value, result: DType | None = None,
    **attributes: Any,
) -> Value:  # fmt: skip
    """An operator applied to operands of a type, and to further inputs, in the type that carries it.

    The result has that type too, or the one that is told.
    """
    wide = carrier(operator, dtype)
    found = graph.node(operator, *[graph.cast(operand, dtype, wide) for operand in operands], *more, **attributes)
    return graph.cast(found, wide, dtype) if result is None else found


def elementwise(graph: GraphWriter, op: Op, operands: Operands, dtype: DType) -> Value | None:
    """The result of an op; None where ONNX has nothing to say it with."""
    if dtype is dtypes.bool and op in _BOOLS:
        return graph.node(_BOOLS[op], *operands)
    rule = RULES.get(op)
    if rule is not None:
        return rule(graph, operands, dtype)
    if op not in NUMBERS:
        return None
    return computed(graph, NUMBERS[op], operands, dtype, result=dtypes.bool if op is ops.EQ else None)


def where(graph: GraphWriter, gate: Value, yes: Value, no: Value, dtype: DType) -> Value:
    """A choice between elements of a type."""
    if dtype is dtypes.bool:
        return graph.node("Or", graph.node("And", gate, yes), graph.node("And", graph.node("Not", gate), no))
    wide = carrier("Where", dtype)
    found = graph.node("Where", gate, graph.cast(yes, dtype, wide), graph.cast(no, dtype, wide))
    return graph.cast(found, wide, dtype)


def cast(graph: GraphWriter, value: Value, source: DType, dtype: DType) -> Value:
    """A CAST: a float out of an integer's range becomes the nearest one, and NaN 0."""
    if not (source.is_float and dtype.is_int):
        return graph.cast(value, source, dtype)
    value, wide = graph.cast(value, source, carrier("Cast", source)), carrier("Cast", source)
    low, high = [wide.round(limit) for limit in (dtype.min, dtype.max)]
    over = graph.node("Not", graph.node("Less", value, graph.scalar(wide, high)))
    under = graph.node("Not", graph.node("Less", graph.scalar(wide, low), value))
    outside = graph.node("Or", over, under)  # a NaN too
    inside = graph.cast(graph.node("Where", outside, graph.scalar(wide, 0), value), wide, dtype)
    number = graph.node("Equal", value, value)
    top = where(graph, graph.node("And", over, number), graph.scalar(dtype, dtype.max), inside, dtype)
    return where(graph, graph.node("And", under, number), graph.scalar(dtype, dtype.min), top, dtype)


# --- ops that take more than one operator ------------------------------------------------------------


def _not_equal(graph: GraphWriter, operands: Operands, dtype: DType) -> Value:
    return graph.node("Not", computed(graph, "Equal", operands, dtype, result=dtypes.bool))


def _less(graph: GraphWriter, operands: Operands, dtype: DType) -> Value:
    left, right = operands
    if dtype is dtypes.bool:
        return graph.node("And", graph.node("Not", left), right)
    return computed(graph, "Less", operands, dtype, result=dtypes.bool)


def _less_or_equal(graph: GraphWriter, operands: Operands, dtype: DType) -> Value:
    left, right = operands
    if dtype is dtypes.bool:
        return graph.node("Or", graph.node("Not", left), right)
    return computed(graph, "LessOrEqual", operands, dtype, result=dtypes.bool)


def _negative(graph: GraphWriter, operands: Operands, dtype: DType) -> Value:
    if dtype.kind == "uint":
        return graph.node("Sub", graph.scalar(dtype, 0), *operands)
    return computed(graph, "Neg", operands, dtype)


def _multiply_add(graph: GraphWriter, operands: Operands, dtype: DType) -> Value:
    """With two roundings of floats."""
    return computed(graph, "Add", [computed(graph, "Mul", operands[:2], dtype), operands[2]], dtype)


def _power_of_two(graph: GraphWriter, operands: Operands, dtype: DType) -> Value:
    return computed(graph, "Pow", [graph.scalar(dtype, 2), *operands], dtype)


def _binary_logarithm(graph: GraphWriter, operands: Operands, dtype: DType) -> Value:
    natural = computed(graph, "Log", operands, dtype)
    return computed(graph, "Div", [natural, graph.scalar(dtype, math.log(2.0))], dtype)


def _integer_part(graph: GraphWriter, operands: Operands, dtype: DType) -> Value:
    (x,) = operands
    negative = computed(graph, "Less", [x, graph.scalar(dtype, 0)], dtype, result=dtypes.bool)
    return where(graph, negative, computed(graph, "Ceil", [x], dtype), computed(graph, "Floor", [x], dtype), dtype)


def _floor_quotient(graph: GraphWriter, operands: Operands, dtype: DType) -> Value:
    x, y, zero, minus = _divisor(graph, operands, dtype)
    quotient = graph.node("Div", x, y)
    if dtype.kind != "uint":
        nothing = graph.scalar(dtype, 0)
        signs_differ = graph.node("Xor", graph.node("Less", x, nothing), graph.node("Less", y, nothing))
        inexact = graph.node("Not", graph.node("Equal", graph.node("Mod", x, y), nothing))
        quotient = graph.node("Sub", quotient, graph.cast(graph.node("And", signs_differ, inexact), dtypes.bool, dtype))
        if minus is not None:
            quotient = where(graph, minus, graph.node("Neg", x), quotient, dtype)
    return quotient if zero is None else where(graph, zero, graph.scalar(dtype, 0), quotient, dtype)


def _floor_remainder(graph: GraphWriter, operands: Operands, dtype: DType) -> Value:
    x, y, zero, _ = _divisor(graph, operands, dtype)
    rest = graph.node("Mod", x, y)
    return rest if zero is None else where(graph, zero, graph.scalar(dtype, 0), rest, dtype)


def _divisor(graph: GraphWriter, operands: Operands, dtype: DType) -> tuple[Value, Value, Value | None, Value | None]:
    """The operands with 1 for the divisors 0 and -1, by which processors fault, and where these were."""
    x, y = operands
    known = constant_of(graph, y, dtype)
    if known is not None and known not in (0, -1):
        return x, y, None, None
    zero = graph.node("Equal", y, graph.scalar(dtype, 0))
    if dtype.kind == "uint":
        return x, where(graph, zero, graph.scalar(dtype, 1), y, dtype), zero, None
    minus = graph.node("Equal", y, graph.scalar(dtype, -1))
    return x, where(graph, graph.node("Or", zero, minus), graph.scalar(dtype, 1), y, dtype), zero, minus


def _shift_left(graph: GraphWriter, operands: Operands, dtype: DType) -> Value:
    word = _word(dtype)
    shifted = _shifted(graph, graph.cast(operands[0], dtype, word), operands[1], dtype, "LEFT")
    return graph.cast(shifted, word, dtype)


def _shift_right(graph: GraphWriter, operands: Operands, dtype: DType) -> Value:
    """The complement of a negative number is shifted in its place, which keeps the sign."""
    x, word = operands[0], _word(dtype)
    if dtype.kind == "uint":
        return graph.cast(_shifted(graph, graph.cast(x, dtype, word), operands[1], dtype, "RIGHT"), word, dtype)
    negative = graph.node("Less", x, graph.scalar(dtype, 0))
    positive = where(graph, negative, graph.node("BitwiseNot", x), x, dtype)
    shifted = _shifted(graph, graph.cast(positive, dtype, word), operands[1], dtype, "RIGHT")
    found = graph.cast(shifted, word, dtype)
    return where(graph, negative, graph.node("BitwiseNot", found), found, dtype)


def _word(dtype: DType) -> DType:
    """The unsigned type in which bits are shifted."""
    return dtypes.uint64 if dtype.itemsize == 8 else dtypes.uint32


def _shifted(graph: GraphWriter, x: Value, y: Value, dtype: DType, direction: str) -> Value:
    """A word shifted; nothing is left of it where the distance is no less than the width."""
    word = _word(dtype)
    distance = graph.cast(y, dtype, word)
    known = constant_of(graph, y, dtype)
    if known is not None and 0 <= known < dtype.bits:
        return graph.node("BitShift", x, distance, direction=direction)
    fits = graph.node("Less", distance, graph.scalar(word, dtype.bits))
    distance = where(graph, fits, distance, graph.scalar(word, 0), word)
    shifted = graph.node("BitShift", x, distance, direction=direction)
    return where(graph, fits, shifted, graph.scalar(word, 0), word)


def constant_of(graph: GraphWriter, value: Value, dtype: DType) -> Scalar | None:
    """The number that a value is everywhere, if that is known."""
    data = graph.constants.get(value)
    if data is None or data.dims or data.raw_data is None:
        return None
    bits = int.from_bytes(data.raw_data.read("constant"), "little")
    return (dtypes.int64 if dtype is dtypes.index else dtype).from_bits(bits)


RULES: dict[Op, Rule] = {
    ops.NE: _not_equal,
    ops.LT: _less,
    ops.LE: _less_or_equal,
    ops.NEG: _negative,
    ops.FMA: _multiply_add,
    ops.EXP2: _power_of_two,
    ops.LOG2: _binary_logarithm,
    ops.TRUNC: _integer_part,
    ops.FLOORDIV: _floor_quotient,
    ops.MOD: _floor_remainder,
    ops.SHL: _shift_left,
    ops.SHR: _shift_right,
    ops.WHERE: lambda graph, operands, dtype: where(graph, operands[0], operands[1], operands[2], dtype),
}
