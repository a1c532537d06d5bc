"""What the ranges of a kernel say about its loops: how many turns, and in which order."""

from __future__ import annotations

import math
from collections.abc import Iterable

from lazulite.ir import ops
from lazulite.ir.bounds import linear
from lazulite.ir.dtype import dtypes
from lazulite.ir.uop import UOp


def extent(r: UOp) -> int:
    """The number of turns of a range, or the most where its extent is an expression."""
    size = r.src[0]
    return size.arg if size.op is ops.CONST and size.arg >= 0 else max(int(size.vmax), 0)


def is_fixed(r: UOp) -> bool:
    """Whether the number of turns is known when code is written."""
    return r.src[0].op is ops.CONST


def grain(size: UOp) -> int:
    """A number that divides a number of turns, whatever the values in it are.

    >>> grain(UOp(ops.SCALAR, dtypes.index, (), (0, 0, 7)) * 32 + 64)
    32
    """
    form = linear(size)
    return math.gcd(form.constant, *form.terms.values())


def count(ranges: Iterable[UOp]) -> int:
    """The number of turns of a nest."""
    turns = 1
    for r in ranges:
        turns *= extent(r)
    return turns


def by_order(ranges: Iterable[UOp]) -> list[UOp]:
    """Ranges, outermost first; choices go by this and not by the order of a set, which no two processes share."""
    return sorted(ranges, key=_order)


def _order(r: UOp) -> tuple[int, ...]:
    order: tuple[int, ...] = r.arg[0]
    return order


def nested(effects: Iterable[UOp], around: Iterable[UOp] = ()) -> list[UOp]:
    """The effects in loops over their free ranges, those `around` all apart; which share outer ranges are together."""
    return _nest([(by_order(effect.ranges.difference(around)), effect) for effect in effects], 0)


def _nest(paths: Iterable[tuple[list[UOp], UOp]], depth: int) -> list[UOp]:
    """Statements grouped by the range at this depth of their nests (recursion is as deep as a nest)."""
    effects: list[UOp] = []
    groups: dict[UOp, list[tuple[list[UOp], UOp]]] = {}
    for path, effect in paths:
        if len(path) == depth:
            effects.append(effect)
        else:
            groups.setdefault(path[depth], []).append((path, effect))
    for r, inner in groups.items():
        effects.append(UOp(ops.FOR, dtypes.void, (r, *_nest(inner, depth + 1)), 0))
    return effects
