"""Marks: what stands for a value in the keys that select captured calls.

A mark can always be hashed and compared, whatever the value does when it is: numbers and text stand for themselves
(-0.0 apart from 0.0, nan equal to itself, 1 apart from True), everything else for the object that it is.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from numbers import Number
from typing import Any

_PLAIN = frozenset({bool, int, str, bytes, type(None), type(...), range})


@dataclass(frozen=True, slots=True, eq=False)
class Itself:
    """An object, equal to nothing else; it is kept, so that no other can take its place in memory."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return getattr(self.value, "__name__", None) or f"a {type(self.value).__name__}"


def mark(value: Any) -> Hashable:
    """What stands for a value in a key.

    >>> mark(0.0) == mark(-0.0), mark(1) == mark(True), mark(("a", 1)) == mark(("a", 1)), mark([]) == mark([])
    (False, False, True, False)
    """
    kind = type(value)
    if kind in _PLAIN:
        return kind, value
    if kind is tuple:
        return kind, tuple([mark(each) for each in value])
    if is_number(value):
        return kind, repr(value)
    return Itself(value)


def is_number(value: object) -> bool:
    """Whether a value is a number and nothing else: of Python, of NumPy, a fraction, but no object with attributes."""
    return isinstance(value, Number) and not isinstance(value, bool) and not hasattr(value, "__dict__")


def number_mark(value: Any) -> Hashable:
    """What stands for a number beside its type; it is quick for those of Python."""
    return value if value and value == value and type(value) in (int, float) else repr(value)
