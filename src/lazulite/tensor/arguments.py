"""The arguments of a call as flat lists: tensors, numbers, and a key for everything else.

This runs before every replay, so it does as little as it can: containers are entered, tensors and numbers
collected, and whatever needs a closer look (objects with attributes, functions) is left to a survey.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from enum import Enum
from typing import Any

from lazulite.engine.marks import Itself, is_number, number_mark
from lazulite.ir.dtype import DType
from lazulite.ir.size import Size
from lazulite.tensor.tensor import Tensor

_PLAIN = frozenset({bool, str, bytes, type(None), range})
_NAMES = frozenset({str})
"""The types of keys that can be compared at once; a dictionary with others is surveyed."""


def flatten(
    values: Iterable[Any], tensors: list[Tensor], key: list[Any], numbers: list[Any], sizes: list[Size],
    objects: list[Any],
) -> None:  # fmt: skip
    """Add what is in the values to the lists; `objects` are those that have to be surveyed."""
    for value in values:
        kind = type(value)
        if kind is Tensor:
            tensors.append(value)
            key.append(None)
        elif kind is int or kind is float:
            numbers.append(value if value and value == value else repr(value))  # as `number_mark`
            key.append(kind)
        elif kind in _PLAIN:
            key.append((kind, value))
        elif kind is list or kind is tuple:
            key.append((kind, len(value)))
            flatten(value, tensors, key, numbers, sizes, objects)
        elif kind is dict and {*map(type, value)} <= _NAMES:
            key.append((kind, tuple(value)))
            flatten(value.values(), tensors, key, numbers, sizes, objects)
        else:
            _flatten_other(value, tensors, key, numbers, sizes, objects)


def _flatten_other(
    value: Any, tensors: list[Tensor], key: list[Any], numbers: list[Any], sizes: list[Size], objects: list[Any]
) -> None:
    kind = type(value)
    if isinstance(value, Tensor):
        tensors.append(value)
        key.append(kind)
    elif kind is Size:
        sizes.append(value)
        key.append(kind)
    elif is_number(value):
        numbers.append(number_mark(value))
        key.append(kind)
    elif isinstance(value, Enum | DType):
        key.append(Itself(value))
    elif isinstance(value, tuple | list):
        key.append((kind, len(value)))
        flatten(value, tensors, key, numbers, sizes, objects)
    elif dataclasses.is_dataclass(kind):
        key.append(kind)
        fields = [getattr(value, each.name) for each in dataclasses.fields(kind)]
        flatten(fields, tensors, key, numbers, sizes, objects)
    else:
        key.append((object, len(objects)))
        objects.append(value)
