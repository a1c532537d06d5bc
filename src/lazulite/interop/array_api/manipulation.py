"""Shapes and types of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.interop.array_api.array import Array, array_of, wrapped
from lazulite.interop.array_api.kinds import promote
from lazulite.ir.dtype import DType
from lazulite.tensor.base import one_axis

__all__ = [
    "astype", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis",
    "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack",
]  # fmt: skip


def astype(x: Array, dtype: DType, /, *, copy: bool = True, device: str | None = None) -> Array:
    """The array in another type; floats to integers saturate."""
    moved = array_of("astype", x) if device is None else x.to(device)
    return wrapped(moved.clone() if copy and dtype is moved.dtype else moved.cast(dtype))


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape at which shapes meet."""
    result = []
    for sizes in zip_longest(*[shape[::-1] for shape in shapes], fillvalue=1):
        wanted = {size for size in sizes if size != 1}
        if len(wanted) > 1:
            raise ShapeError("broadcast_shapes", f"shapes do not broadcast: {' and '.join(map(str, shapes))}")
        result.append(wanted.pop() if wanted else 1)
    return tuple(result[::-1])


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """The array repeated to a shape."""
    return wrapped(array_of("broadcast_to", x).expand(*shape) if shape else array_of("broadcast_to", x))


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """The arrays in the shape at which they meet."""
    shape = broadcast_shapes(*[array_of("broadcast_arrays", array).shape for array in arrays])
    return [broadcast_to(array, shape) for array in arrays]


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> Array:
    """Arrays one after another along an axis, or flat for None."""
    dtype = promote("concat", *[array_of("concat", array).dtype for array in arrays])
    parts = [array.cast(dtype) if axis is not None else array.cast(dtype).flatten() for array in arrays]
    return wrapped(parts[0].cat(*parts[1:], dim=0 if axis is None else axis))


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> Array:
    """Arrays along a new axis."""
    dtype = promote("stack", *[array_of("stack", array).dtype for array in arrays])
    parts = [array.cast(dtype) for array in arrays]
    return wrapped(parts[0].stack(*parts[1:], dim=axis))


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts along an axis, without it."""
    place = one_axis("unstack", axis, len(array_of("unstack", x).shape))
    before = (slice(None),) * place
    return tuple(wrapped(x[(*before, number)]) for number in range(x.shape[place]))


def expand_dims(x: Array, /, axis: int | tuple[int, ...] = 0) -> Array:
    """New axes of size 1 at places of the result."""
    axes = (axis,) if isinstance(axis, int) else axis
    rank = len(array_of("expand_dims", x).shape) + len(axes)
    places = {one_axis("expand_dims", each, rank) for each in axes}
    if len(places) < len(axes):
        raise ArgumentError("expand_dims", f"an axis is named twice in {axes}")
    sizes = iter(x.shape)
    return wrapped(x.reshape(*[1 if place in places else next(sizes) for place in range(rank)]))


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """Axes of size 1 taken away; ShapeError for another size."""
    places = {one_axis("squeeze", each, len(x.shape)) for each in ((axis,) if isinstance(axis, int) else axis)}
    wrong = [place for place in places if x.shape[place] != 1]
    if wrong:
        raise ShapeError("squeeze", f"axis {wrong[0]} of {x.shape} has not size 1", about={"x": x})
    return wrapped(x.reshape(*[size for place, size in enumerate(x.shape) if place not in places]))


def flip(x: Array, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Axes in reverse; all for None."""
    rank = len(array_of("flip", x).shape)
    axes = tuple(range(rank)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return wrapped(x.flip(axes) if axes else x)


def moveaxis(x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Array:
    """Axes at other places, the others in order."""
    rank = len(array_of("moveaxis", x).shape)
    begins, ends = [
        [one_axis("moveaxis", each, rank) for each in ((given,) if isinstance(given, int) else given)]
        for given in (source, destination)
    ]
    if len(begins) != len(ends) or len({*begins}) < len(begins) or len({*ends}) < len(ends):
        raise ArgumentError("moveaxis", f"{source} and {destination} do not name as many different axes")
    rest = iter([axis for axis in range(rank) if axis not in begins])
    placed = dict(zip(ends, begins, strict=True))
    return permute_dims(x, tuple([placed[axis] if axis in placed else next(rest) for axis in range(rank)]))


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """Axes in another order."""
    return wrapped(array_of("permute_dims", x).permute(*axes) if axes else x)


def repeat(x: Array, repeats: int | Array, /, *, axis: int | None = None) -> Array:
    """Each element several times."""
    return wrapped(array_of("repeat", x).repeat_interleave(repeats, dim=axis))


def reshape(x: Array, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    """The same elements in another shape; -1 is what is left."""
    moved = array_of("reshape", x).reshape(tuple(shape))
    return wrapped(moved.clone() if copy else moved)


def roll(x: Array, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Elements moved along axes, those at the end to the front."""
    if isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return wrapped(array_of("roll", x).roll(shift, axis))


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """The array several times along each axis."""
    missing = len(array_of("tile", x).shape) - len(repetitions)
    return wrapped(x.repeat(*[1] * missing, *repetitions) if x.shape or repetitions else x)
