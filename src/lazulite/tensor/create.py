"""Tensors from sizes and numbers.

Shapes are given as one sequence or as several sizes.  `dtype` is a type or its name, `device` a device
name; None means the default.  Nothing here launches a kernel: the values are constants and counters
until something reads them from memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Self

from lazulite.base.errors import ArgumentError, DTypeError, ShapeError
from lazulite.ir import ops
from lazulite.ir.dtype import DType, Scalar, dtypes
from lazulite.ir.size import Size, least, most, varies
from lazulite.ir.uop import UOp
from lazulite.tensor.base import (
    Base,
    DeviceLike,
    DTypeLike,
    Shape,
    as_dtype,
    constant,
    expanded,
    plain_scalar,
    sizes_argument,
    weak_dtype,
)


class CreateMethods(Base):
    """Constructors."""

    __slots__ = ()

    @classmethod
    def full(cls, shape: Any, fill_value: Scalar, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """A tensor of one value; OverflowError where an integer does not fit the type.

        >>> Tensor.full((2, 2), 7).tolist()
        [[7, 7], [7, 7]]
        """
        value = _number_of("full", fill_value)
        node = constant(weak_dtype(value) if dtype is None else as_dtype("full", dtype), value)
        return cls._from_uop(expanded(node, shape_of("full", shape)), device)

    @classmethod
    def zeros(cls, *shape: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Zeros, of the default float unless `dtype` says otherwise.

        >>> Tensor.zeros(2, dtype="int32").tolist()
        [0, 0]
        """
        return cls.full(shape_of("zeros", *shape), 0, dtype or dtypes.default_float, device)

    @classmethod
    def ones(cls, *shape: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Ones, of the default float unless `dtype` says otherwise.

        >>> Tensor.ones(2).tolist()
        [1.0, 1.0]
        """
        return cls.full(shape_of("ones", *shape), 1, dtype or dtypes.default_float, device)

    @classmethod
    def empty(cls, *shape: Any, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """A tensor whose values do not matter (zeros, so that a program that reads them is repeatable).

        >>> Tensor.empty(2, 3).shape
        (2, 3)
        """
        return cls.full(shape_of("empty", *shape), 0, dtype or dtypes.default_float, device)

    def full_like(self, fill_value: Scalar, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """One value in the shape, type and place of this tensor.

        >>> Tensor([1, 2]).full_like(5).tolist()
        [5, 5]
        """
        return type(self).full(self.shape, fill_value, dtype or self.dtype, device or self.device)

    def zeros_like(self, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Zeros in the shape, type and place of this tensor.

        >>> Tensor([1, 2]).zeros_like().tolist()
        [0, 0]
        """
        return self.full_like(0, dtype, device)

    def ones_like(self, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Ones in the shape, type and place of this tensor.

        >>> Tensor([1.5, 2.5]).ones_like().tolist()
        [1.0, 1.0]
        """
        return self.full_like(1, dtype, device)

    def empty_like(self, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """`empty` in the shape, type and place of this tensor.

        >>> Tensor([1, 2]).empty_like().shape
        (2,)
        """
        return self.full_like(0, dtype, device)

    def const_like(self, b: Scalar, dtype: DTypeLike | None = None) -> Self:
        """`full_like` by its other name.

        >>> Tensor([1, 2]).const_like(3).tolist()
        [3, 3]
        """
        return self.full_like(b, dtype)

    @classmethod
    def arange(
        cls, start: Scalar, stop: Scalar | None = None, step: Scalar = 1,
        dtype: DTypeLike | None = None, device: DeviceLike = None,
    ) -> Self:  # fmt: skip
        """start, start + step, .. below stop; with one number, from 0 to below it.

        Integers make int32 (int64 where they do not fit), anything else the default float.

        >>> Tensor.arange(2, 10, 3).tolist()
        [2, 5, 8]
        """
        if stop is None:
            start, stop = type(start)(0) if isinstance(start, float) else 0, start
        numbers = [_number_of("arange", number) for number in (start, stop, step)]
        begin, end, by = numbers
        if by == 0:
            raise ArgumentError("arange", "the step is zero")
        size = _steps_between(begin, end, by)
        given = as_dtype("arange", dtype) if dtype is not None else _range_dtype(numbers, size)
        return cls._from_uop(_progression(begin, by, size, given), device)

    @classmethod
    def linspace(
        cls, start: Scalar, stop: Scalar, steps: int, dtype: DTypeLike | None = None, device: DeviceLike = None
    ) -> Self:
        """`steps` evenly spaced values from start to stop, both included; integers are exact, rounded down (B065).

        >>> Tensor.linspace(0, 1, 5).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        if steps < 0:
            raise ShapeError("linspace", f"the number of steps is negative, {steps}")
        begin, end = _number_of("linspace", start), _number_of("linspace", stop)
        given = dtypes.default_float if dtype is None else as_dtype("linspace", dtype)
        spaced = _spaced_floats if given.is_float else _spaced_integers
        return cls._from_uop(spaced(begin, end, steps, given), device)

    @classmethod
    def eye(cls, n: int, m: int | None = None, dtype: DTypeLike | None = None, device: DeviceLike = None) -> Self:
        """Ones on the diagonal of an n by m matrix (n by n without m), zeros elsewhere.

        >>> Tensor.eye(2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        shape = shape_of("eye", n, n if m is None else m)
        rows, columns = [UOp(ops.IOTA, dtypes.int32, (), size) for size in shape]
        row = expanded(UOp(ops.RESHAPE, rows.dtype, (rows,), (shape[0], 1)), shape)
        given = dtypes.default_float if dtype is None else as_dtype("eye", dtype)
        return cls._from_uop(row.eq(expanded(columns, shape)).cast(given), device)


# --- arguments ---------------------------------------------------------------------------------


def shape_of(function: str, *shape: Any) -> Shape:
    """The shape given as one sequence or as several sizes; ShapeError for a negative one."""
    sizes = sizes_argument(function, shape[0], shape[1:]) if shape else ()
    if any(size is None or size < 0 for size in sizes):
        raise ShapeError(function, f"a size is not negative, got {sizes}")
    return sizes


def _number_of(function: str, value: Any) -> Scalar:
    number = plain_scalar(value)
    if number is None:
        raise DTypeError(function, f"expected a number, got {type(value).__name__}")
    return number


def _all_int(numbers: Iterable[Scalar]) -> bool:
    return all(isinstance(number, (int, Size)) for number in numbers)


def _steps_between(begin: Any, end: Any, by: Any) -> int:
    """How many numbers there are from `begin` to below `end`."""
    if not varies((begin, end, by)):
        whole = _all_int((begin, end, by))
        return len(range(begin, end, by)) if whole else max(math.ceil((end - begin) / by), 0)
    if not _all_int((begin, end)) or not isinstance(by, int):
        raise ShapeError("arange", "ends that vary go with integers, and with a step that does not vary")
    size: int = (end - begin + by - (1 if by > 0 else -1)) // by
    if least(size) < 0:
        raise ShapeError("arange", f"from {begin} to {end} by {by} there may be a negative number of steps")
    return size


def _range_dtype(numbers: list[Any], size: int) -> DType:
    if not _all_int(numbers):
        return dtypes.default_float
    last = numbers[0] + max(most(size) - 1, 0) * numbers[2]
    reached = [end for number in (numbers[0], last, numbers[2]) for end in (least(number), most(number))]
    return dtypes.promote(*[weak_dtype(end) for end in reached])


# --- as nodes ----------------------------------------------------------------------------------


def counter(size: int, dtype: DType) -> UOp:
    """0, 1, .. as a type that holds it."""
    short = dtypes.int32 if most(size) <= dtypes.int32.max else dtypes.int64
    own = dtype if dtype.is_int and dtype.bits >= 32 else short
    return UOp(ops.IOTA, own, (), size)


def _progression(begin: Scalar, by: Scalar, size: int, dtype: DType) -> UOp:
    """begin + i * by; computed as integers where both are, in float64 before it is rounded where not."""
    places = counter(size, dtype)
    if _all_int((begin, by)):
        if size != 0:
            constant(dtype, begin), constant(dtype, begin + (size - 1) * by)  # both ends fit
        kind = places.dtype if dtype.is_int else dtypes.int64
        return (places.cast(kind) * constant(kind, by) + constant(kind, begin)).cast(dtype)
    return (places.cast(dtypes.float64) * float(by) + float(begin)).cast(dtype)


def _spaced_integers(begin: Scalar, end: Scalar, steps: int, dtype: DType) -> UOp:
    """Exact: i * (end - begin) // (steps - 1), by whole steps and remainders, so that nothing overflows."""
    first, last = constant(dtype, int(begin)), constant(dtype, int(end))
    whole, rest = divmod(int(last.value) - int(first.value), max(steps - 1, 1))
    places = UOp(ops.IOTA, dtypes.int64, (), steps)
    offset = places * UOp.const(dtypes.int64, whole) + places * rest // max(steps - 1, 1)
    return offset.cast(dtype) + first


def _spaced_floats(begin: Scalar, end: Scalar, steps: int, dtype: DType) -> UOp:
    """Counted from the nearer end, so that both ends are exact."""
    places = UOp(ops.IOTA, dtypes.int32, (), steps)
    by = (float(end) - float(begin)) / max(steps - 1, 1)
    forward = places.cast(dtypes.float64) * by + float(begin)
    backward = (steps - 1 - places).cast(dtypes.float64) * -by + float(end)
    return (places < (steps + 1) // 2).where(forward, backward).cast(dtype)
