"""Element types by the rules of the standard: kinds that do not mix, and questions about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lazulite.base.errors import ArgumentError, DTypeError
from lazulite.interop.elementwise import kind_of
from lazulite.ir.dtype import STORED, DType, dtypes
from lazulite.ir.dtype import promote as lattice
from lazulite.tensor.tensor import Tensor

__all__ = ["can_cast", "finfo", "iinfo", "isdtype", "result_type"]

TYPES: tuple[DType, ...] = tuple([t for t in STORED if not t.is_float or t in (dtypes.float32, dtypes.float64)])
"""The types of the standard that there are; other types of Tensor work as well, in the kind of floats."""

KINDS: dict[str, str] = {
    "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
    "complex floating": "", "numeric": "iuf",
}  # fmt: skip
"""The names of kinds, with the letters of `elementwise.kind_of`."""
_SCALARS = {bool: "b", int: "iuf", float: "f"}


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """Whether a type is of a kind, or one of several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ArgumentError("isdtype", f"{kind!r} is no kind", rule=f"The kinds are {', '.join(KINDS)}.")
        return kind_of(dtype) in KINDS[kind]
    return dtype is kind


def promote(function: str, *types: DType) -> DType:
    """The type at which operands meet; DTypeError where the standard defines none."""
    kinds = {kind_of(dtype) for dtype in types}
    if len(kinds) > 1 and kinds != {"i", "u"}:
        raise DTypeError(
            function, f"kinds of types do not mix, got {' and '.join(dtype.name for dtype in types)}",
            rule="The standard defines promotion only within bools, integers and floats.",
            hint="convert one of them: astype(x, dtype)",
        )  # fmt: skip
    found = lattice(*types)
    if "i" in kinds and found.is_float:
        raise DTypeError(function, "no integer type holds both uint64 and a signed one")
    return found


def result_type(*arrays_and_dtypes: Tensor | DType | bool | int | float) -> DType:
    """The type that operands, types and Python numbers have together; numbers take that of the others.

    >>> result_type(dtypes.int8, dtypes.uint8), result_type(Tensor([1.0]), 1)
    (dtypes.int16, dtypes.float32)
    """
    held = [each.dtype if isinstance(each, Tensor) else each for each in arrays_and_dtypes]
    types = [each for each in held if isinstance(each, DType)]
    if not types:
        raise ArgumentError("result_type", "at least one array or type is needed")
    found = promote("result_type", *types)
    for scalar in arrays_and_dtypes:
        if _is_scalar(scalar):
            require_scalar("result_type", scalar, found)
    return found


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float)


def require_scalar(function: str, scalar: Any, dtype: DType) -> None:
    """A DTypeError where a Python number is not of the kind of the array that it stands beside."""
    if kind_of(dtype) not in _SCALARS[type(scalar)]:
        raise DTypeError(function, f"{scalar!r} has no place beside {dtype.name}", hint="convert the array")


def require_kind(function: str, kinds: str, *types: DType) -> None:
    """A DTypeError for a type that a function does not take."""
    for dtype in types:
        if kind_of(dtype) not in kinds:
            names = {"b": "bool", "i": "signed integers", "u": "unsigned integers", "f": "floats"}
            raise DTypeError(function, f"takes {', '.join(names[k] for k in kinds)}, got {dtype.name}")


def can_cast(from_: Tensor | DType, to: DType, /) -> bool:
    """Whether promotion leads from the one type to the other."""
    dtype = from_ if isinstance(from_, DType) else from_.dtype
    try:
        return promote("can_cast", dtype, to) is to
    except DTypeError:
        return False


@dataclass(frozen=True)
class Floats:
    """What `finfo` gives."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class Integers:
    """What `iinfo` gives."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: DType | Tensor, /) -> Floats:
    """The limits of a float type."""
    dtype = type if isinstance(type, DType) else type.dtype
    require_kind("finfo", "f", dtype)
    normal = 2.0 ** (2 - (1 << (dtype.exponent_bits - 1)))
    return Floats(dtype.bits, dtype.epsilon, dtype.largest, -dtype.largest, normal, dtype)


def iinfo(type: DType | Tensor, /) -> Integers:
    """The limits of an integer type."""
    dtype = type if isinstance(type, DType) else type.dtype
    require_kind("iinfo", "iu", dtype)
    return Integers(dtype.bits, int(dtype.max), int(dtype.min), dtype)


def of_kind(types: Sequence[DType], kind: str | tuple[str, ...] | None) -> dict[str, DType]:
    """The types of a kind by name."""
    return {t.name: t for t in types if kind is None or isdtype(t, kind)}
