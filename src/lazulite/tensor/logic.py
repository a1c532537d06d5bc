"""Comparison, choice and bits.

Operands meet as in `tensor.math`.  A comparison gives bools.
"""

from __future__ import annotations

from typing import Any, Self

from lazulite.base.errors import DTypeError
from lazulite.ir import ops
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.ops import Op
from lazulite.ir.uop import UOp
from lazulite.tensor.base import Base, broadcast_shape, constant, plain_scalar, spread, weak_dtype

_OF_BOOLS = {ops.ADD: ops.OR, ops.MUL: ops.AND}
"""What a sum and a product of bools are, as in NumPy."""


class LogicMethods(Base):
    """Comparison, choice and bits, and what all operators share."""

    __slots__ = ()

    def _binary(self, op: Op, function: str, x: Any, reverse: bool = False) -> Self:
        left, right = self._matched(function, x)
        if left.dtype is dtypes.bool:
            op = _OF_BOOLS.get(op, op)
        self._accept(op, function, left.dtype)
        return self._derived(UOp.apply(op, right, left) if reverse else UOp.apply(op, left, right))

    def _accept(self, op: Op, function: str, dtype: DType) -> None:
        if dtype not in op.accepts:
            raise DTypeError(
                function,
                f"has no meaning for {dtype.name}",
                about={"operand": self},
                hint="cast the operand, for instance to dtypes.int32 or dtypes.float32",
            )

    # --- comparison -----------------------------------------------------------------------------

    def eq(self, x: Any) -> Self:
        """Where both are equal; NaN equals nothing.

        >>> Tensor([1, 2]).eq(2).tolist()
        [False, True]
        """
        return self._binary(ops.EQ, "eq", x)

    def ne(self, x: Any) -> Self:
        """Where both differ; NaN differs from everything.

        >>> Tensor([1, 2]).ne(2).tolist()
        [True, False]
        """
        return self._binary(ops.NE, "ne", x)

    def lt(self, x: Any) -> Self:
        """Where this is smaller; false beside NaN.

        >>> Tensor([1, 2]).lt(2).tolist()
        [True, False]
        """
        return self._binary(ops.LT, "lt", x)

    def le(self, x: Any) -> Self:
        """Where this is not larger; false beside NaN.

        >>> Tensor([1, 2]).le(1).tolist()
        [True, False]
        """
        return self._binary(ops.LE, "le", x)

    def gt(self, x: Any) -> Self:
        """Where this is larger; false beside NaN.

        >>> Tensor([1, 2]).gt(1).tolist()
        [False, True]
        """
        return self._binary(ops.LT, "gt", x, reverse=True)

    def ge(self, x: Any) -> Self:
        """Where this is not smaller; false beside NaN.

        >>> Tensor([1, 2]).ge(2).tolist()
        [False, True]
        """
        return self._binary(ops.LE, "ge", x, reverse=True)

    # --- bits and logic -------------------------------------------------------------------------

    def bitwise_and(self, x: Any, reverse: bool = False) -> Self:
        """The bits set in both; DTypeError for floats.

        >>> (Tensor([6, 3]) & 2).tolist()
        [2, 2]
        """
        return self._binary(ops.AND, "bitwise_and", x, reverse)

    def bitwise_or(self, x: Any, reverse: bool = False) -> Self:
        """The bits set in either; DTypeError for floats.

        >>> (Tensor([6, 3]) | 1).tolist()
        [7, 3]
        """
        return self._binary(ops.OR, "bitwise_or", x, reverse)

    def bitwise_xor(self, x: Any, reverse: bool = False) -> Self:
        """The bits set in one only; DTypeError for floats.

        >>> (Tensor([6, 3]) ^ 1).tolist()
        [7, 2]
        """
        return self._binary(ops.XOR, "bitwise_xor", x, reverse)

    def bitwise_not(self) -> Self:
        """All bits turned; the logical not of bools; DTypeError for floats.

        >>> (~Tensor([0, 1])).tolist()
        [-1, -2]
        """
        self._accept(ops.NOT, "bitwise_not", self.dtype)
        return self._derived(~self.uop)

    def lshift(self, x: Any, reverse: bool = False) -> Self:
        """The bits moved left; 0 from the width of the type on; DTypeError for bools and floats.

        >>> (Tensor([1, 3]) << 2).tolist()
        [4, 12]
        """
        return self._binary(ops.SHL, "lshift", x, reverse)

    def rshift(self, x: Any, reverse: bool = False) -> Self:
        """The bits moved right, keeping the sign; DTypeError for bools and floats.

        >>> (Tensor([4, -4]) >> 1).tolist()
        [2, -2]
        """
        return self._binary(ops.SHR, "rshift", x, reverse)

    def logical_not(self) -> Self:
        """Where the value is zero.

        >>> Tensor([0.0, 2.0]).logical_not().tolist()
        [True, False]
        """
        return self._derived(~self.uop.cast(dtypes.bool))

    def logical_and(self, x: Any) -> Self:
        """Where neither is zero.

        >>> Tensor([0, 2]).logical_and(1).tolist()
        [False, True]
        """
        left, right = self._matched("logical_and", x)
        return self._derived(left.cast(dtypes.bool) & right.cast(dtypes.bool))

    def logical_or(self, x: Any) -> Self:
        """Where either is not zero.

        >>> Tensor([0, 2]).logical_or(0).tolist()
        [False, True]
        """
        left, right = self._matched("logical_or", x)
        return self._derived(left.cast(dtypes.bool) | right.cast(dtypes.bool))

    def where(self, x: Any, y: Any) -> Self:
        """`x` where this is true (not zero), else `y`; a gradient flows to the one that was chosen.

        A scalar takes the type of the other choice.  All three shapes broadcast.

        >>> Tensor([True, False]).where(Tensor([1.0, 2.0]), 0).tolist()
        [1.0, 0.0]
        """
        choices = self._choices(x, y)
        dtype = dtypes.promote(*[choice.dtype for choice in choices])
        shape = broadcast_shape("where", [self, *choices])
        nodes = [self.uop.cast(dtypes.bool), *[choice.uop.cast(dtype) for choice in choices]]
        return self._derived(UOp.apply(ops.WHERE, *[spread(node, shape) for node in nodes]))

    def _choices(self, x: Any, y: Any) -> list[Self]:
        """Both choices of `where` as tensors; a scalar is weak beside the other choice, not beside the gate."""
        given = [(plain_scalar(choice), choice) for choice in (x, y)]
        tensors = [self._tensor("where", choice) for scalar, choice in given if scalar is None]
        scalars = [scalar for scalar, _ in given if scalar is not None]
        beside = dtypes.promote(*[t.dtype for t in tensors] or [weak_dtype(scalar) for scalar in scalars])
        rest = iter(tensors)
        return [
            next(rest) if scalar is None else self._derived(constant(weak_dtype(scalar, beside), scalar))
            for scalar, _ in given
        ]

    # --- operators ------------------------------------------------------------------------------

    def __eq__(self, x: object) -> Self:  # type: ignore[override]
        return self.eq(x)

    def __ne__(self, x: object) -> Self:  # type: ignore[override]
        return self.ne(x)

    __hash__ = object.__hash__

    def __lt__(self, x: Any) -> Self:
        return self.lt(x)

    def __le__(self, x: Any) -> Self:
        return self.le(x)

    def __gt__(self, x: Any) -> Self:
        return self.gt(x)

    def __ge__(self, x: Any) -> Self:
        return self.ge(x)

    def __and__(self, x: Any) -> Self:
        return self.bitwise_and(x)

    def __rand__(self, x: Any) -> Self:
        return self.bitwise_and(x, reverse=True)

    def __or__(self, x: Any) -> Self:
        return self.bitwise_or(x)

    def __ror__(self, x: Any) -> Self:
        return self.bitwise_or(x, reverse=True)

    def __xor__(self, x: Any) -> Self:
        return self.bitwise_xor(x)

    def __rxor__(self, x: Any) -> Self:
        return self.bitwise_xor(x, reverse=True)

    def __invert__(self) -> Self:
        return self.bitwise_not()

    def __lshift__(self, x: Any) -> Self:
        return self.lshift(x)

    def __rlshift__(self, x: Any) -> Self:
        return self.lshift(x, reverse=True)

    def __rshift__(self, x: Any) -> Self:
        return self.rshift(x)

    def __rrshift__(self, x: Any) -> Self:
        return self.rshift(x, reverse=True)

    # --- in place -------------------------------------------------------------------------------

    def __iand__(self, x: Any) -> Self:
        return self.assign(self.bitwise_and(x))

    def __ior__(self, x: Any) -> Self:
        return self.assign(self.bitwise_or(x))

    def __ixor__(self, x: Any) -> Self:
        return self.assign(self.bitwise_xor(x))

    def __ilshift__(self, x: Any) -> Self:
        return self.assign(self.lshift(x))

    def __irshift__(self, x: Any) -> Self:
        return self.assign(self.rshift(x))
