"""Questions about types and arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lazulite.interop.array_api.kinds import isdtype
from lazulite.interop.array_api.manipulation import broadcast_shapes
from lazulite.interop.elementwise import as_tensor, kind_of
from lazulite.ir import dtype as types
from lazulite.ir.dtype import STORED, DType, dtypes
from lazulite.tensor.base import as_dtype
from lazulite.tensor.tensor import Tensor

__all__ = [
    "array_equal", "array_equiv", "astype", "broadcast_shapes", "can_cast", "iscomplex", "iscomplexobj", "isdtype",
    "isreal", "isrealobj", "isscalar", "iterable", "min_scalar_type", "ndim", "promote_types", "result_type",
    "shape", "size",
]  # fmt: skip


def shape(a: Any) -> tuple[int, ...]:
    """The size of each axis."""
    return as_tensor(a).shape


def ndim(a: Any) -> int:
    """How many axes there are."""
    return len(as_tensor(a).shape)


def size(a: Any, axis: int | None = None) -> int:
    """How many elements there are, or how many along an axis."""
    tensor = as_tensor(a)
    return tensor.numel() if axis is None else tensor.shape[axis]


def isscalar(element: Any) -> bool:
    """Whether this is a number or text, and no tensor."""
    return isinstance(element, bool | int | float | complex | str | bytes)


def iterable(y: Any) -> bool:
    """Whether one can walk over it."""
    return isinstance(y, Iterable) or (isinstance(y, Tensor) and y.shape != ())


def iscomplexobj(x: Any) -> bool:
    """False: numbers are real."""
    return False


def isrealobj(x: Any) -> bool:
    """True: numbers are real."""
    return True


def iscomplex(x: Any) -> Tensor:
    """False everywhere: numbers are real."""
    return as_tensor(x).full_like(False, dtype=dtypes.bool)


def isreal(x: Any) -> Tensor:
    """True everywhere: numbers are real."""
    return as_tensor(x).full_like(True, dtype=dtypes.bool)


def promote_types(type1: DType | str, type2: DType | str, /) -> DType:
    """The type at which two meet."""
    return types.promote(as_dtype("promote_types", type1), as_dtype("promote_types", type2))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The type that operands and types have together; Python numbers take that of the others."""
    strong = [
        each if isinstance(each, DType) else as_tensor(each).dtype for each in arrays_and_dtypes if not isscalar(each)
    ]
    weak = [as_tensor(each).dtype for each in arrays_and_dtypes if isscalar(each)]
    found = types.promote(*(strong or weak))
    wider = [dtype for dtype in weak if strong and dtype.is_float and not found.is_float]
    return types.promote(found, *wider)


def can_cast(from_: Any, to: DType | str, casting: str = "safe") -> bool:
    """Whether a type can be converted: "safe" loses nothing, "same_kind" stays in its kind, "unsafe" always."""
    source, target = from_ if isinstance(from_, DType) else as_tensor(from_).dtype, as_dtype("can_cast", to)
    if casting in ("no", "equiv"):
        return source is target
    order = "biuf" if casting == "same_kind" else ""
    same_kind = bool(order) and order.index(kind_of(source)) <= order.index(kind_of(target))
    return casting == "unsafe" or same_kind or _holds(target, source)


def _holds(target: DType, source: DType) -> bool:
    """Whether every value of one type is one of the other."""
    if source is dtypes.bool or source is target:
        return True
    if target is dtypes.bool or (source.is_float and not target.is_float):
        return False
    if source.is_float:
        return source.exponent_bits <= target.exponent_bits and source.mantissa_bits <= target.mantissa_bits
    if target.is_float:
        return source.bits <= {16: 8, 32: 16, 64: 64}.get(target.bits, 0)
    return bool(target.min <= source.min and source.max <= target.max)


def min_scalar_type(a: Any, /) -> DType:
    """The smallest type that holds a number; the own one of an array with axes."""
    if isinstance(a, Tensor) and a.shape:
        return a.dtype
    value = a.item() if isinstance(a, Tensor) else a
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, int):
        fitting = [t for t in STORED if t.is_int and t.min <= value <= t.max and (t.kind == "uint" or value < 0)]
        return min(fitting, key=lambda t: t.bits)
    if value != value or abs(value) == float("inf"):
        return dtypes.float16
    return next((t for t in (dtypes.float16, dtypes.float32) if abs(value) <= t.largest), dtypes.float64)


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether two arrays have one shape and equal elements."""
    first, second = as_tensor(a1), as_tensor(a2)
    if first.shape != second.shape:
        return False
    same = first.eq(second)
    if equal_nan:
        same = same | (first.ne(first) & second.ne(second))
    return bool(same.all().item())


def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether two arrays are equal once one of them is repeated to the shape of the other."""
    first, second = as_tensor(a1), as_tensor(a2)
    try:
        return bool(first.eq(second).all().item())
    except ValueError:
        return False


def astype(x: Any, dtype: DType | str, /, *, copy: bool = True) -> Tensor:
    """The array in another type; floats to integers saturate."""
    found = as_tensor(x).cast(dtype)
    return found.clone() if copy and found is x else found
