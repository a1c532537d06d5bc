"""Universal functions: those of the table, and the few that are more than a method."""

from __future__ import annotations

from typing import Any

from lazulite.interop.elementwise import NUMPY, as_tensor, pair
from lazulite.ir.dtype import dtypes
from lazulite.tensor.base import float_dtype
from lazulite.tensor.tensor import Tensor

__all__ = ["bitwise_count", "cbrt", "divmod", "frexp", "heaviside", "modf", "spacing", *NUMPY]  # noqa: PLE0604


def _unary(method: str) -> Any:
    def function(x: Any, /) -> Tensor:
        return getattr(Tensor, method)(as_tensor(x))  # type: ignore[no-any-return]

    return function


def _binary(method: str) -> Any:
    def function(x1: Any, x2: Any, /) -> Tensor:
        first, second = pair(x1, x2)
        return getattr(Tensor, method)(first, second)  # type: ignore[no-any-return]

    return function


for _name, _entry in NUMPY.items():
    _made = (_unary if _entry.operands == 1 else _binary)(_entry.method)
    _made.__name__ = _made.__qualname__ = _name
    _made.__doc__ = (getattr(Tensor, _entry.method).__doc__ or "").partition("\n")[0]
    globals()[_name] = _made


def cbrt(x: Any, /) -> Tensor:
    """The real cube root."""
    tensor = as_tensor(x)
    root = tensor.abs().cast(dtypes.promote(float_dtype(tensor.dtype), dtypes.float32)).pow(1 / 3)
    return root.copysign(tensor).cast(float_dtype(tensor.dtype))


def heaviside(x1: Any, x2: Any, /) -> Tensor:
    """0 below zero, 1 above, and the second operand at zero."""
    first, second = pair(x1, x2)
    return first.cast(float_dtype(first.dtype)).heaviside(second)


def divmod(x1: Any, x2: Any, /) -> tuple[Tensor, Tensor]:
    """The floored quotient and the remainder."""
    first, second = pair(x1, x2)
    return first.floordiv(second), first.mod(second)


def modf(x: Any, /) -> tuple[Tensor, Tensor]:
    """The part behind the point and the part before it, both with the sign."""
    tensor = as_tensor(x)
    whole = tensor.cast(float_dtype(tensor.dtype)).trunc()
    return tensor.isinf().where(0.0, tensor - whole).copysign(tensor), whole


def frexp(x: Any, /) -> tuple[Tensor, Tensor]:
    """Mantissa and exponent: x is mantissa * 2**exponent."""
    return as_tensor(x).frexp()


def spacing(x: Any, /) -> Tensor:
    """The distance to the next float away from zero."""
    tensor = as_tensor(x)
    towards = tensor.full_like(float("inf")).copysign(tensor)
    return tensor.nextafter(towards) - tensor


def bitwise_count(x: Any, /) -> Tensor:
    """How many bits of the magnitude are set."""
    rest = as_tensor(x).abs() if as_tensor(x).dtype is not dtypes.bool else as_tensor(x).cast(dtypes.uint8)
    found = rest.zeros_like()
    for bit in range(rest.dtype.bits):
        found = found + (rest.rshift(bit) & 1)
    return found.cast(dtypes.uint8)
