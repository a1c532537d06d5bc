"""Where intermediates lie: one arena a device, offsets packed by lifetime.

Takes the size and the first and last launch of each intermediate, gives offsets such that two that
live at the same time never overlap.  First fit in order of decreasing size, which wastes little and
is decided by the sizes alone.
"""

from __future__ import annotations

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
    placed: list[int] = []
    for item in sorted(range(len(lifetimes)), key=lambda i: -lifetimes[i].nbytes):
        offset = 0
        for other in sorted(placed, key=lambda i: offsets[i]):
            if reuse and not _overlap(lifetimes[item], lifetimes[other]):
                continue
            if offset + lifetimes[item].nbytes <= offsets[other]:
                break
            offset = max(offset, _aligned(offsets[other] + lifetimes[other].nbytes))
        offsets[item] = offset
        placed.append(item)
    return offsets


def _overlap(left: Lifetime, right: Lifetime) -> bool:
    return left.first <= right.last and right.first <= left.last


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
