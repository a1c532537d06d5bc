"""How one element is computed: the functions that both interpreters apply.

`rounded(node)` is the meaning of an elementwise node with its rounding; `reducer(op, dtype)` combines
a list of values as a `REDUCE` does.  Float sums are exact and rounded once (half and bfloat16 by way
of float32), so the oracle lies inside every bound that a compiled summation tree is held to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache, partial, reduce
from typing import Any

from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp


def rounded(node: UOp) -> Callable[..., Scalar]:
    """From the operands' elements to the element of an elementwise node."""
    return element_function(node.op, node.dtype, node.src[0].dtype)


@cache
def element_function(op: Op, dtype: DType, source: DType) -> Callable[..., Scalar]:
    """The meaning of an op with one rounding to `dtype`; `source` is the type of the first operand."""
    if op is ops.CAST:
        return dtype.convert
    if op is ops.BITCAST:
        return lambda value: dtype.from_bits(source.to_bits(value))
    meaning = op.meaning
    if meaning is None:
        raise ValueError(f"{op} has no meaning for single elements")
    if dtype in (dtypes.bool, dtypes.index) or (dtype is dtypes.float64 and op is not ops.FMA) or op is ops.WHERE:
        return meaning  # type: ignore[return-value]
    round_to = dtype.round
    return lambda *values: round_to(meaning(*values))


@cache
def reducer(op: Op, dtype: DType) -> Callable[[Iterable[Any]], Scalar]:
    """Combine values of a type into one."""
    if op.identity is None or op.meaning is None:
        raise ValueError(f"{op} cannot reduce")
    if dtype.is_float and op in (ops.ADD, ops.MUL):
        return partial(_sum_of_floats if op is ops.ADD else _product_of_floats, dtype)
    meaning, first, round_to = op.meaning, op.identity(dtype), dtype.round
    if op is ops.MUL:  # a product is wrapped at each step, or its digits would pile up
        return lambda values: reduce(lambda x, y: round_to(x * y), values, first)
    return lambda values: round_to(reduce(meaning, values, first))  # type: ignore[arg-type]


def multiply_accumulate(
    dtype: DType, start: Iterable[Any], left: Iterable[Any], right: Iterable[Any], places: Iterable[int]
) -> list[Scalar]:
    """The start values, each with the products that belong to its place, summed in `dtype`."""
    terms = [[value] for value in start]
    for place, x, y in zip(places, left, right, strict=True):
        terms[place].append(x * y)
    return [reducer(ops.ADD, dtype)(values) for values in terms]


def _narrow(dtype: DType, value: float) -> Scalar:
    """From the accumulator: types of 16 bits accumulate in float32."""
    return dtype.round(dtypes.float32.round(value) if dtype.bits < 32 else value)


def _sum_of_floats(dtype: DType, values: Iterable[float]) -> Scalar:
    values = list(values)
    try:
        return _narrow(dtype, math.fsum(values))
    except (OverflowError, ValueError):  # partial sums overflow, or infinities of both signs meet
        return _narrow(dtype, sum(values))


def _product_of_floats(dtype: DType, values: Iterable[float]) -> Scalar:
    round_to = dtypes.float32.round if dtype.bits < 64 else dtypes.float64.round
    return _narrow(dtype, reduce(lambda x, y: round_to(x * y), values, 1.0))
