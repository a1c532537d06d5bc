"""Views, and writes through them.

A view is a value like any other; only as the target of a write does it stand for its place in what it
was taken from.  Its handle therefore knows its ancestors that somebody still holds, each with the
movements that lead from there to the view.  Ancestors are known weakly: contents that nobody can
look at any more need not be written, and a chain of views of views keeps nothing alive.  Memory that
belongs to somebody else, a file for example, can be looked at always: its views keep it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from lazulite.analysis.regions import Region, apply_region
from lazulite.engine.handles import Handle
from lazulite.ir import ops
from lazulite.ir.uop import UOp

_BITCAST = ops.BITCAST.name


class _Kept:
    """In the place of a weak reference: what it refers to stays."""

    __slots__ = ("held",)

    def __init__(self, held: Handle) -> None:
        self.held = held

    def __call__(self) -> Handle:
        return self.held


def view(parent: Handle, node: UOp, step: tuple[str, Any]) -> Handle:
    """The handle of a view whose node is one step (a movement, or a BITCAST to the type `arg`) from the parent's."""
    handle = Handle(node, shared=parent.shared)
    storage = parent.storage
    outside = storage is not None and storage.buffer is not None and storage.buffer.borrowed
    known: list[tuple[Callable[[], Handle | None], Region]] = [
        (_Kept(parent) if outside else weakref.ref(parent), (step,))
    ]
    known += [(reference, (*region, step)) for reference, region in parent.ancestors if reference() is not None]
    handle.ancestors = tuple(known)
    return handle


def ancestors(handle: Handle) -> list[tuple[Handle, Region]]:
    """Who of those that a view was taken from is still held, the nearest first, with the way to the view."""
    return [(held, region) for reference, region in handle.ancestors if (held := reference()) is not None]


def write(handle: Handle, value: UOp, origin: object) -> None:
    """Give a handle a value; what it is a view of, and the views in between, then all show it."""
    above = ancestors(handle)
    if above:
        root, region = above[-1]
        root.write(written(root.value, value, region))
        root.value.origin = origin
        for between, _ in above[:-1]:
            between.write(viewed(root.value, _way(root, between)))
    handle.write(value)


def _way(root: Handle, handle: Handle) -> Region:
    return next(region for held, region in ancestors(handle) if held is root)


def was_written(handle: Handle, value: UOp) -> bool:
    """Whether the last write of what a view was taken from was of this value, to the place of the view."""
    above = ancestors(handle)
    if not above:
        return handle.value is value
    root, region = above[-1]
    last = root.value
    return last.op is ops.WRITE and last.arg == region and last.src[1] is value


def written(base: UOp, value: UOp, region: Region) -> UOp:
    """The base with a place in it replaced; where its bits are read anew on the way there, the bits are."""
    casts = [position for position, (name, _) in enumerate(region) if name == _BITCAST]
    if not casts:
        return UOp(ops.WRITE, base.dtype, (base, value), region)
    outer, inner = region[: casts[0]], region[casts[0] + 1 :]
    bits = written(viewed(base, region[: casts[0] + 1]), value, inner)
    return written(base, UOp(ops.BITCAST, base.dtype, (bits,)), outer)


def viewed(base: UOp, region: Region) -> UOp:
    """The place in a base that a region leads to."""
    for name, arg in region:
        base = UOp(ops.BITCAST, arg, (base,)) if name == _BITCAST else apply_region(base, ((name, arg),))
    return base
