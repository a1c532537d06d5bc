"""Making arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lazulite.interop.array_api.creation import arange as _arange
from lazulite.interop.elementwise import as_tensor
from lazulite.ir.dtype import DType, dtypes
from lazulite.tensor.tensor import Tensor

__all__ = [
    "arange", "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "bartlett", "blackman",
    "copy", "diag", "diagflat", "empty", "empty_like", "eye", "from_dlpack", "frombuffer", "fromfunction",
    "fromiter", "full", "full_like", "geomspace", "hamming", "hanning", "identity", "indices", "kaiser", "linspace",
    "logspace", "meshgrid", "ones", "ones_like", "tri", "tril", "tril_indices", "tril_indices_from", "triu",
    "triu_indices", "triu_indices_from", "vander", "zeros", "zeros_like",
]  # fmt: skip

Shape = int | Sequence[int]
Type = DType | str | None


def array(object: Any, dtype: Type = None, *, copy: bool = True, ndmin: int = 0) -> Tensor:
    """An array of its own of what is given, with leading axes of size 1 up to `ndmin`."""
    given = isinstance(object, Tensor)
    made = as_tensor(object) if dtype is None else Tensor(object, dtype=dtype)
    made = made.clone() if given and copy else made
    return made.reshape((*[1] * max(0, ndmin - len(made.shape)), *made.shape))


def asarray(a: Any, dtype: Type = None, *, copy: bool | None = None) -> Tensor:
    """What is given as an array; itself where it is one of the type."""
    made = as_tensor(a) if dtype is None else as_tensor(a).cast(dtype)
    return made.clone() if copy and made is a else made


asanyarray = asarray


def ascontiguousarray(a: Any, dtype: Type = None) -> Tensor:
    """As `asarray`, with one axis at least."""
    made = asarray(a, dtype)
    return made if made.shape else made.reshape(1)


def asarray_chkfinite(a: Any, dtype: Type = None) -> Tensor:
    """As `asarray`; ValueError where an element is infinite or NaN."""
    made = asarray(a, dtype)
    if made.dtype.is_float and not made.isfinite().all().item():
        raise ValueError("array must not contain infs or NaNs")
    return made


def copy(a: Any) -> Tensor:
    """A copy with memory of its own."""
    return as_tensor(a).clone()


def from_dlpack(x: Any, /) -> Tensor:
    """A copy of what another library offers by DLPack."""
    return Tensor.from_dlpack(x)


def frombuffer(buffer: Any, dtype: DType | str = dtypes.float64, count: int = -1, offset: int = 0) -> Tensor:
    """The elements that bytes hold."""
    kind = Tensor([0], dtype=dtype).dtype
    data = bytes(buffer)[offset:]
    data = data[: count * kind.itemsize] if count >= 0 else data
    return Tensor(data).bitcast(kind)


def fromiter(iter: Iterable[Any], dtype: DType | str, count: int = -1) -> Tensor:
    """The elements that an iterator gives."""
    values = list(iter)
    return Tensor(values if count < 0 else values[:count], dtype=dtype)


def fromfunction(function: Callable[..., Any], shape: Sequence[int], *, dtype: DType | str = dtypes.float32) -> Any:
    """What a function gives for the coordinates of each element."""
    return function(*[each.cast(dtype) for each in indices(shape)])


# --- constants ---------------------------------------------------------------------------------------


def zeros(shape: Shape, dtype: Type = None) -> Tensor:
    """Zeros."""
    return Tensor.zeros(shape, dtype=dtype)


def ones(shape: Shape, dtype: Type = None) -> Tensor:
    """Ones."""
    return Tensor.ones(shape, dtype=dtype)


def empty(shape: Shape, dtype: Type = None) -> Tensor:
    """Numbers that nobody has set: zeros."""
    return zeros(shape, dtype)


def full(shape: Shape, fill_value: Any, dtype: Type = None) -> Tensor:
    """One value everywhere, or values repeated to the shape."""
    if isinstance(fill_value, bool | int | float):
        return Tensor.full(shape, fill_value, dtype=dtype)
    size = (shape,) if isinstance(shape, int) else tuple(shape)
    made = as_tensor(fill_value) if dtype is None else as_tensor(fill_value).cast(dtype)
    return made.expand(*size)


def zeros_like(a: Any, dtype: Type = None, *, shape: Shape | None = None) -> Tensor:
    """Zeros in the shape and type of an array."""
    return full_like(a, 0, dtype, shape=shape)


def ones_like(a: Any, dtype: Type = None, *, shape: Shape | None = None) -> Tensor:
    """Ones in the shape and type of an array."""
    return full_like(a, 1, dtype, shape=shape)


def empty_like(prototype: Any, /, dtype: Type = None, *, shape: Shape | None = None) -> Tensor:
    """Numbers that nobody has set, in the shape and type of an array."""
    return zeros_like(prototype, dtype, shape=shape)


def full_like(a: Any, fill_value: Any, dtype: Type = None, *, shape: Shape | None = None) -> Tensor:
    """One value in the shape and type of an array."""
    like = as_tensor(a)
    return Tensor.full(
        like.shape if shape is None else shape, fill_value, dtype=dtype or like.dtype, device=like.device
    )


# --- ranges ------------------------------------------------------------------------------------------


def arange(start: float, stop: float | None = None, step: float = 1, *, dtype: Type = None) -> Tensor:
    """Numbers at equal distances, the end not included."""
    made = _arange(start, stop, step)
    return Tensor(made if dtype is None else made.cast(dtype))


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Type = None,
    axis: int = 0,
) -> Any:
    """A number of points at equal distances, of numbers or of arrays, and with `retstep` the distance."""
    first, last = [as_tensor(x) for x in (start, stop)]
    parts = max(num - 1 if endpoint else num, 1)
    step = (last - first) / parts
    count = Tensor.arange(max(num, 1))[:num].reshape(num, *[1] * len(step.shape))
    made = step * count + first
    if endpoint and num > 1:
        made = (count < num - 1).where(made, last)
    made = made.movedim(0, axis) if axis else made
    made = made if dtype is None else made.cast(dtype)
    return (made, step if num > 1 or not endpoint else step.full_like(float("nan"))) if retstep else made


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Type = None, axis: int = 0
) -> Tensor:
    """Powers of the base whose exponents have equal distances."""
    made = as_tensor(float(base)).pow(linspace(start, stop, num, endpoint, axis=axis))
    return made if dtype is None else made.cast(dtype)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Type = None, axis: int = 0) -> Tensor:
    """A number of points of which each is the one before times a factor."""
    first, last = [as_tensor(x) for x in (start, stop)]
    made: Tensor = linspace(first.abs().log(), last.abs().log(), num, endpoint, axis=axis).exp().copysign(first)
    return made if dtype is None else made.cast(dtype)


def indices(dimensions: Sequence[int], dtype: DType | str = dtypes.int32, sparse: bool = False) -> Any:
    """The coordinates of each element, one grid for each axis."""
    rank = len(dimensions)
    lines = [
        Tensor.arange(size).cast(dtype).reshape(*[size if axis == own else 1 for axis in range(rank)])
        for own, size in enumerate(dimensions)
    ]
    if sparse:
        return tuple(lines)
    full = [line.expand(*dimensions) for line in lines]
    return full[0].stack(*full[1:])


def meshgrid(*xi: Any, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid, one array for each axis."""
    first, *others = [as_tensor(x).flatten() for x in xi]
    grids = first.meshgrid(*others, indexing=indexing)
    if not sparse:
        return tuple(grids)
    kept = []
    for number, grid in enumerate(grids):
        own = 1 - number if indexing == "xy" and number < 2 and len(grids) > 1 else number
        kept.append(grid[tuple([slice(None) if axis == own else slice(1) for axis in range(len(grids))])])
    return tuple(kept)


