"""Tensors with strides, made from the flat elements that they point into."""

from __future__ import annotations

from math import prod

from lazulite.tensor.tensor import Tensor

_MOST_AXES = 64
_BEYOND = 1 << 63


def strided(elements: Tensor, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """The tensor whose element at `i` is ``elements[offset + sum(i * strides)]``; ValueError where one is outside.

    Axes in any order over a dense part are a view of it, axes of stride 0 repeat it; anything else is gathered.

    >>> strided(Tensor([0, 1, 2, 3, 4, 5]), 0, (3, 2), (1, 3)).tolist()
    [[0, 3], [1, 4], [2, 5]]
    """
    _require_numbers(offset, shape, strides)
    if not prod(shape):
        return Tensor.empty(*shape, dtype=elements.dtype, device=elements.device)
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    if last >= elements.shape[0]:
        raise ValueError(f"element {last} is needed of a storage of {elements.shape[0]}")
    moving = [axis for axis, stride in enumerate(strides) if stride and shape[axis] > 1]
    found = _moving(elements, offset, [shape[axis] for axis in moving], [strides[axis] for axis in moving])
    return found.reshape(tuple([size if axis in moving else 1 for axis, size in enumerate(shape)])).expand(shape)


def is_whole(count: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether that are all of so many elements in their order; ValueError where no tensor has such numbers.

    >>> is_whole(6, 0, (2, 3), (3, 1)), is_whole(6, 0, (3, 2), (1, 3))
    (True, False)
    """
    _require_numbers(offset, shape, strides)
    moving = [axis for axis, size in enumerate(shape) if size > 1]
    in_order = _is_dense([shape[axis] for axis in moving], [strides[axis] for axis in moving])
    return offset == 0 and prod(shape) == count and in_order


def _require_numbers(offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    if len(shape) > _MOST_AXES or len(shape) != len(strides):
        raise ValueError(f"no tensor has {len(shape)} axes and {len(strides)} strides")
    if any(type(n) is not int or not 0 <= n < _BEYOND for n in (offset, *shape, *strides)):
        raise ValueError(f"no tensor has offset {offset!r:.20}, shape {shape!r:.60} and strides {strides!r:.60}")


def _moving(elements: Tensor, offset: int, shape: list[int], strides: list[int]) -> Tensor:
    """As `strided`, where every axis has several elements in several places."""
    order = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    if _is_dense([shape[axis] for axis in order], [strides[axis] for axis in order]):
        part = elements[offset : offset + prod(shape)].reshape(tuple([shape[axis] for axis in order]))
        return part.permute(tuple([order.index(axis) for axis in range(len(shape))]))
    wide = elements.shape[0] > 1 << 31
    places = Tensor.full((), offset, dtype="int64" if wide else "int32", device=elements.device)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        along = Tensor.arange(size, dtype=places.dtype, device=elements.device) * stride
        places = places + along.reshape(size, *[1] * (len(shape) - axis - 1))
    return elements[places]


def _is_dense(sizes: list[int], strides: list[int]) -> bool:
    """Whether axes, the widest stride first, cover consecutive elements."""
    step = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if stride != step:
            return False
        step *= size
    return True
