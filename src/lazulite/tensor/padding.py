"""What a tensor has around it beside zeros: its mirror image, its border, or itself again.

Takes and gives tensors.  All of it is movement, so gradients are sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from lazulite.base.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from lazulite.tensor.movement import MovementMethods

T = TypeVar("T", bound="MovementMethods")

MODES = ("reflect", "replicate", "circular")


def padded(x: T, pairs: Sequence[tuple[int, int]], mode: str) -> T:
    """`x` with (before, after) elements more along each axis; negative numbers cut.

    They cut what that gives, or with "circular" what is repeated, as in torch.
    """
    if mode not in MODES:
        raise ArgumentError("pad", f"mode is 'constant', {', '.join(map(repr, MODES))}, not {mode!r}")
    cuts = [(min(before, 0), min(after, 0)) for before, after in pairs]
    x = _cut(x, cuts) if mode == "circular" else x
    for axis, (before, after) in enumerate(pairs):
        if before > 0 or after > 0:
            x = _along(x, axis, max(before, 0), max(after, 0), mode)
    return x if mode == "circular" else _cut(x, cuts)


def _cut(x: T, cuts: Sequence[tuple[int, int]]) -> T:
    return x.shrink([(-before, size + after) for size, (before, after) in zip(x.shape, cuts, strict=True)])


def _along(x: T, axis: int, before: int, after: int, mode: str) -> T:
    size = x.shape[axis]
    most = {"reflect": size - 1, "circular": size, "replicate": max(before, after) if size else 0}[mode]
    if max(before, after) > most:
        raise ShapeError(
            "pad", f"{max(before, after)} elements of mode {mode!r} around an axis of size {size}", about={"tensor": x},
            rule=f"Here at most {max(most, 0)} can be taken from the axis itself.",
        )  # fmt: skip
    if mode == "circular":
        parts = [_part(x, axis, size - before, size), x, _part(x, axis, 0, after)]
    elif mode == "reflect":
        parts = [_part(x, axis, 1, 1 + before).flip(axis), x, _part(x, axis, size - 1 - after, size - 1).flip(axis)]
    else:
        parts = [
            _repeated(_part(x, axis, 0, 1), axis, before),
            x,
            _repeated(_part(x, axis, size - 1, size), axis, after),
        ]
    first, *rest = [part for part in parts if part.shape[axis]]
    return first.cat(*rest, dim=axis)  # type: ignore[attr-defined, no-any-return]


def _part(x: T, axis: int, begin: int, end: int) -> T:
    return x.shrink([(begin, end) if each == axis else None for each in range(len(x.shape))])


def _repeated(x: T, axis: int, count: int) -> T:
    return x.expand([count if each == axis else size for each, size in enumerate(x.shape)])
