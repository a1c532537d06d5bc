"""Making arrays."""

from __future__ import annotations

from typing import Any

from lazulite.base.errors import ArgumentError
from lazulite.interop.array_api.array import Array, array_of, wrapped
from lazulite.ir.dtype import DType, dtypes
from lazulite.tensor.tensor import Tensor

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip

Shape = int | tuple[int, ...]


def asarray(obj: Any, /, *, dtype: DType | None = None, device: str | None = None, copy: bool | None = None) -> Array:
    """Numbers, nested sequences of them, arrays of any library and buffers as an array.

    With `copy=False` an ArgumentError where no memory can be shared; only a tensor shares its own.
    """
    if isinstance(obj, Tensor):
        same = (dtype is None or dtype is obj.dtype) and device in (None, obj.device)
        if copy is False and not same:
            raise ArgumentError("asarray", "another type or device needs a copy", about={"obj": obj})
        moved = obj.to(device) if device is not None else obj
        cast = moved if dtype is None else moved.cast(dtype)
        return wrapped(cast.clone() if copy and same else cast)
    if copy is False:
        raise ArgumentError("asarray", f"a {type(obj).__name__} is always copied")
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array__"):
        found = Array.from_dlpack(obj, device=device)
        return found if dtype is None else found.cast(dtype)
    return Array(obj, device=device, dtype=dtype)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """A copy of what another library offers by DLPack; a BufferError with `copy=False`."""
    return Array.from_dlpack(x, device=device, copy=copy)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DType | None = None,
    device: str | None = None,
) -> Array:
    """Numbers at equal distances, the end not included."""
    begin, end = (0, start) if stop is None else (start, stop)
    if (end - begin) * step <= 0:
        whole = all(isinstance(part, int) for part in (begin, end, step))
        return empty(0, dtype=dtype or (dtypes.default_int if whole else dtypes.default_float), device=device)
    return Array.arange(begin, end, step, dtype=dtype, device=device)


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Array:
    """A number of points at equal distances."""
    kind = dtype or dtypes.default_float
    if endpoint or num == 0:
        return Array.linspace(start, stop, num, dtype=kind, device=device)
    return Array.linspace(start, stop, num + 1, dtype=kind, device=device)[:-1]


def full(shape: Shape, fill_value: Any, *, dtype: DType | None = None, device: str | None = None) -> Array:
    """One number everywhere."""
    return Array.full(shape, fill_value, dtype=dtype, device=device)


def empty(shape: Shape, *, dtype: DType | None = None, device: str | None = None) -> Array:
    """Numbers that nobody has set."""
    return zeros(shape, dtype=dtype, device=device)


def zeros(shape: Shape, *, dtype: DType | None = None, device: str | None = None) -> Array:
    """Zeros, of the default float unless a type is given."""
    return Array.zeros(shape, dtype=dtype, device=device)


def ones(shape: Shape, *, dtype: DType | None = None, device: str | None = None) -> Array:
    """Ones, of the default float unless a type is given."""
    return Array.ones(shape, dtype=dtype, device=device)


def full_like(x: Array, /, fill_value: Any, *, dtype: DType | None = None, device: str | None = None) -> Array:
    """One number everywhere, in the shape of an array, in its type and place unless others are given."""
    return wrapped(array_of("full_like", x).full_like(fill_value, dtype=dtype, device=device))


def empty_like(x: Array, /, *, dtype: DType | None = None, device: str | None = None) -> Array:
    """Numbers that nobody has set, in the shape of an array."""
    return zeros_like(x, dtype=dtype, device=device)


def zeros_like(x: Array, /, *, dtype: DType | None = None, device: str | None = None) -> Array:
    """Zeros in the shape of an array."""
    return wrapped(array_of("zeros_like", x).zeros_like(dtype=dtype, device=device))


def ones_like(x: Array, /, *, dtype: DType | None = None, device: str | None = None) -> Array:
    """Ones in the shape of an array."""
    return wrapped(array_of("ones_like", x).ones_like(dtype=dtype, device=device))


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None, device: str | None = None
) -> Array:
    """Ones on a diagonal."""
    columns = n_rows if n_cols is None else n_cols
    row = Array.arange(max(n_rows, 1), device=device)[:n_rows].reshape(n_rows, 1)
    column = Array.arange(max(columns, 1), device=device)[:columns]
    return wrapped((row + k).eq(column).cast(dtype or dtypes.default_float))


def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinates of a grid, one array for each axis."""
    if not arrays:
        return ()
    first, *others = [array_of("meshgrid", array) for array in arrays]
    return tuple(wrapped(part) for part in first.meshgrid(*others, indexing=indexing))


def tril(x: Array, /, *, k: int = 0) -> Array:
    """Zeros above a diagonal."""
    return wrapped(array_of("tril", x).tril(k))


def triu(x: Array, /, *, k: int = 0) -> Array:
    """Zeros below a diagonal."""
    return wrapped(array_of("triu", x).triu(k))
