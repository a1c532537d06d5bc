"""Shapes: axes moved, arrays joined and cut, padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lazulite.base.errors import ArgumentError
from lazulite.interop.array_api.manipulation import broadcast_shapes
from lazulite.interop.array_api.manipulation import expand_dims as _expand_dims
from lazulite.interop.elementwise import as_tensor
from lazulite.ir.dtype import promote
from lazulite.tensor.base import one_axis
from lazulite.tensor.tensor import Tensor

__all__ = [
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block", "broadcast_arrays", "broadcast_to",
    "column_stack", "concat", "concatenate", "delete", "dsplit", "dstack", "expand_dims", "flip", "fliplr",
    "flipud", "hsplit", "hstack", "insert", "matrix_transpose", "moveaxis", "pad", "permute_dims", "ravel",
    "repeat", "reshape", "resize", "roll", "rollaxis", "rot90", "row_stack", "split", "squeeze", "stack",
    "swapaxes", "tile", "transpose", "trim_zeros", "unstack", "vsplit", "vstack",
]  # fmt: skip


def reshape(a: Any, /, shape: int | Sequence[int], order: str = "C") -> Tensor:
    """The same elements in another shape; in order "F" the first axis moves fastest on both sides."""
    tensor, size = as_tensor(a), (shape,) if isinstance(shape, int) else tuple(shape)
    return tensor.reshape(size) if order in ("C", "A", "K") else transpose(transpose(tensor).reshape(size[::-1]))


def ravel(a: Any, order: str = "C") -> Tensor:
    """All elements in a row."""
    return reshape(a, (-1,), order)


def transpose(a: Any, axes: Sequence[int] | None = None) -> Tensor:
    """Axes in another order, reversed by default."""
    tensor = as_tensor(a)
    order = tuple(reversed(range(len(tensor.shape)))) if axes is None else tuple(axes)
    return tensor.permute(*order) if len(order) > 1 else tensor


permute_dims = transpose


def matrix_transpose(x: Any, /) -> Tensor:
    """The last two axes exchanged."""
    return as_tensor(x).transpose(-1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    return as_tensor(a).transpose(axis1, axis2)


def moveaxis(a: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Axes at other places, the others in order."""
    return as_tensor(a).movedim(source, destination)


def rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    """An axis moved to stand before another one."""
    tensor = as_tensor(a)
    rank = len(tensor.shape)
    place, before = one_axis("rollaxis", axis, rank), start + rank if start < 0 else start
    return tensor.movedim(place, before - 1 if place < before else before)


def squeeze(a: Any, axis: int | Sequence[int] | None = None) -> Tensor:
    """Axes of size 1 taken away; ValueError for a named one of another size."""
    tensor = as_tensor(a)
    rank = len(tensor.shape)
    if axis is None:
        return tensor.squeeze()
    places = [one_axis("squeeze", each, rank) for each in ((axis,) if isinstance(axis, int) else axis)]
    if any(tensor.shape[place] != 1 for place in places):
        raise ArgumentError("squeeze", f"the axes {axis} of {tensor.shape} do not all have size 1", about={"a": tensor})
    return tensor.reshape(*[size for place, size in enumerate(tensor.shape) if place not in places])


def expand_dims(a: Any, axis: int | Sequence[int]) -> Tensor:
    """New axes of size 1 at places of the result."""
    return Tensor(_expand_dims(as_tensor(a), axis if isinstance(axis, int) else tuple(axis)))  # type: ignore[arg-type]


def broadcast_to(array: Any, shape: int | Sequence[int]) -> Tensor:
    """The array repeated to a shape."""
    return as_tensor(array).expand(*((shape,) if isinstance(shape, int) else shape))


def broadcast_arrays(*args: Any) -> tuple[Tensor, ...]:
    """The arrays in the shape at which they meet."""
    tensors = [as_tensor(each) for each in args]
    shape = broadcast_shapes(*[each.shape for each in tensors])
    return tuple([each.expand(*shape) if shape else each for each in tensors])


def atleast_1d(*arys: Any) -> Any:
    """Arrays with one axis at least."""
    return _each(arys, lambda x: x if x.shape else x.reshape(1))


def atleast_2d(*arys: Any) -> Any:
    """Arrays with two axes at least, new ones in front."""
    return _each(arys, lambda x: x if len(x.shape) > 1 else x.reshape(1, -1))


def atleast_3d(*arys: Any) -> Any:
    """Arrays with three axes at least: one behind a matrix, one on each side of a vector."""
    shapes: list[Callable[[Tensor], tuple[int, ...]]] = [
        lambda x: (1, 1, 1), lambda x: (1, x.shape[0], 1), lambda x: (*x.shape, 1),
    ]  # fmt: skip
    return _each(arys, lambda x: x if len(x.shape) > 2 else x.reshape(*shapes[len(x.shape)](x)))


