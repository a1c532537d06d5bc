"""Where intermediates lie: one arena a device, offsets packed by lifetime.

Takes the size and the first and last launch of each intermediate, gives offsets such that two that
live at the same time never overlap.  First fit in order of decreasing size, which wastes little and
is decided by the sizes alone.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Lifetime:
    """An intermediate of so many bytes that is alive from launch `first` to launch `last`, both included."""

    nbytes: int
    first: int
    last: int


def pack(lifetimes: Sequence[Lifetime], *, reuse: bool = True) -> list[int]:
    """An offset for each lifetime; without `reuse` all lie side by side.

    >>> pack([Lifetime(64, 0, 1), Lifetime(64, 1, 2), Lifetime(64, 2, 3)])
    [0, 64, 0]
    """
    offsets = [0] * len(lifetimes)
    placed: list[tuple[int, int, int, int]] = []  # by offset: where each begins and ends, and its lifetime
    for item in sorted(range(len(lifetimes)), key=lambda i: -lifetimes[i].nbytes):
        nbytes, first, last = lifetimes[item].nbytes, lifetimes[item].first, lifetimes[item].last
        offset = 0
        for begin, end, its_first, its_last in placed:
            if reuse and (first > its_last or its_first > last):
                continue
            if offset + nbytes <= begin:
                break
            offset = max(offset, end)
        offsets[item] = offset
        insort(placed, (offset, _aligned(offset + nbytes), first, last))
    return offsets


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
