"""Elementwise functions of the array API standard and of NumPy, as one table over the methods of Tensor.

Both namespaces are made from it: `interop/array_api` takes the names of the standard and holds operands to the kinds
that it allows; `interop/numpy` takes all names and promotes as Tensor does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor


class Function(NamedTuple):
    """One elementwise function."""

    method: str
    operands: int
    kinds: str
    """What the standard takes: letters for bool, signed and unsigned integer, float."""


_ANY, _NUMBERS, _FLOATS, _WHOLE, _BITS, _TRUTH = "biuf", "iuf", "f", "iu", "biu", "b"


def _group(operands: int, kinds: str, names: str) -> dict[str, Function]:
    """Names, each with the method after a colon where that is called otherwise."""
    found = {}
    for entry in names.split():
        name, _, method = entry.partition(":")
        found[name] = Function(method or name, operands, kinds)
    return found


STANDARD: dict[str, Function] = {
    **_group(1, _FLOATS, "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal signbit "
             "sin sinh sqrt tan tanh"),
    **_group(1, _NUMBERS, "abs ceil conj floor isfinite isinf isnan negative positive round sign square trunc"),
    **_group(1, _BITS, "bitwise_invert:bitwise_not"),
    **_group(1, _TRUTH, "logical_not"),
    **_group(2, _NUMBERS, "add floor_divide greater:gt greater_equal:ge less:lt less_equal:le maximum minimum "
             "multiply:mul pow remainder subtract:sub"),
    **_group(2, _FLOATS, "atan2 copysign divide:div hypot logaddexp nextafter"),
    **_group(2, _ANY, "equal:eq not_equal:ne"),
    **_group(2, _BITS, "bitwise_and bitwise_or bitwise_xor"),
    **_group(2, _WHOLE, "bitwise_left_shift:lshift bitwise_right_shift:rshift"),
    **_group(2, _TRUTH, "logical_and logical_or logical_xor"),
}  # fmt: skip
"""The functions of the standard that are methods of Tensor."""

NUMPY: dict[str, Function] = {
    name: function for name, function in STANDARD.items() if name not in ("round", "conj")
} | {
    **_group(1, _ANY, "absolute:abs arccos:acos arccosh:acosh arcsin:asin arcsinh:asinh arctan:atan arctanh:atanh "
             "bitwise_not conj:positive conjugate:positive deg2rad degrees:rad2deg exp2 fabs:abs invert:bitwise_not "
             "rad2deg radians:deg2rad rint:round"),
    **_group(2, _ANY, "arctan2:atan2 float_power fmax fmin fmod gcd lcm ldexp left_shift:lshift logaddexp2 "
             "mod:remainder power:pow right_shift:rshift true_divide:div"),
}  # fmt: skip
"""The universal functions of NumPy that are methods of Tensor."""


def kind_of(dtype: Any) -> str:
    """The letter of an element type's kind."""
    return "b" if dtype is dtypes.bool else {"int": "i", "uint": "u", "float": "f"}[dtype.kind]


def as_tensor(value: Any) -> Tensor:
    """A tensor as it is; numbers, nested sequences and arrays of others as one."""
    return value if isinstance(value, Tensor) else Tensor(value)


def pair(x1: Any, x2: Any) -> tuple[Tensor, Any]:
    """Two operands of which the first is a tensor; a number beside a tensor stays one, and takes its type."""
    if isinstance(x1, Tensor):
        plain = isinstance(x2, bool | int | float | Tensor)
        return x1, x2 if plain else Tensor(x2, device=x1.device)
    if isinstance(x2, Tensor) and isinstance(x1, bool | int | float):
        return _beside(x1, x2), x2
    device = x2.device if isinstance(x2, Tensor) else None
    return Tensor(x1, device=device), x2


def _beside(number: Any, tensor: Tensor) -> Tensor:
    """A Python number as a tensor of rank 0 in the type that it takes beside another one."""
    from lazulite.tensor.base import constant, weak_dtype

    return tensor._derived(constant(weak_dtype(number, tensor.dtype), number))
