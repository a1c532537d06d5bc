"""Distinct parts along an axis: rows compared as wholes.

Rows are put in lexicographic order by sorting by each column, the last one first; then equal neighbours are one.
"""

from __future__ import annotations

import math
from typing import Any

from lazulite.ir.dtype import dtypes
from lazulite.ir.size import most


def unique_parts(tensor: Any, axis: int, with_inverse: bool, with_counts: bool) -> Any:
    """The distinct parts along an axis in lexicographic order, and what was asked for beside them."""
    rows = _rows(tensor, axis)
    order = rows[:, :0].sum(1).cast(dtypes.int32) + type(tensor).arange(rows.shape[0], device=tensor.device)
    columns = most(rows.shape[1])
    wide = rows.pad(((0, 0), (0, columns - rows.shape[1])))  # what is alike in all rows changes no order
    for column in reversed(range(columns)):
        order = order.take(wide[:, column].take(order).argsort()).realize()
    return _neighbours(tensor, axis, rows.index_select(0, order), order, with_inverse, with_counts)


def consecutive_parts(tensor: Any, axis: int, with_inverse: bool, with_counts: bool) -> Any:
    """One part for each stretch of equal ones along an axis, and what was asked for beside them."""
    return _neighbours(tensor, axis, _rows(tensor, axis), None, with_inverse, with_counts)


def _rows(tensor: Any, axis: int) -> Any:
    moved = tensor.movedim(axis, 0)
    return moved.reshape(moved.shape[0], math.prod(moved.shape[1:])).realize()


def _neighbours(tensor: Any, axis: int, rows: Any, order: Any, with_inverse: bool, with_counts: bool) -> Any:
    """The first of each run of equal rows."""
    size = rows.shape[0]
    first = type(tensor).full((size,), True, device=tensor.device)
    first = first[:1].cat(rows[1:].ne(rows[:-1]).any(1)) if size else first
    places = first.nonzero().flatten()
    moved = tensor.movedim(axis, 0)
    found = rows.index_select(0, places).reshape(places.shape[0], *moved.shape[1:]).movedim(0, axis)
    results = [found]
    if with_inverse:
        number = first.cast(dtypes.int32).cumsum(0) - 1 if size else first.cast(dtypes.int32)
        results.append(number if order is None or not size else number.zeros_like().scatter(0, order, number))
    if with_counts:
        results.append(places[1:].cat(places[:1].full_like(size)) - places if size else places)
    return results[0] if len(results) == 1 else tuple(results)
