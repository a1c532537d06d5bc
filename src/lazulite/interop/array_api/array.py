"""`Array`: a Tensor with the attributes and the strictness of the standard."""

from __future__ import annotations

import math
from typing import Any, Self

from lazulite.base.errors import DTypeError, ShapeError
from lazulite.interop.array_api.kinds import promote, require_kind, require_scalar
from lazulite.interop.elementwise import STANDARD, pair
from lazulite.tensor.tensor import Tensor

_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
    "eq": "equal", "ne": "not_equal",
}  # fmt: skip
_IN_PLACE = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")


class Array(Tensor):
    """An array of the standard.  Everything that a Tensor does works as well.

    >>> x = Array([[1, 2, 3]])
    >>> x.size, x.mT.shape
    (3, (3, 1))
    """

    __slots__ = ()

    @property
    def size(self) -> int:  # type: ignore[override]
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def mT(self) -> Self:
        """The last two axes exchanged."""
        if len(self.shape) < 2:
            raise ShapeError("mT", f"a matrix has two axes, got shape {self.shape}", about={"x": self})
        return self.transpose(-1, -2)

    def to_device(self, device: str, /, *, stream: Any = None) -> Self:
        """The array on a device."""
        return self.to(device)

    def __matmul__(self, other: Any) -> Any:
        return self._matrix_product(other, swapped=False)

    def __rmatmul__(self, other: Any) -> Any:
        return self._matrix_product(other, swapped=True)

    def _matrix_product(self, other: Any, *, swapped: bool) -> Any:
        """The product of matrices, in the type at which they meet."""
        if not isinstance(other, Tensor):
            return NotImplemented
        dtype = promote("matmul", self.dtype, other.dtype)
        require_kind("matmul", "iuf", dtype)
        return self.matmul(other, reverse=swapped).cast(dtype)

    def __pos__(self) -> Self:
        return self

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        require_kind("index", "iu", self.dtype)
        return int(self.item())


def wrapped(tensor: Tensor) -> Array:
    """A tensor as an array: the same one."""
    return tensor if isinstance(tensor, Array) else Array._made(tensor._handle, tensor.device)


def array_of(function: str, value: Any) -> Array:
    """An operand, which is an array; DTypeError for anything else."""
    if not isinstance(value, Tensor):
        raise DTypeError(function, f"takes arrays, got {type(value).__name__}", hint="asarray(...)")
    return wrapped(value)


def call(name: str, *operands: Any) -> Array:
    """An elementwise function of the standard, its operands held to the kinds that it takes."""
    method, _, kinds = STANDARD[name]
    arrays = [operand for operand in operands if isinstance(operand, Tensor)]
    if not arrays:
        array_of(name, operands[0])
    common = promote(name, *[array.dtype for array in arrays])
    for operand in operands:
        if not isinstance(operand, Tensor):
            if not isinstance(operand, bool | int | float):
                array_of(name, operand)
            require_scalar(name, operand, common)
    require_kind(name, kinds, common)
    if len(operands) == 1:
        return wrapped(getattr(Tensor, method)(operands[0]))
    first, second = pair(*operands)
    return wrapped(getattr(Tensor, method)(first, second))


def _operator(name: str, *, swapped: bool) -> Any:
    def apply(self: Array, other: Any) -> Any:
        if not isinstance(other, Tensor | bool | int | float):
            return NotImplemented
        return call(name, other, self) if swapped else call(name, self, other)

    return apply


def _in_place(operator: str, name: str) -> Any:
    inherited = getattr(Tensor, f"__i{operator}__")

    def apply(self: Array, other: Any) -> Any:
        result = call(name, self, other)
        if result.dtype is not self.dtype or result.shape != self.shape:
            raise DTypeError(
                name, f"the result is {result.dtype.name} {result.shape}, and does not fit", about={"x": self}
            )
        return inherited(self, other)

    return apply


for _symbol, _name in _OPERATORS.items():
    setattr(Array, f"__{_symbol}__", _operator(_name, swapped=False))
    if _symbol in _IN_PLACE:
        setattr(Array, f"__r{_symbol}__", _operator(_name, swapped=True))
        setattr(Array, f"__i{_symbol}__", _in_place(_symbol, _name))
