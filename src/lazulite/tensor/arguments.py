"""The arguments of a call as flat lists: tensors, numbers, and a key for everything else.

This runs before every replay, so it does as little as it can: containers are entered, tensors and numbers
collected, and whatever needs a closer look (objects with attributes, functions) is left to a survey.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from enum import Enum
from typing import Any

from lazulite.ir.dtype import DType
from lazulite.tensor.tensor import Tensor

_PLAIN = frozenset({bool, str, bytes, type(None), complex, range, DType})


class Arguments:
    """The flat lists, filled by `add`."""

    __slots__ = ("key", "numbers", "objects", "tensors")

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.numbers: list[int | float | str] = []
        self.key: list[Any] = []
        self.objects: list[Any] = []
        """What has to be surveyed."""

    def add(self, values: Iterable[Any]) -> None:
        """Flatten some values."""
        key = self.key
        for value in values:
            kind = type(value)
            if kind is Tensor:
                self.tensors.append(value)
                key.append(Tensor)
            elif kind is int or kind is float:
                self.numbers.append(value or str(value))  # -0.0 is another number than 0.0
                key.append(kind)
            elif kind in _PLAIN:
                key.append((kind, value))
            elif kind is list or kind is tuple:
                key.append((kind, len(value)))
                self.add(value)
            elif kind is dict:
                key.append((kind, tuple(value)))
                self.add(value.values())
            else:
                self._add_other(kind, value)

    def _add_other(self, kind: type, value: Any) -> None:
        if isinstance(value, Tensor):
            self.tensors.append(value)
            self.key.append(kind)
        elif isinstance(value, Enum):
            self.key.append((kind, value))
        elif isinstance(value, tuple | list):
            self.key.append((kind, len(value)))
            self.add(value)
        elif isinstance(value, dict):
            self.key.append((kind, tuple(value)))
            self.add(value.values())
        elif dataclasses.is_dataclass(kind):
            self.key.append(kind)
            self.add([getattr(value, each.name) for each in dataclasses.fields(kind)])
        else:
            self.key.append((object, len(self.objects)))
            self.objects.append(value)
