"""Elementwise functions: those of the table, and the few that are more than a method."""

from __future__ import annotations

from typing import Any

from lazulite.interop.array_api.array import Array, array_of, call, wrapped
from lazulite.interop.array_api.kinds import promote, require_kind, require_scalar
from lazulite.interop.elementwise import STANDARD
from lazulite.tensor.tensor import Tensor

__all__ = ["clip", "imag", "real", *STANDARD]  # noqa: PLE0604


def _unary(name: str) -> Any:
    def function(x: Array, /) -> Array:
        return call(name, x)

    return function


def _binary(name: str) -> Any:
    def function(x1: Array, x2: Array, /) -> Array:
        return call(name, x1, x2)

    return function


for _name, _entry in STANDARD.items():
    _made = _unary(_name) if _entry.operands == 1 else _binary(_name)
    _made.__name__ = _made.__qualname__ = _name
    _made.__doc__ = (getattr(Tensor, _entry.method).__doc__ or "").partition("\n")[0]
    globals()[_name] = _made


def clip(x: Array, /, min: Any = None, max: Any = None) -> Array:
    """Each element as near as the bounds allow; the type of `x` stays."""
    require_kind("clip", "iuf", array_of("clip", x).dtype)
    for bound in (min, max):
        if isinstance(bound, Tensor):
            promote("clip", x.dtype, bound.dtype)
        elif bound is not None:
            require_scalar("clip", bound, x.dtype)
    found: Tensor = x
    if min is not None:
        found = found.maximum(min)
    if max is not None:
        found = found.minimum(max)
    return wrapped(found.cast(x.dtype))


def real(x: Array, /) -> Array:
    """The array itself: its numbers are real."""
    return array_of("real", x)


def imag(x: Array, /) -> Array:
    """Zeros: the numbers are real."""
    return wrapped(array_of("imag", x).zeros_like())