# --- matrices ----------------------------------------------------------------------------------------


def eye(N: int, M: int | None = None, k: int = 0, dtype: Type = None) -> Tensor:
    """Ones on a diagonal."""
    rows, columns = Tensor.arange(N).reshape(N, 1), Tensor.arange(N if M is None else M)
    return (rows + k).eq(columns).cast(dtype or dtypes.default_float)


def identity(n: int, dtype: Type = None) -> Tensor:
    """Ones on the diagonal of a square."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Type = None) -> Tensor:
    """Ones on a diagonal and below."""
    rows, columns = Tensor.arange(N).reshape(N, 1), Tensor.arange(N if M is None else M)
    return (columns <= rows + k).cast(dtype or dtypes.default_float)


def tril(m: Any, k: int = 0) -> Tensor:
    """Zeros above a diagonal."""
    return as_tensor(m).tril(k)


def triu(m: Any, k: int = 0) -> Tensor:
    """Zeros below a diagonal."""
    return as_tensor(m).triu(k)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """The rows and columns of the elements on a diagonal and below."""
    found = Tensor.tril_indices(n, n if m is None else m, k)
    return found[0], found[1]


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, Tensor]:
    """The rows and columns of the elements on a diagonal and above."""
    found = Tensor.triu_indices(n, n if m is None else m, k)
    return found[0], found[1]


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Tensor, Tensor]:
    """`tril_indices` for a matrix."""
    rows, columns = as_tensor(arr).shape
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Tensor, Tensor]:
    """`triu_indices` for a matrix."""
    rows, columns = as_tensor(arr).shape
    return triu_indices(rows, k, columns)


def diag(v: Any, k: int = 0) -> Tensor:
    """A matrix with a vector on a diagonal, or the diagonal of a matrix."""
    return as_tensor(v).diag(k)


def diagflat(v: Any, k: int = 0) -> Tensor:
    """A matrix with all elements of an array on a diagonal."""
    return as_tensor(v).diagflat(k)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element in rows, the highest first unless `increasing`."""
    column = as_tensor(x).reshape(-1, 1)
    powers = Tensor.arange(column.shape[0] if N is None else N)
    return column.pow(powers if increasing else powers.flip(0))


# --- windows -----------------------------------------------------------------------------------------


def _window(M: int, function: Callable[[Tensor], Tensor]) -> Tensor:
    """A function of positions from -1 to 1; one of a single point, nothing for none."""
    if M < 1:
        return Tensor.zeros(0)
    return Tensor.ones(1) if M == 1 else function(Tensor.arange(1 - M, M, 2) / (M - 1))


def hanning(M: int) -> Tensor:
    """The window of von Hann."""
    return _window(M, lambda x: (x * math.pi).cos() * 0.5 + 0.5)


def hamming(M: int) -> Tensor:
    """The window of Hamming."""
    return _window(M, lambda x: (x * math.pi).cos() * 0.46 + 0.54)


def blackman(M: int) -> Tensor:
    """The window of Blackman."""
    return _window(M, lambda x: (x * math.pi).cos() * 0.5 + (x * (2 * math.pi)).cos() * 0.08 + 0.42)


def bartlett(M: int) -> Tensor:
    """The triangular window."""
    return _window(M, lambda x: 1 - x.abs())


def kaiser(M: int, beta: float) -> Tensor:
    """The window of Kaiser."""
    return _window(M, lambda x: ((1 - x * x).maximum(0).sqrt() * beta).i0() / Tensor(float(beta)).i0())
