"""What the ranges of a kernel say about its loops: how many turns, and in which order."""

from __future__ import annotations

from collections.abc import Iterable

from lazulite.ir.uop import UOp


def extent(r: UOp) -> int:
    """The number of turns of a range."""
    return int(r.src[0].value)


def count(ranges: Iterable[UOp]) -> int:
    """The number of turns of a nest."""
    turns = 1
    for r in ranges:
        turns *= extent(r)
    return turns


def by_order(ranges: Iterable[UOp]) -> list[UOp]:
    """Ranges, outermost first; choices go by this and not by the order of a set, which no two processes share."""
    return sorted(ranges, key=lambda r: r.arg[0])