def _each(arrays: Sequence[Any], shape: Callable[[Tensor], Tensor]) -> Any:
    made = tuple([shape(as_tensor(each)) for each in arrays])
    return made[0] if len(made) == 1 else made


# --- joining -----------------------------------------------------------------------------------------


def _joined(arrays: Sequence[Any], join: Callable[[list[Tensor]], Tensor], dtype: Any = None) -> Tensor:
    tensors = [as_tensor(each) for each in arrays]
    common = promote(*[each.dtype for each in tensors])
    made = join([each.cast(common) for each in tensors])
    return made if dtype is None else made.cast(dtype)


def concatenate(arrays: Sequence[Any], /, axis: int | None = 0, *, dtype: Any = None) -> Tensor:
    """Arrays one after another along an axis, or flat for None."""
    if axis is None:
        return concatenate([as_tensor(each).flatten() for each in arrays], 0, dtype=dtype)
    return _joined(arrays, lambda parts: parts[0].cat(*parts[1:], dim=axis), dtype)


concat = concatenate


def stack(arrays: Sequence[Any], axis: int = 0, *, dtype: Any = None) -> Tensor:
    """Arrays along a new axis."""
    return _joined(arrays, lambda parts: parts[0].stack(*parts[1:], dim=axis), dtype)


def _listed(arrays: Any) -> list[Any]:
    """What a function of one or several arrays gives, as a list."""
    return list(arrays) if isinstance(arrays, tuple) else [arrays]


def vstack(tup: Sequence[Any], *, dtype: Any = None) -> Tensor:
    """Arrays below one another."""
    return concatenate(_listed(atleast_2d(*tup)), 0, dtype=dtype)


row_stack = vstack


def hstack(tup: Sequence[Any], *, dtype: Any = None) -> Tensor:
    """Arrays side by side."""
    parts = _listed(atleast_1d(*tup))
    return concatenate(parts, 0 if len(parts[0].shape) == 1 else 1, dtype=dtype)


def dstack(tup: Sequence[Any]) -> Tensor:
    """Arrays behind one another."""
    return concatenate(_listed(atleast_3d(*tup)), 2)


def column_stack(tup: Sequence[Any]) -> Tensor:
    """Vectors as columns, and matrices, side by side."""
    tensors = [as_tensor(each) for each in tup]
    return concatenate([x if len(x.shape) > 1 else x.reshape(-1, 1) for x in tensors], 1)


def block(arrays: Any) -> Tensor:
    """Nested lists of arrays put together: the innermost along the last axis."""

    def depth(part: Any) -> int:
        return 1 + max(map(depth, part)) if isinstance(part, list) else 0

    def rank(part: Any) -> int:
        return max(map(rank, part)) if isinstance(part, list) else len(as_tensor(part).shape)

    levels = depth(arrays)
    axes = max(levels, rank(arrays))

    def joined(part: Any, level: int) -> Tensor:
        if not isinstance(part, list):
            tensor = as_tensor(part)
            return tensor.reshape(*[1] * (axes - len(tensor.shape)), *tensor.shape)
        return concatenate([joined(each, level - 1) for each in part], -level)

    return joined(arrays, levels)


def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """The values behind an array, flat unless an axis is named."""
    return concatenate([arr, values], axis)


