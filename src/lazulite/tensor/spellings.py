"""Names that follow from others: other spellings of a method, and its form in place.

`spelled` adds to a class, for each entry of `OTHER_NAMES`, the same method under the names that PyTorch and NumPy
have for it, and for each method of `IN_PLACE` (and its other spellings) one with an underscore behind the name,
which writes its result to the tensor that it is called on, as `assign` does, and returns that.  The result must have
the shape of the tensor, and its kind of type or a lower one (bool, integer, float).  Methods of `RESHAPED` make
the tensor stand for its own view.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar

from lazulite.base.errors import DTypeError
from lazulite.tensor.base import Base

C = TypeVar("C", bound=type)

OTHER_NAMES: dict[str, str] = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "add": "", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh", "clip": "", "div": "divide true_divide",
    "eq": "", "floordiv": "floor_divide", "ge": "greater_equal", "gt": "greater", "le": "less_equal", "lt": "less",
    "mod": "remainder", "mul": "multiply", "ne": "not_equal", "neg": "negative", "sub": "subtract",
    "transpose": "swapaxes swapdims", "trunc": "fix", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
}  # fmt: skip
"""Methods and their other spellings."""

IN_PLACE = """
    abs acos acosh add addbmm addcdiv addcmul addmm addmv addr asin asinh atan atan2 atanh baddbmm bitwise_and
    bitwise_not bitwise_or bitwise_xor ceil clamp clamp_max clamp_min clip conj_physical copysign cos cosh
    cumprod cumsum deg2rad digamma div eq erf erfc erfinv exp exp2 expm1 float_power floor floordiv fmod frac
    gcd ge gt heaviside hypot i0 index_add index_copy index_fill index_put index_reduce lcm ldexp le lerp
    lgamma log log10 log1p log2 logical_and logical_not logical_or logical_xor logit lshift lt masked_fill
    masked_scatter mod mul mvlgamma nan_to_num ne neg nextafter polygamma pow put rad2deg reciprocal relu
    renorm round rshift rsqrt scatter scatter_add scatter_reduce sgn sigmoid sign sin sinc sinh sqrt square
    sub tan tanh tril triu trunc xlogy
""".split()
RESHAPED = "as_strided squeeze t transpose unsqueeze".split()


def spelled(cls: C) -> C:
    """The class with the names that follow from its own."""
    for name, others in OTHER_NAMES.items():
        for other in others.split():
            setattr(cls, other, _renamed(getattr(cls, name), other, name))
    for name in IN_PLACE:
        for spelling in (name, *OTHER_NAMES.get(name, "").split()):
            _add(cls, spelling, _written, "in place: the result is written to this tensor, which is returned")
    for name in RESHAPED:
        for spelling in (name, *OTHER_NAMES.get(name, "").split()):
            _add(cls, spelling, _replaced, "in place: this tensor stands for the result from now on, and is returned")
    return cls


def _renamed(method: FunctionType, other: str, name: str) -> FunctionType:
    """The same function under another name."""
    same = FunctionType(method.__code__, method.__globals__, other, method.__defaults__, method.__closure__)
    same.__kwdefaults__, same.__annotations__ = method.__kwdefaults__, method.__annotations__
    same.__doc__ = f"`{name}` by its other name."
    same.__qualname__, same.__module__ = f"Tensor.{other}", method.__module__
    return same


def _add(cls: type, name: str, form: Callable[[Any, str], FunctionType], what: str) -> None:
    method = getattr(cls, name)
    here = form(method, name + "_")
    update_wrapper(here, method)
    here.__name__, here.__qualname__, here.__doc__ = f"{name}_", f"Tensor.{name}_", f"`{name}` {what}."
    setattr(cls, name + "_", here)


def _written(method: Any, name: str) -> FunctionType:
    def in_place(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, *args, **kwargs)
        if _height(result) > _height(self):
            raise DTypeError(
                name, f"the dtype stays {self.dtype.name}, the result is {result.dtype.name}", about={"tensor": self}
            )
        return self.assign(result.cast(self.dtype))

    return in_place  # type: ignore[return-value]


def _replaced(method: Any, name: str) -> FunctionType:
    def in_place(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self.replace(method(self, *args, **kwargs))

    return in_place  # type: ignore[return-value]


def _height(tensor: Base) -> int:
    """How far up in bool, integer, float."""
    return 2 if tensor.dtype.is_float else int(tensor.dtype.is_int)
