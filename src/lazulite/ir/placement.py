"""Where a value on several devices lies: whole on each of them, or split along an axis.

A `Placement` is a plain value.  It stands where the name of a device stands for a value on one: as the `arg` of a
COPY and as the last part of that of a BUFFER.  A COPY whose `arg` is a bare tuple of names leaves a value that is on
these devices laid out as it is, and repeats one that comes from elsewhere.

Invariant: `ends` rise, and the last is the size of the axis; a part may be empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import NamedTuple


class _Made:
    """Whether a placement was ever made."""

    any = False


class _Fields(NamedTuple):
    devices: tuple[str, ...]
    axis: int | None
    """The axis along which the value is split; None where each device holds all of it."""
    ends: tuple[int, ...]
    """Where the part of each device ends."""


class Placement(_Fields):
    """Several devices, and the part of a value that each of them holds.

    >>> str(Placement(("CPU", "CPU:1"), 0, (2, 4)))
    'axis 0 in CPU 0..2, CPU:1 2..4'
    """

    __slots__ = ()

    def __new__(cls, devices: tuple[str, ...], axis: int | None = None, ends: tuple[int, ...] = ()) -> Placement:
        _Made.any = True
        return super().__new__(cls, devices, axis, ends)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where the part of each device begins and ends."""
        return list(pairwise((0, *self.ends)))

    def part_shape(self, shape: tuple[int, ...], number: int) -> tuple[int, ...]:
        """The shape of the part that a device holds."""
        if self.axis is None:
            return shape
        begin, end = self.spans[number]
        return (*shape[: self.axis], end - begin, *shape[self.axis + 1 :])

    def __str__(self) -> str:
        if self.axis is None:
            return f"each of {', '.join(self.devices)}"
        parts = [f"{name} {begin}..{end}" for name, (begin, end) in zip(self.devices, self.spans, strict=True)]
        return f"axis {self.axis} in {', '.join(parts)}"


_PART = re.compile(r"([\w:]+) \d+\.\.(\d+)")
_SPLIT = re.compile(rf"axis \d+ in {_PART.pattern}(, {_PART.pattern})*")


def placements_exist() -> bool:
    """Whether any value may be on several devices; most programs never have one."""
    return _Made.any


def split(devices: Iterable[str], axis: int, size: int) -> Placement:
    """An axis split as evenly as its size allows; the first devices have one more where it does not go up.

    >>> split(("CPU", "CPU:1", "CPU:2"), 0, 4).ends
    (2, 3, 4)
    """
    names = tuple(devices)
    least, more = divmod(size, len(names))
    return Placement(names, axis, tuple(accumulate([least + (number < more) for number in range(len(names))])))


def place_text(where: str | tuple[str, ...] | Placement) -> str:
    """A place as the text form of a graph names it.

    >>> place_text(("CPU", "CPU:1")), place_text("CPU")
    ('CPU + CPU:1', 'CPU')
    """
    return str(where) if isinstance(where, str | Placement) else " + ".join(where)


def place_of(text: str) -> str | tuple[str, ...] | Placement:
    """The place that a text names.

    >>> place_of("axis 0 in CPU 0..2, CPU:1 2..4").ends
    (2, 4)
    """
    if text.startswith("each of "):
        return Placement(tuple(text.removeprefix("each of ").split(", ")))
    if not _SPLIT.fullmatch(text):
        return tuple(text.split(" + ")) if " + " in text else text
    axis, _, parts = text.removeprefix("axis ").partition(" in ")
    found = _PART.findall(parts)
    return Placement(tuple([name for name, _ in found]), int(axis), tuple([int(end) for _, end in found]))


def names_of(where: str | tuple[str, ...] | Placement) -> str | tuple[str, ...]:
    """The device, or the devices, that a place names."""
    return where.devices if isinstance(where, Placement) else where