# --- cutting -----------------------------------------------------------------------------------------


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Parts along an axis: so many, of nearly equal size, or cut before the given positions."""
    tensor = as_tensor(ary)
    size = tensor.shape[axis]
    if isinstance(indices_or_sections, int):
        least, more = divmod(size, indices_or_sections)
        cuts = [least * n + min(n, more) for n in range(1, indices_or_sections)]
    else:
        cuts = [int(cut) for cut in indices_or_sections]
    before = (slice(None),) * one_axis("split", axis, len(tensor.shape))
    return [tensor[(*before, slice(a, b))] for a, b in zip([0, *cuts], [*cuts, size], strict=True)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """As `array_split`; ValueError for a number of parts that does not divide."""
    tensor = as_tensor(ary)
    if isinstance(indices_or_sections, int) and tensor.shape[axis] % indices_or_sections:
        raise ArgumentError("split", f"{tensor.shape[axis]} does not divide into {indices_or_sections} equal parts")
    return array_split(tensor, indices_or_sections, axis)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the first axis."""
    return split(ary, indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the second axis, or the only one."""
    return split(ary, indices_or_sections, 1 if len(as_tensor(ary).shape) > 1 else 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Parts along the third axis."""
    return split(ary, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts along an axis, without it."""
    return tuple(as_tensor(x).unbind(axis))


def delete(arr: Any, obj: Any, axis: int | None = None) -> Tensor:
    """What is left without some positions along an axis, or of the flat array."""
    tensor = as_tensor(arr) if axis is not None else as_tensor(arr).flatten()
    place = 0 if axis is None else axis
    size = tensor.shape[place]
    gone = range(size)[obj] if isinstance(obj, slice) else as_tensor(obj).flatten().tolist()
    if gone and isinstance(gone[0], bool):
        gone = [position for position, drop in enumerate(gone) if drop]
    kept = [n for n in range(size) if n not in {int(g) % size for g in gone}]
    return tensor.index_select(place, Tensor(kept, dtype="int32") if kept else Tensor.zeros(0, dtype="int32"))


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """Values before positions along an axis, or of the flat array."""
    tensor = as_tensor(arr) if axis is not None else as_tensor(arr).flatten()
    place = one_axis("insert", 0 if axis is None else axis, len(tensor.shape))
    size, new = tensor.shape[place], as_tensor(values).cast(tensor.dtype)
    single = isinstance(obj, int)
    positions = [obj] if single else list(range(size)[obj]) if isinstance(obj, slice) else as_tensor(obj).tolist()
    count = new.shape[-1] if len(positions) == 1 and len(tensor.shape) == 1 and new.shape else len(positions)
    if len(positions) == 1 and not single and new.shape and len(tensor.shape) > 1:
        count = new.expand(*([1] * (len(tensor.shape) - len(new.shape)) + list(new.shape))).shape[place]
    wanted = [*tensor.shape[:place], count, *tensor.shape[place + 1 :]]
    if single and len(tensor.shape) > 1 and len(new.shape) == len(tensor.shape) - 1:
        new = new.unsqueeze(place)
    new = new.expand(*wanted)
    ordered = sorted(range(count), key=lambda n: (positions[0 if len(positions) == 1 else n] % (size + 1), n))
    pieces, before = [], 0
    for number in ordered:
        position = positions[0 if len(positions) == 1 else number]
        position = position + size if position < 0 else position
        pieces += [_part(tensor, place, before, position), _part(new, place, number, number + 1)]
        before = position
    return concatenate([*pieces, _part(tensor, place, before, size)], place)


def _part(tensor: Tensor, axis: int, begin: int, end: int) -> Tensor:
    return tensor[(slice(None),) * axis + (slice(begin, end),)]


def trim_zeros(filt: Any, trim: str = "fb") -> Tensor:
    """A vector without the zeros in front and behind."""
    tensor = as_tensor(filt)
    found = tensor.nonzero().flatten().tolist()
    begin = found[0] if found and "f" in trim else 0
    end = found[-1] + 1 if found and "b" in trim else tensor.shape[0]
    return tensor[begin:end] if found else tensor[:0]


# --- repeating ---------------------------------------------------------------------------------------


def flip(m: Any, axis: int | Sequence[int] | None = None) -> Tensor:
    """Axes in reverse, all by default."""
    tensor = as_tensor(m)
    axes = tuple(range(len(tensor.shape))) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    return tensor.flip(axes) if axes else tensor


def fliplr(m: Any) -> Tensor:
    """The second axis in reverse."""
    return flip(m, 1)


def flipud(m: Any) -> Tensor:
    """The first axis in reverse."""
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """A quarter turn in the plane of two axes."""
    return as_tensor(m).rot90(k, tuple(axes))


def roll(a: Any, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Tensor:
    """Elements moved along axes, those at the end to the front."""
    if isinstance(axis, tuple | list) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    if isinstance(axis, int) and not isinstance(shift, int):
        axis = (axis,) * len(shift)
    return as_tensor(a).roll(shift, axis)


def tile(A: Any, reps: int | Sequence[int]) -> Tensor:
    """The array several times along each axis."""
    tensor, times = as_tensor(A), (reps,) if isinstance(reps, int) else tuple(reps)
    return tensor.repeat(*[1] * (len(tensor.shape) - len(times)), *times)


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element several times."""
    tensor = as_tensor(a)
    times = repeats if isinstance(repeats, int) else as_tensor(repeats)
    if not isinstance(times, int) and times.numel() == 1:
        times = int(times.item())
    return tensor.repeat_interleave(times, dim=axis)


def resize(a: Any, new_shape: int | Sequence[int]) -> Tensor:
    """The elements in order, and again from the first, until a shape is full."""
    size = (new_shape,) if isinstance(new_shape, int) else tuple(new_shape)
    flat, count = as_tensor(a).flatten(), 1
    for each in size:
        count *= each
    if not flat.shape[0] or not count:
        return Tensor.zeros(size, dtype=flat.dtype)
    return flat.repeat(-(-count // flat.shape[0]))[:count].reshape(size)


# --- padding -----------------------------------------------------------------------------------------


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    """How much before and behind each axis."""
    widths = as_tensor(pad_width).tolist()
    if isinstance(widths, int):
        return [(widths, widths)] * rank
    if isinstance(widths[0], int):
        return [(widths[0], widths[-1])] * rank
    rows = widths if len(widths) == rank else widths * rank
    return [(row[0], row[-1]) for row in rows]


def pad(array: Any, pad_width: Any, mode: str = "constant", **options: Any) -> Tensor:
    """Elements around an array.

    The modes are constant (`constant_values`), edge, reflect, symmetric, wrap, empty, linear_ramp (`end_values`), and
    maximum, mean and minimum of each line.
    """
    tensor = as_tensor(array)
    for axis, (before, behind) in enumerate(_widths(pad_width, len(tensor.shape))):
        if mode in _POSITIONS:
            positions = _POSITIONS[mode](tensor.shape[axis], before, behind)
            tensor = tensor.index_select(axis, Tensor(positions, dtype="int32")) if before or behind else tensor
        else:
            tensor = _padded_with_values(tensor, axis, before, behind, mode, options)
    return tensor


def _edge(size: int, before: int, behind: int) -> list[int]:
    return [min(max(n, 0), size - 1) for n in range(-before, size + behind)]


def _reflect(size: int, before: int, behind: int) -> list[int]:
    period = max(2 * size - 2, 1)
    return [min(n % period, period - n % period) if size > 1 else 0 for n in range(-before, size + behind)]


def _symmetric(size: int, before: int, behind: int) -> list[int]:
    period = 2 * size
    return [min(n % period, period - 1 - n % period) for n in range(-before, size + behind)]


def _wrap(size: int, before: int, behind: int) -> list[int]:
    return [n % size for n in range(-before, size + behind)]


_POSITIONS: dict[str, Callable[[int, int, int], list[int]]] = {
    "edge": _edge, "reflect": _reflect, "symmetric": _symmetric, "wrap": _wrap,
}  # fmt: skip
"""Modes that repeat elements: the position along an axis that each element of the result is from."""


def _padded_with_values(
    tensor: Tensor, axis: int, before: int, behind: int, mode: str, options: dict[str, Any]
) -> Tensor:
    if mode in ("constant", "empty"):
        first, last = _widths_of_values(options.get("constant_values", 0), len(tensor.shape))[axis]
    elif mode == "linear_ramp":
        return _ramped(tensor, axis, before, behind, options.get("end_values", 0))
    elif mode in ("maximum", "minimum", "mean"):
        reduce = {"maximum": Tensor.max, "minimum": Tensor.min, "mean": Tensor.mean}[mode]
        line = reduce(tensor, axis=axis, keepdim=True)
        first = last = line if mode != "mean" or tensor.dtype.is_float else line.round().cast(tensor.dtype)
    else:
        raise ArgumentError("pad", f"there is no mode {mode!r}")
    parts = []
    for value, width in ((first, before), (None, 0), (last, behind)):
        if value is None:
            parts.append(tensor)
        elif width:
            shape = [width if place == axis else size for place, size in enumerate(tensor.shape)]
            parts.append(as_tensor(value).cast(tensor.dtype).expand(*shape))
    return concatenate(parts, axis)


def _widths_of_values(values: Any, rank: int) -> list[tuple[Any, Any]]:
    given = as_tensor(values).tolist()
    if not isinstance(given, list):
        return [(given, given)] * rank
    if not isinstance(given[0], list):
        return [(given[0], given[-1])] * rank
    return [(row[0], row[-1]) for row in (given if len(given) == rank else given * rank)]


def _ramped(tensor: Tensor, axis: int, before: int, behind: int, end_values: Any) -> Tensor:
    first, last = _widths_of_values(end_values, len(tensor.shape))[axis]
    shape = [-1 if place == axis else 1 for place in range(len(tensor.shape))]
    parts = [tensor]
    if before:
        steps = (Tensor.arange(before) / before).reshape(*shape)
        edge = _part(tensor, axis, 0, 1)
        parts.insert(0, ((edge - first) * steps + first).cast(tensor.dtype))
    if behind:
        steps = (Tensor.arange(behind) / behind).flip(0).reshape(*shape)
        edge = _part(tensor, axis, tensor.shape[axis] - 1, tensor.shape[axis])
        parts.append(((edge - last) * steps + last).cast(tensor.dtype))
    return concatenate(parts, axis)
