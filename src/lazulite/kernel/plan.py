"""Helpers that write schedule steps: a range cut into loop, rows and lanes, remainders included.

A `Plan` collects steps and remembers which loops they leave behind.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from lazulite.ir.uop import UOp
from lazulite.kernel.nest import extent, grain, is_fixed
from lazulite.kernel.steps import Name, Partition, Split, Step, Tile, Vectorize


class Part(NamedTuple):
    """One piece of a range: the names of its loop, its rows and its lanes, and the turns of each (1: none)."""

    loop: Name
    turns: int
    row: Name | None
    rows: int
    lane: Name | None
    lanes: int


@dataclass(slots=True)
class Plan:
    """Steps so far."""

    steps: list[Step] = field(default_factory=list)

    def vectors(self, name: Name, extent: int, lanes: int, rows: int, *, masked: bool = False) -> list[Part]:
        """Cut a range into vectors, `rows` of them at a time.

        A range that fits those has a gate at its end; otherwise a remainder is one or two further parts, or
        `masked` off by a gate too.
        """
        if extent <= lanes:
            return [self._vector_part(name, extent, _power(extent), 1)]
        if extent <= lanes * rows or masked:
            return [self._vector_part(name, extent, lanes, min(rows, -(-extent // lanes)))]
        block = lanes * max(1, min(rows, extent // lanes))
        whole = extent - extent % block
        if whole == extent:
            return [self._vector_part(name, extent, lanes, block // lanes)]
        self.steps.append(Partition(name, whole))
        return [self._vector_part((*name, 0), whole, lanes, block // lanes),
                *self.vectors((*name, 1), extent - whole, lanes, (extent - whole) // lanes)]  # fmt: skip

    def _vector_part(self, name: Name, extent: int, lanes: int, rows: int) -> Part:
        if lanes == 1:
            return Part(name, extent, None, 1, None, 1)
        self.steps.append(Split(name, lanes * rows))
        turns = -(-extent // (lanes * rows))
        loop, inner = (*name, 0), (*name, 1)
        if rows == 1:
            self.steps.append(Vectorize(inner))
            return Part(loop, turns, None, 1, inner, lanes)
        self.steps += [Split(inner, lanes), Tile((*inner, 0)), Vectorize((*inner, 1))]
        return Part(loop, turns, (*inner, 0), rows, (*inner, 1), lanes)

    def rows(self, name: Name, extent: int, most: int) -> list[Part]:
        """Cut a range into blocks of nearly equal rows, at most `most`; one or two parts."""
        if extent <= most:
            if extent > 1:
                self.steps.append(Tile(name))
            return [Part(name, 1, name, extent, None, 1)]
        exact = whole_rows(extent, most)
        if exact is not None:
            return [self._row_part(name, extent, exact)]
        blocks = -(-extent // most)
        base, more = divmod(extent, blocks)
        if not more:
            return [self._row_part(name, extent, base)]
        self.steps.append(Partition(name, more * (base + 1)))
        return [self._row_part((*name, 0), more * (base + 1), base + 1),
                self._row_part((*name, 1), (blocks - more) * base, base)]  # fmt: skip

    def open_vectors(self, name: Name, size: UOp, lanes: int, rows: int) -> list[Part]:
        """Cut a range whose number of turns is an expression into vectors, as many at a time as always fill up."""
        rows = next((r for r in range(rows, 1, -1) if grain(size) % (lanes * r) == 0), 1)
        return [self._vector_part(name, int(size.vmax), lanes, rows)]

    def open_rows(self, name: Name, size: UOp, most: int) -> list[Part]:
        """Cut such a range into blocks of rows; where no number of rows always fills up, the last has a gate."""
        return [self._row_part(name, int(size.vmax), open_rows(size, most))]

    def _row_part(self, name: Name, extent: int, rows: int) -> Part:
        if rows == 1:
            return Part(name, extent, None, 1, None, 1)
        self.steps += [Split(name, rows), Tile((*name, 1))]
        return Part((*name, 0), -(-extent // rows), (*name, 1), rows, None, 1)


def rows_of(r: UOp, most: int) -> int:
    """How many rows blocks of a range have that are to have at most so many, the last ones perhaps fewer."""
    if not is_fixed(r):
        return open_rows(r.src[0], most)
    return min(extent(r), whole_rows(extent(r), most) or most)


def open_rows(size: UOp, most: int) -> int:
    """The same where the number of turns is an expression: what divides all of its values, else what leaves least of
    the last block empty at the largest."""
    blocks = -(-int(size.vmax) // most)
    return next((rows for rows in range(most, most // 2, -1) if grain(size) % rows == 0), -(-int(size.vmax) // blocks))


def whole_rows(extent: int, most: int) -> int | None:
    """Rows of blocks that fill a range, and are not much lower than they may be; None where there are none."""
    return even_rows(extent, most, min(8, most - most // 3))


def even_rows(extent: int, most: int, least: int) -> int | None:
    """The most rows within limits that a range consists of blocks of, None where there are none.

    >>> even_rows(128, 14, 8), even_rows(128, 6, 5)
    (8, None)
    """
    return next((rows for rows in range(most, least - 1, -1) if extent % rows == 0), None)


def _power(extent: int) -> int:
    """The power of two that holds an extent."""
    return 1 << (extent - 1).bit_length()
