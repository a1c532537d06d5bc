"""Reading and writing by positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from lazulite.interop.elementwise import as_tensor
from lazulite.interop.numpy.shapes import broadcast_arrays
from lazulite.ir.dtype import dtypes
from lazulite.tensor.base import one_axis
from lazulite.tensor.tensor import Tensor

__all__ = [
    "apply_along_axis", "apply_over_axes", "choose", "compress", "copyto", "diag_indices", "diag_indices_from",
    "diagonal", "fill_diagonal", "ix_", "mask_indices", "piecewise", "place", "put", "put_along_axis", "putmask",
    "ravel_multi_index", "select", "take", "take_along_axis", "trace", "unravel_index",
]  # fmt: skip


def take(a: Any, indices: Any, axis: int | None = None, *, mode: str = "raise") -> Tensor:
    """The parts at positions along an axis, or of the flat array; modes raise, wrap and clip."""
    tensor, places = as_tensor(a), as_tensor(indices)
    tensor, along = (tensor.flatten(), 0) if axis is None else (tensor, one_axis("take", axis, len(tensor.shape)))
    size = tensor.shape[along]
    if mode != "raise":
        places = places.mod(size) if mode == "wrap" else places.clip(0, size - 1)
    return tensor[(slice(None),) * along + (places,)]


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Tensor:
    """The elements at positions along an axis, one position for each result."""
    tensor, places = as_tensor(arr), as_tensor(indices)
    if axis is None:
        return tensor.flatten().take_along_dim(places, 0)
    return tensor.take_along_dim(places, axis)


def compress(condition: Any, a: Any, axis: int | None = None) -> Tensor:
    """The parts along an axis, or of the flat array, for which the condition is true."""
    places = as_tensor(condition).nonzero().flatten()
    return take(a, places, axis)


def choose(a: Any, choices: Sequence[Any], mode: str = "raise") -> Tensor:
    """Each element from the array that a number names."""
    parts = broadcast_arrays(a, *choices)
    which, options = parts[0], parts[1:]
    count = len(options)
    which = which.mod(count) if mode == "wrap" else which.clip(0, count - 1) if mode == "clip" else which
    found = options[-1]
    for number in reversed(range(count - 1)):
        found = which.eq(number).where(options[number], found)
    return found


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Each element from the first choice whose condition is true."""
    found = as_tensor(default)
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        found = as_tensor(condition).where(as_tensor(choice), found)
    return found


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Tensor:
    """Values, or functions of the array, where conditions are true; the last one alone is for the rest."""
    tensor = as_tensor(x)
    conditions = [as_tensor(each) for each in (condlist if isinstance(condlist, list) else [condlist])]
    made = [as_tensor(f(tensor, *args, **kw) if callable(f) else f).cast(tensor.dtype) for f in funclist]
    found = made[-1] if len(made) > len(conditions) else as_tensor(0).cast(tensor.dtype)
    for condition, value in zip(conditions, made, strict=False):
        found = condition.where(value, found)
    return found.expand(*tensor.shape) if tensor.shape else found


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    """What a function of a vector gives for every line along an axis, by `vmap`."""
    from lazulite.tensor.vmap import vmap

    tensor = as_tensor(arr)
    place = one_axis("apply_along_axis", axis, len(tensor.shape))
    moved = tensor.movedim(place, -1)
    lines = moved.reshape(-1, moved.shape[-1])
    found: Tensor = vmap(lambda line: as_tensor(func1d(line, *args, **kwargs)))(lines)
    inner = found.shape[1:]
    result = found.reshape(*moved.shape[:-1], *inner)
    for number in range(len(inner)):
        result = result.movedim(len(moved.shape) - 1 + number, place + number)
    return result


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: int | Sequence[int]) -> Tensor:
    """A function of an array and an axis for one axis after the other; axes stay."""
    tensor = as_tensor(a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        place = one_axis("apply_over_axes", axis, len(tensor.shape))
        found = as_tensor(func(tensor, axis))
        tensor = found if len(found.shape) == len(tensor.shape) else found.unsqueeze(place)
    return tensor


# --- diagonals ---------------------------------------------------------------------------------------


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """A diagonal of two axes, as the last one."""
    return as_tensor(a).diagonal(offset, axis1, axis2)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """The sum of a diagonal."""
    return diagonal(a, offset, axis1, axis2).sum(-1, dtype=dtype)


def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """The positions of the main diagonal of a cube."""
    return (Tensor.arange(n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Tensor, ...]:
    """`diag_indices` for an array."""
    tensor = as_tensor(arr)
    return diag_indices(tensor.shape[0], len(tensor.shape))


def mask_indices(n: int, mask_func: Callable[[Tensor, Any], Any], k: Any = 0) -> tuple[Tensor, ...]:
    """The positions of a square that a function such as `triu` keeps."""
    found = as_tensor(mask_func(Tensor.ones(n, n), k)).nonzero()
    return found[:, 0], found[:, 1]


def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Positions on each axis, so that they pick the grid of all pairs."""
    lines = [as_tensor(each) for each in args]
    lines = [x.nonzero().flatten() if x.dtype is dtypes.bool else x for x in lines]
    return tuple([
        line.reshape(*[-1 if number == own else 1 for number in range(len(lines))]) for own, line in enumerate(lines)
    ])  # fmt: skip


def unravel_index(indices: Any, shape: int | Sequence[int], order: str = "C") -> tuple[Tensor, ...]:
    """Positions in the flat array as positions on each axis."""
    rest, sizes = as_tensor(indices), list((shape,) if isinstance(shape, int) else shape)
    found = []
    for size in reversed(sizes) if order == "C" else sizes:
        found.append(rest.mod(size))
        rest = rest.floordiv(size)
    return tuple(found[::-1] if order == "C" else found)


def ravel_multi_index(multi_index: Sequence[Any], dims: Sequence[int], mode: str = "raise", order: str = "C") -> Tensor:
    """Positions on each axis as positions in the flat array."""
    places = [as_tensor(each) for each in multi_index]
    if mode == "wrap":
        places = [p.mod(size) for p, size in zip(places, dims, strict=True)]
    if mode == "clip":
        places = [p.clip(0, size - 1) for p, size in zip(places, dims, strict=True)]
    pairs = list(zip(places, dims, strict=True))
    flat = Tensor(0)
    for place, size in pairs if order == "C" else pairs[::-1]:
        flat = flat * size + place
    return flat


# --- writing -----------------------------------------------------------------------------------------


def copyto(dst: Tensor, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Write values into a tensor, where a mask is true."""
    value = as_tensor(src).cast(dst.dtype)
    dst.assign(as_tensor(where).where(value, dst).expand(*dst.shape))


def putmask(a: Tensor, /, mask: Any, values: Any) -> None:
    """Write values, repeated to the shape, into a tensor where a mask is true."""
    flat = as_tensor(values).cast(a.dtype).flatten()
    repeated = flat.repeat(-(-a.numel() // flat.shape[0]))[: a.numel()].reshape(*a.shape)
    a.assign(as_tensor(mask).where(repeated, a))


def place(arr: Tensor, mask: Any, vals: Any) -> None:
    """Write values one after another where a mask is true."""
    chosen = as_tensor(mask).cast(dtypes.bool).flatten()
    flat = as_tensor(vals).cast(arr.dtype).flatten()
    number = (chosen.cast(dtypes.int32).cumsum(0) - 1).mod(flat.shape[0])
    arr.assign(chosen.where(flat.take(number), arr.flatten()).reshape(*arr.shape))


def put(a: Tensor, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values at positions of the flat array."""
    places = as_tensor(ind).flatten()
    if mode != "raise":
        places = places.mod(a.numel()) if mode == "wrap" else places.clip(0, a.numel() - 1)
    values = as_tensor(v).cast(a.dtype).flatten()
    flat = a.flatten().clone()
    flat[places] = values.repeat(-(-places.shape[0] // values.shape[0]))[: places.shape[0]]
    a.assign(flat.reshape(*a.shape))


def put_along_axis(arr: Tensor, indices: Any, values: Any, axis: int) -> None:
    """Write values at positions along an axis, one position for each value."""
    places = as_tensor(indices)
    value = as_tensor(values).cast(arr.dtype)
    arr.assign(arr.scatter(axis, places, value.expand(*places.shape)))


def fill_diagonal(a: Tensor, val: Any, wrap: bool = False) -> None:
    """Write values on the main diagonal of a tensor."""
    value = as_tensor(val).cast(a.dtype)
    size = min(a.shape)
    line = Tensor.arange(size)
    step = [math.prod(a.shape[axis + 1 :]) for axis in range(len(a.shape))]
    flat = a.flatten().clone()
    flat[line * sum(step)] = value if not value.shape else value.flatten().repeat(-(-size // value.numel()))[:size]
    a.assign(flat.reshape(*a.shape))
